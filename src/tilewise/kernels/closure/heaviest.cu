// heaviest: the largest |weight| of all edges, for integers whose paths must not wrap. A maximum is the same in any order.

extern "C" __global__ void __launch_bounds__(256) heaviest(
    const Given* __restrict__ W, unsigned long long* found, int n, long long row_stride, long long col_stride)
{
    unsigned long long most = 0;
    for (long long cell = blockIdx.x * 256ll + threadIdx.x; cell < (long long)n * n; cell += gridDim.x * 256ll) {
        Partial weight = widen(W[cell / n * row_stride + cell % n * col_stride]);
        if (weight == ZERO) continue;
        unsigned long long size = weight < 0 ? 0ull - (unsigned long long)(long long)weight : (unsigned long long)weight;
        most = size > most ? size : most;
    }
    atomicMax(found, most);
}
