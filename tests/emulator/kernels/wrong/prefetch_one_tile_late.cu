// The next tile is fetched into registers, but the fetch is one tile behind: the first is used twice.
#define TILE 4
__global__ void mm(const float* M, const float* N, float* P, int width) {
    __shared__ float Ms[TILE][TILE], Ns[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float next_m = row < width && tx < width ? M[row * width + tx] : 0;
    float next_n = ty < width && col < width ? N[ty * width + col] : 0;
    float sum = 0;
    for (int t = 0; t < (width + TILE - 1) / TILE; ++t) {
        Ms[ty][tx] = next_m;
        Ns[ty][tx] = next_n;
        __syncthreads();
        next_m = row < width && t * TILE + tx < width ? M[row * width + t * TILE + tx] : 0;
        next_n = t * TILE + ty < width && col < width ? N[(t * TILE + ty) * width + col] : 0;
        for (int i = 0; i < TILE; ++i) sum += Ms[ty][i] * Ns[i][tx];
        __syncthreads();
    }
    if (row < width && col < width) P[row * width + col] = sum; // fault: wrong-product
}
