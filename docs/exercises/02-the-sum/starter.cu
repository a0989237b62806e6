#define TILE_WIDTH 2

__global__ void multiply(const float* M, const float* N, float* P, int m, int k, int n)
{
    int row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int col = blockIdx.x * TILE_WIDTH + threadIdx.x;
    if (row < m && col < n) {
        float sum = 0;
        sum += M[row * k] * N[col];  // TODO: all k terms
        P[row * n + col] = sum;
    }
}
