// B is indexed with A's row length. On square matrices nobody notices.
__global__ void gemm(const float *A, const float *B, float *C, int M, int K, int N) {
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= M || j >= N) return;
    float s = 0;
    for (int l = 0; l < K; l++)
        s += A[i * K + l] * B[l * K + j]; // fault: silent-overrun, out-of-bounds
    C[i * N + j] = s; // fault: wrong-product
}
