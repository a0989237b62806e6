// Both tiles in shared memory whose size the launch gives, one behind the other.
#define TILE_WIDTH 4
__global__ void product(const float* M, const float* N, float* P, int m, int k, int n) {
    extern __shared__ float tiles[];
    float* Ms = tiles;
    float* Ns = tiles + TILE_WIDTH * TILE_WIDTH;
    int ty = threadIdx.y, tx = threadIdx.x;
    int row = blockIdx.y * TILE_WIDTH + ty, col = blockIdx.x * TILE_WIDTH + tx;
    float sum = 0;
    for (int p = 0; p < (k + TILE_WIDTH - 1) / TILE_WIDTH; ++p) {
        Ms[ty * TILE_WIDTH + tx] = row < m && p * TILE_WIDTH + tx < k ? M[row * k + p * TILE_WIDTH + tx] : 0;
        Ns[ty * TILE_WIDTH + tx] = p * TILE_WIDTH + ty < k && col < n ? N[(p * TILE_WIDTH + ty) * n + col] : 0;
        __syncthreads();
        for (int i = 0; i < TILE_WIDTH; ++i) sum += Ms[ty * TILE_WIDTH + i] * Ns[i * TILE_WIDTH + tx];
        __syncthreads();
    }
    if (row < m && col < n) P[row * n + col] = sum;
}
void launch(const float* M, const float* N, float* P, int m, int k, int n) {
    dim3 block(TILE_WIDTH, TILE_WIDTH), grid((n + TILE_WIDTH - 1) / TILE_WIDTH, (m + TILE_WIDTH - 1) / TILE_WIDTH);
    product<<<grid, block, 2 * TILE_WIDTH * TILE_WIDTH * sizeof(float)>>>(M, N, P, m, k, n);
}
