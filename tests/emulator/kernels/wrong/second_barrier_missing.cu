// The tile is loaded over while slower threads still read it. Found at the load that overwrites.
#define BLOCK_SIZE 4
__global__ void matmul(float *A, float *B, float *C, int N) {
    __shared__ float As[BLOCK_SIZE][BLOCK_SIZE], Bs[BLOCK_SIZE][BLOCK_SIZE];
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int i = 0; i < (N + BLOCK_SIZE - 1) / BLOCK_SIZE; i++) {
        int a = i * BLOCK_SIZE + threadIdx.x, b = i * BLOCK_SIZE + threadIdx.y;
        As[threadIdx.y][threadIdx.x] = row < N && a < N ? A[row * N + a] : 0; // fault: race
        Bs[threadIdx.y][threadIdx.x] = b < N && col < N ? B[b * N + col] : 0; // fault: race
        __syncthreads();
        for (int k = 0; k < BLOCK_SIZE; k++)
            sum += As[threadIdx.y][k] * Bs[k][threadIdx.x];
    }
    if (row < N && col < N) C[row * N + col] = sum;
}
