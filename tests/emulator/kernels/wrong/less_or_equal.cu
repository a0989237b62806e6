// <= for < in the guards of a kernel without tiles.
__global__ void gemm(const float *A, const float *B, float *C, int M, int N, int K) {
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < M && j <= N) {
        float s = 0;
        for (int l = 0; l < K; l++)
            s += A[i * K + l] * B[l * N + j]; // fault: silent-overrun, out-of-bounds
        C[i * N + j] = s; // fault: silent-overrun, out-of-bounds, race, wrong-product
    }
}
