#define TILE_WIDTH 2

__global__ void multiply(const float* M, const float* N, float* P, int m, int k, int n)
{
    __shared__ float tile[TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE_WIDTH + ty;
    int col = blockIdx.x * TILE_WIDTH + tx;
    float sum = 0;
    for (int p = 0; p < (k + TILE_WIDTH - 1) / TILE_WIDTH; ++p) {
        float mine[TILE_WIDTH];
        tile[ty][tx] = row < m && p * TILE_WIDTH + tx < k ? M[row * k + p * TILE_WIDTH + tx] : 0;
        __syncthreads();
        for (int i = 0; i < TILE_WIDTH; ++i)
            mine[i] = tile[ty][i];
        __syncthreads();
        tile[ty][tx] = p * TILE_WIDTH + ty < k && col < n ? N[(p * TILE_WIDTH + ty) * n + col] : 0;
        __syncthreads();
        for (int i = 0; i < TILE_WIDTH; ++i)
            sum += mine[i] * tile[i][tx];
        __syncthreads();
    }
    if (row < m && col < n)
        P[row * n + col] = sum;
}
