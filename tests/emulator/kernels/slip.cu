// The course notes with their slip kept: t where p is meant.
#define TILE_WIDTH 2
__global__ void tiled_edges(const float* M, const float* N, float* P, int Width) {
    __shared__ float ds_M[TILE_WIDTH][TILE_WIDTH];
    __shared__ float ds_N[TILE_WIDTH][TILE_WIDTH];
    int bx = blockIdx.x; int by = blockIdx.y;
    int tx = threadIdx.x; int ty = threadIdx.y;
    int Row = by * TILE_WIDTH + ty;
    int Col = bx * TILE_WIDTH + tx;
    float Pvalue = 0;
    for (int p = 0; p < (Width - 1) / TILE_WIDTH + 1; ++p) {
        if (Row < Width && t * TILE_WIDTH+tx < Width) {
            ds_M[ty][tx] = M[Row * Width + p * TILE_WIDTH + tx];
        } else {
            ds_M[ty][tx] = 0.0;
        }
        if (p * TILE_WIDTH + ty < Width && Col < Width) {
            ds_N[ty][tx] = N[(p * TILE_WIDTH + ty) * Width + Col];
        } else {
            ds_N[ty][tx] = 0.0;
        }
        __syncthreads();
        for (int i = 0; i < TILE_WIDTH; ++i)
            Pvalue += ds_M[ty][i] * ds_N[i][tx];
        __syncthreads();
    }
    if (Row < Width && Col < Width)
        P[Row * Width + Col] = Pvalue;
}
