#define TILE_WIDTH 2
#define SIDE (2 * TILE_WIDTH)

__global__ void multiply(const float* M, const float* N, float* P, int m, int k, int n)
{
    __shared__ float Mds[SIDE][TILE_WIDTH];
    __shared__ float Nds[TILE_WIDTH][SIDE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int top = blockIdx.y * SIDE, left = blockIdx.x * SIDE;
    float sum[2][2] = {{0, 0}, {0, 0}};
    for (int p = 0; p < (k + TILE_WIDTH - 1) / TILE_WIDTH; ++p) {
        for (int h = 0; h < 2; ++h) {
            int row = top + h * TILE_WIDTH + ty, across = p * TILE_WIDTH + tx;
            Mds[h * TILE_WIDTH + ty][tx] = row < m && across < k ? M[row * k + across] : 0;
            int col = left + h * TILE_WIDTH + tx, down = p * TILE_WIDTH + ty;
            Nds[ty][h * TILE_WIDTH + tx] = down < k && col < n ? N[down * n + col] : 0;
        }
        __syncthreads();
        for (int i = 0; i < TILE_WIDTH; ++i)
            for (int r = 0; r < 2; ++r)
                for (int c = 0; c < 2; ++c)
                    sum[r][c] += Mds[r * TILE_WIDTH + ty][i] * Nds[i][c * TILE_WIDTH + tx];
        __syncthreads();
    }
    for (int r = 0; r < 2; ++r)
        for (int c = 0; c < 2; ++c) {
            int row = top + r * TILE_WIDTH + ty, col = left + c * TILE_WIDTH + tx;
            if (row < m && col < n)
                P[row * n + col] = sum[r][c];
        }
}

void launch(const float* M, const float* N, float* P, int m, int k, int n)
{
    dim3 block(TILE_WIDTH, TILE_WIDTH);
    dim3 grid((n + SIDE - 1) / SIDE, (m + SIDE - 1) / SIDE);
    multiply<<<grid, block>>>(M, N, P, m, k, n);
}
