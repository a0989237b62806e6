// The one-dimensional tile has TILE elements where TILE * TILE are used.
#define TILE 4
__global__ void mm(float* M, float* N, float* P, int width) {
    __shared__ float Ms[TILE];
    __shared__ float Ns[TILE * TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0;
    for (int p = 0; p < (width + TILE - 1) / TILE; ++p) {
        Ms[ty * TILE + tx] = row < width && p * TILE + tx < width ? M[row * width + p * TILE + tx] : 0; // fault: out-of-bounds
        Ns[ty * TILE + tx] = p * TILE + ty < width && col < width ? N[(p * TILE + ty) * width + col] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; ++i)
            sum += Ms[ty * TILE + i] * Ns[i * TILE + tx]; // fault: out-of-bounds
        __syncthreads();
    }
    if (row < width && col < width) P[row * width + col] = sum; // may: wrong-product
}
