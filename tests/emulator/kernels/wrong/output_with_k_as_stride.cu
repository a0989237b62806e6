// P is stored with M's row length: rows overlap or leave holes.
__global__ void gemm(const float *A, const float *B, float *C, int M, int K, int N) {
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= M || j >= N) return;
    float s = 0;
    for (int l = 0; l < K; l++)
        s += A[i * K + l] * B[l * N + j];
    C[i * K + j] = s; // fault: silent-overrun, out-of-bounds, race, wrong-product
}
void run(const float *A, const float *B, float *C, int M, int K, int N) {
    gemm<<<dim3((N + 7) / 8, (M + 7) / 8), dim3(8, 8)>>>(A, B, C, M, K, N); // fault: uncovered
}
