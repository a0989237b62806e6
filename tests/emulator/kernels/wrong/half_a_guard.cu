// Rows are checked, columns are not: the fill of N makes the numbers right on finite memory.
#define TILE 4
__global__ void mm(const float* M, const float* N, float* P, int m, int k, int n) {
    __shared__ float Ms[TILE][TILE], Ns[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0;
    for (int p = 0; p < (k + TILE - 1) / TILE; ++p) {
        Ms[ty][tx] = row < m ? M[row * k + p * TILE + tx] : 0; // fault: silent-overrun, out-of-bounds
        Ns[ty][tx] = p * TILE + ty < k && col < n ? N[(p * TILE + ty) * n + col] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += Ms[ty][i] * Ns[i][tx];
        __syncthreads();
    }
    if (row < m && col < n) P[row * n + col] = sum; // may: wrong-product
}
