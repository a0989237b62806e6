// The guard at the top sends threads home that the tile needs.
#define TILE_WIDTH 4
__global__ void MatrixMultiply(float* d_M, float* d_N, float* d_P, int Width) {
    __shared__ float Mds[TILE_WIDTH][TILE_WIDTH];
    __shared__ float Nds[TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int Row = blockIdx.y * TILE_WIDTH + ty;
    int Col = blockIdx.x * TILE_WIDTH + tx;
    if (Row >= Width || Col >= Width)
        return;
    float Pvalue = 0;
    for (int ph = 0; ph < (Width + TILE_WIDTH - 1) / TILE_WIDTH; ++ph) {
        if (ph * TILE_WIDTH + tx < Width) Mds[ty][tx] = d_M[Row * Width + ph * TILE_WIDTH + tx];
        else Mds[ty][tx] = 0;
        if (ph * TILE_WIDTH + ty < Width) Nds[ty][tx] = d_N[(ph * TILE_WIDTH + ty) * Width + Col];
        else Nds[ty][tx] = 0;
        __syncthreads();
        for (int k = 0; k < TILE_WIDTH; ++k)
            Pvalue += Mds[ty][k] * Nds[k][tx]; // fault: uninitialised-read
        __syncthreads();
    }
    d_P[Row * Width + Col] = Pvalue; // fault: wrong-product
}
