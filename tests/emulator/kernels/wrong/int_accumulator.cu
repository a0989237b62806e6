// The sum is kept in an int: every partial sum loses its fraction.
__global__ void mm(float* M, float* N, float* P, int width) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = 0;
    if (row < width && col < width) {
        for (int i = 0; i < width; ++i) sum += M[row * width + i] * N[i * width + col];
        P[row * width + col] = sum; // fault: wrong-product
    }
}
