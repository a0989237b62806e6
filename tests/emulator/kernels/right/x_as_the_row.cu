// x is the row and y the column, in the kernel and in the launch: slow, and right.
#define TILE 4
__global__ void mm(const float* M, const float* N, float* P, int m, int k, int n) {
    __shared__ float Ms[TILE][TILE], Ns[TILE][TILE];
    int row = blockIdx.x * TILE + threadIdx.x, col = blockIdx.y * TILE + threadIdx.y;
    float sum = 0;
    for (int p = 0; p < (k + TILE - 1) / TILE; ++p) {
        int a = p * TILE + threadIdx.y, b = p * TILE + threadIdx.x;
        Ms[threadIdx.x][threadIdx.y] = row < m && a < k ? M[row * k + a] : 0;
        Ns[threadIdx.x][threadIdx.y] = b < k && col < n ? N[b * n + col] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += Ms[threadIdx.x][i] * Ns[i][threadIdx.y];
        __syncthreads();
    }
    if (row < m && col < n) P[row * n + col] = sum;
}
void run(const float* M, const float* N, float* P, int m, int k, int n) {
    mm<<<dim3((m + TILE - 1) / TILE, (n + TILE - 1) / TILE), dim3(TILE, TILE)>>>(M, N, P, m, k, n);
}
