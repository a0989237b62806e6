// Values are used before the other threads have loaded them.
#define BLOCK_SIZE 4
__global__ void matmul(float *A, float *B, float *C, int N) {
    __shared__ float As[BLOCK_SIZE * BLOCK_SIZE];
    __shared__ float Bs[BLOCK_SIZE * BLOCK_SIZE];
    int ty = threadIdx.y, tx = threadIdx.x;
    int row = blockIdx.y * BLOCK_SIZE + ty, col = blockIdx.x * BLOCK_SIZE + tx;
    float sum = 0.0f;
    for (int i = 0; i < N; i += BLOCK_SIZE) {
        As[ty * BLOCK_SIZE + tx] = row < N && i + tx < N ? A[row * N + i + tx] : 0;
        Bs[ty * BLOCK_SIZE + tx] = i + ty < N && col < N ? B[(i + ty) * N + col] : 0;
        for (int k = 0; k < BLOCK_SIZE; k++)
            sum += As[ty * BLOCK_SIZE + k] * Bs[k * BLOCK_SIZE + tx]; // fault: race
        __syncthreads();
    }
    if (row < N && col < N) C[row * N + col] = sum;
}
