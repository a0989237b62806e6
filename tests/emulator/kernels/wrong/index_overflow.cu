// Row 40000 of a matrix with 60000 columns starts past 2^31: the product of two ints wraps.
__global__ void touch(float* P, int rows, int cols) {
    int row = 40000 + threadIdx.y;
    int col = threadIdx.x;
    if (row < rows && col < cols)
        P[row * cols + col] = 1.0f; // fault: index-overflow, out-of-bounds
}
