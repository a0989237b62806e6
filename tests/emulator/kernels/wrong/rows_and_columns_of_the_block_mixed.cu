// threadIdx.x is taken for the row when loading and for the column when storing.
#define TILE 4
__global__ void mm(const float* M, const float* N, float* P, int m, int k, int n) {
    __shared__ float Ms[TILE][TILE], Ns[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0;
    for (int p = 0; p < (k + TILE - 1) / TILE; ++p) {
        Ms[tx][ty] = row < m && p * TILE + tx < k ? M[row * k + p * TILE + tx] : 0;
        Ns[ty][tx] = p * TILE + ty < k && col < n ? N[(p * TILE + ty) * n + col] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += Ms[ty][i] * Ns[i][tx];
        __syncthreads();
    }
    if (row < m && col < n) P[row * n + col] = sum; // fault: wrong-product
}
