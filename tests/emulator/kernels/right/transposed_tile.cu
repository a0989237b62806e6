// N's tile is kept transposed with padded rows: odd to read, right, and free of bank conflicts.
template <int T> __global__ void mm(const float* __restrict__ A, const float* __restrict__ B, float* C, int M, int N, int K) {
    __shared__ float As[T][T + 1];
    __shared__ float Bt[T][T + 1];
    const unsigned x = threadIdx.x, y = threadIdx.y;
    const unsigned row = blockIdx.y * T + y, col = blockIdx.x * T + x;
    float acc = 0.f;
    for (unsigned t = 0; t < K; t += T) {
        As[y][x] = (row < M && t + x < K) ? A[row * K + t + x] : 0.f;
        Bt[x][y] = (t + y < K && col < N) ? B[(t + y) * N + col] : 0.f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < T; i++) acc = fmaf(As[y][i], Bt[x][i], acc);
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = acc;
}
int main() {
    int M = 50, N = 60, K = 70;
    float *A, *B, *C;
    dim3 block(8, 8), grid((N + 8 - 1) / 8, (M + 8 - 1) / 8);
    mm<8><<<grid, block>>>(A, B, C, M, N, K);
}
