#define TILE_WIDTH 2

__global__ void multiply(const float* M, const float* N, float* P, int m, int k, int n)
{
    __shared__ float Mds[TILE_WIDTH][TILE_WIDTH];
    __shared__ float Nds[TILE_WIDTH][2 * TILE_WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE_WIDTH + ty;
    int col = blockIdx.x * 2 * TILE_WIDTH + tx;
    float one = 0, two = 0;
    for (int p = 0; p < (k + TILE_WIDTH - 1) / TILE_WIDTH; ++p) {
        int across = p * TILE_WIDTH + tx, down = p * TILE_WIDTH + ty;
        Mds[ty][tx] = row < m && across < k ? M[row * k + across] : 0;
        Nds[ty][tx] = down < k && col < n ? N[down * n + col] : 0;
        Nds[ty][tx + TILE_WIDTH] = down < k && col + TILE_WIDTH < n ? N[down * n + col + TILE_WIDTH] : 0;
        __syncthreads();
        for (int i = 0; i < TILE_WIDTH; ++i) {
            one += Mds[ty][i] * Nds[i][tx];
            two += Mds[ty][i] * Nds[i][tx + TILE_WIDTH];
        }
        __syncthreads();
    }
    if (row < m && col < n)
        P[row * n + col] = one;
    if (row < m && col + TILE_WIDTH < n)
        P[row * n + col + TILE_WIDTH] = two;
}

void launch(const float* M, const float* N, float* P, int m, int k, int n)
{
    dim3 block(TILE_WIDTH, TILE_WIDTH);
    dim3 grid((n + 2 * TILE_WIDTH - 1) / (2 * TILE_WIDTH), (m + TILE_WIDTH - 1) / TILE_WIDTH);
    multiply<<<grid, block>>>(M, N, P, m, k, n);
}
