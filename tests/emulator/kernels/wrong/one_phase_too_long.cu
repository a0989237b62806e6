// <= in the loop over phases, and no check for k: the last phase reads past both matrices.
#define TILE_WIDTH 4
__global__ void mm(float* M, float* N, float* P, int m, int k, int n) {
    __shared__ float Ms[TILE_WIDTH][TILE_WIDTH];
    __shared__ float Ns[TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE_WIDTH + ty, col = blockIdx.x * TILE_WIDTH + tx;
    float sum = 0;
    for (int p = 0; p <= k / TILE_WIDTH; ++p) {
        Ms[ty][tx] = row < m ? M[row * k + p * TILE_WIDTH + tx] : 0; // fault: silent-overrun, out-of-bounds
        Ns[ty][tx] = col < n ? N[(p * TILE_WIDTH + ty) * n + col] : 0; // fault: out-of-bounds
        __syncthreads();
        for (int i = 0; i < TILE_WIDTH; ++i) sum += Ms[ty][i] * Ns[i][tx];
        __syncthreads();
    }
    if (row < m && col < n) P[row * n + col] = sum; // fault: wrong-product
}
