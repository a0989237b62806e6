// start: the initial matrix of the closure from a graph's weights. D = W with NaN and ZERO as ABSENT and ONE on the diagonal;
// `below_zero` says whether a weight is. With BEFORE, the node before each target: the source itself where there is an
// edge, -1 elsewhere.

extern "C" __global__ void __launch_bounds__(256) start_closure(
    const Given* __restrict__ W, Partial* D, int* below_zero,
#if BEFORE
    long long* before,
#endif
    int n, long long row_stride, long long col_stride)
{
    long long cell = blockIdx.x * 256ll + threadIdx.x;
    if (cell >= (long long)n * n) return;
    long long row = cell / n, col = cell % n;
    Partial weight = EDGE(W[row * row_stride + col * col_stride]);
    weight = add(weight, ZERO);  // NaN is no edge
    if (weight < 0) *below_zero = 1;
    if (weight == ZERO) weight = ABSENT;
#if BEFORE
    before[cell] = weight == ABSENT || row == col ? -1 : row;
#endif
    D[cell] = row == col ? add(weight, ONE) : weight;
}
