// One guard for both tiles: where it fails, the tile keeps the values of the phase before, or none.
#define TILE_WIDTH 4
__global__ void mm(float* M, float* N, float* P, int m, int k, int n) {
    __shared__ float Ms[TILE_WIDTH][TILE_WIDTH];
    __shared__ float Ns[TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE_WIDTH + ty, col = blockIdx.x * TILE_WIDTH + tx;
    float sum = 0;
    for (int p = 0; p < (k - 1) / TILE_WIDTH + 1; ++p) {
        if (row < m && col < n && p * TILE_WIDTH + tx < k && p * TILE_WIDTH + ty < k) {
            Ms[ty][tx] = M[row * k + p * TILE_WIDTH + tx];
            Ns[ty][tx] = N[(p * TILE_WIDTH + ty) * n + col];
        }
        __syncthreads();
        for (int i = 0; i < TILE_WIDTH; ++i)
            sum += Ms[ty][i] * Ns[i][tx]; // fault: uninitialised-read
        __syncthreads();
    }
    if (row < m && col < n) P[row * n + col] = sum; // fault: wrong-product
}
