// Two pairs of tiles in turn: what is overwritten was read before the barrier in between.
#define TILE 4
__global__ void mm(const float* M, const float* N, float* P, int width) {
    __shared__ float Ms[2][TILE][TILE], Ns[2][TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0;
    int now = 0;
    for (int p = 0; p < width; p += TILE, now ^= 1) {
        Ms[now][ty][tx] = row < width && p + tx < width ? M[row * width + p + tx] : 0;
        Ns[now][ty][tx] = p + ty < width && col < width ? N[(p + ty) * width + col] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += Ms[now][ty][i] * Ns[now][i][tx];
    }
    if (row < width && col < width) P[row * width + col] = sum;
}
