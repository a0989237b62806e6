// A block makes BM x BN of P, a thread TM x TN: five template arguments, pointers that walk, register arrays.
template <const int BM, const int BN, const int BK, const int TM, const int TN>
__global__ void __launch_bounds__((BM * BN) / (TM * TN), 1)
blockTiled(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    const uint threads = BM * BN / (TM * TN);
    assert(threads == blockDim.x);
    __shared__ float stripA[BM * BK];
    __shared__ float stripB[BK * BN];
    const int down = threadIdx.x / (BN / TN) * TM;
    const int across = threadIdx.x % (BN / TN) * TN;

    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    C += blockIdx.y * BM * N + blockIdx.x * BN;

    float sums[TM * TN] = {0.0};
    float left[TM] = {0.0}, right[TN] = {0.0};
    for (uint start = 0; start < K; start += BK) {
        for (uint i = threadIdx.x; i < BM * BK; i += threads)
            stripA[i] = A[i / BK * K + i % BK];
        for (uint i = threadIdx.x; i < BK * BN; i += threads)
            stripB[i] = B[i / BN * N + i % BN];
        __syncthreads();
        A += BK;
        B += BK * N;
        for (uint k = 0; k < BK; ++k) {
            for (uint i = 0; i < TM; ++i) left[i] = stripA[(down + i) * BK + k];
            for (uint j = 0; j < TN; ++j) right[j] = stripB[k * BN + across + j];
            for (uint i = 0; i < TM; ++i)
                for (uint j = 0; j < TN; ++j)
                    sums[i * TN + j] += left[i] * right[j];
        }
        __syncthreads();
    }
    for (uint i = 0; i < TM; ++i)
        for (uint j = 0; j < TN; ++j)
            C[(down + i) * N + across + j] = alpha * sums[i * TN + j] + beta * C[(down + i) * N + across + j];
}

#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))

void run(int M, int N, int K, float alpha, float *A, float *B, float beta, float *C)
{
    const uint BM = 64, BN = 64, BK = 8, TM = 8, TN = 8;
    dim3 grid(CEIL_DIV(N, BN), CEIL_DIV(M, BM));
    dim3 block(BM * BN / (TM * TN));
    blockTiled<BM, BN, BK, TM, TN><<<grid, block>>>(M, N, K, alpha, A, B, beta, C);
}
