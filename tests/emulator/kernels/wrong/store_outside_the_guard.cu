// The braces end one line early.
#define TILE_WIDTH 4
__global__ void mm(float* M, float* N, float* P, int m, int k, int n) {
    int row = blockIdx.y * TILE_WIDTH + threadIdx.y, col = blockIdx.x * TILE_WIDTH + threadIdx.x;
    float sum = 0;
    if (row < m && col < n) {
        for (int i = 0; i < k; ++i) sum += M[row * k + i] * N[i * n + col];
    }
    P[row * n + col] = sum; // fault: silent-overrun, out-of-bounds, race, wrong-product
}
