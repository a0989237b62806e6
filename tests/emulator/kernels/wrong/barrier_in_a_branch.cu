// Threads outside the matrix never reach the barriers that the others wait at.
#define TILE_SIZE 4
__global__ void mm(const double* a, const double* b, double* c, int m, int k, int n) {
    __shared__ double sa[TILE_SIZE][TILE_SIZE];
    __shared__ double sb[TILE_SIZE][TILE_SIZE];
    unsigned int y = blockIdx.y * TILE_SIZE + threadIdx.y;
    unsigned int x = blockIdx.x * TILE_SIZE + threadIdx.x;
    if (y < m && x < n) {
        double acc = 0;
        for (int t = 0; t < k; t += TILE_SIZE) {
            sa[threadIdx.y][threadIdx.x] = t + threadIdx.x < k ? a[y * k + t + threadIdx.x] : 0;
            sb[threadIdx.y][threadIdx.x] = t + threadIdx.y < k ? b[(t + threadIdx.y) * n + x] : 0;
            __syncthreads(); // fault: divergent-barrier
            for (int i = 0; i < TILE_SIZE; ++i)
                acc += sa[threadIdx.y][i] * sb[i][threadIdx.x]; // fault: uninitialised-read
            __syncthreads(); // fault: divergent-barrier
        }
        c[y * n + x] = acc; // fault: wrong-product
    }
}
