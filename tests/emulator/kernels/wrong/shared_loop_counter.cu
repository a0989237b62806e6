// The loop counter lies in shared memory: all threads count on the same one.
#define TILE 4
__global__ void mm(float* M, float* N, float* P, int width) {
    __shared__ int i;
    int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    if (row < width && col < width) {
        for (i = 0; i < width; i++) // fault: race
            sum += M[row * width + i] * N[i * width + col]; // may: race, out-of-bounds, silent-overrun
        P[row * width + col] = sum; // may: wrong-product
    }
}
