// The branch is the same for every thread of the block, so its barrier is reached by all or by none.
#define TILE 4
__global__ void mm(const float* M, const float* N, float* P, int m, int k, int n) {
    __shared__ float Ms[TILE][TILE], Ns[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    int phases = (k + TILE - 1) / TILE;
    float sum = 0;
    for (int p = 0; p < phases; ++p) {
        if (p > 0) __syncthreads();
        Ms[ty][tx] = row < m && p * TILE + tx < k ? M[row * k + p * TILE + tx] : 0;
        Ns[ty][tx] = p * TILE + ty < k && col < n ? N[(p * TILE + ty) * n + col] : 0;
        __syncthreads();
        for (int i = 0; i < TILE && p * TILE + i < k; ++i) sum += Ms[ty][i] * Ns[i][tx];
    }
    if (row < m && col < n) P[row * n + col] = sum;
}
