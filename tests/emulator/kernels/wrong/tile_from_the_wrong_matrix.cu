// Both tiles are loaded from A.
#define BLOCK_SIZE 4
__global__ void matmul(float *A, float *B, float *C, int N) {
    __shared__ float As[BLOCK_SIZE][BLOCK_SIZE], Bs[BLOCK_SIZE][BLOCK_SIZE];
    int row = blockIdx.y * BLOCK_SIZE + threadIdx.y, col = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    float sum = 0.0f;
    for (int i = 0; i < (N + BLOCK_SIZE - 1) / BLOCK_SIZE; i++) {
        int a = i * BLOCK_SIZE + threadIdx.x, b = i * BLOCK_SIZE + threadIdx.y;
        As[threadIdx.y][threadIdx.x] = row < N && a < N ? A[row * N + a] : 0;
        Bs[threadIdx.y][threadIdx.x] = b < N && col < N ? A[b * N + col] : 0;
        __syncthreads();
        for (int k = 0; k < BLOCK_SIZE; k++)
            sum += As[threadIdx.y][k] * Bs[k][threadIdx.x];
        __syncthreads();
    }
    if (row < N && col < N) C[row * N + col] = sum; // fault: wrong-product
}
