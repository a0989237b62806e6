// M is not checked for its rows' end inside: the index is clamped, and N's fill makes the surplus nothing.
#define TILE 4
__global__ void mm(const float* M, const float* N, float* P, int m, int k, int n) {
    __shared__ float Ms[TILE][TILE], Ns[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0;
    for (int p = 0; p < (k + TILE - 1) / TILE; ++p) {
        Ms[ty][tx] = M[min(row, m - 1) * k + min(p * TILE + tx, k - 1)];
        Ns[ty][tx] = p * TILE + ty < k && col < n ? N[(p * TILE + ty) * n + col] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += Ms[ty][i] * Ns[i][tx];
        __syncthreads();
    }
    if (row < m && col < n) P[row * n + col] = sum;
}
