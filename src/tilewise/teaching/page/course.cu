// The kernel of the lecture notes: any size, one tile of M and one of N at a time in shared memory.
#define TILE_WIDTH 2

typedef struct {
    int width;
    int height;
    int pitch;
    float* elements;
} Matrix;

__global__ void MatrixMulKernel(Matrix M, Matrix N, Matrix P)
{
    __shared__ float tileMs[TILE_WIDTH][TILE_WIDTH];
    __shared__ float tileNs[TILE_WIDTH][TILE_WIDTH];

    int tx = threadIdx.x; int ty = threadIdx.y;
    int bx = blockIdx.x; int by = blockIdx.y;

    int row = by * TILE_WIDTH + ty;
    int column = bx * TILE_WIDTH + tx;

    float pValue = 0;

    for(int i=0;i<ceilf(M.width/(float)TILE_WIDTH);i++){
        if(row < M.height && (i*TILE_WIDTH + tx)<M.width)
            tileMs[ty][tx] = M.elements[row*M.width + i*TILE_WIDTH + tx];
        else
            tileMs[ty][tx] = 0;

        if(column < N.width && (i*TILE_WIDTH + ty)<N.height)
            tileNs[ty][tx] = N.elements[(i*TILE_WIDTH + ty)*N.width + column];
        else
            tileNs[ty][tx] = 0;

        __syncthreads();

        for(int j=0;j<TILE_WIDTH;j++)
            pValue += tileMs[ty][j] * tileNs[j][tx];

        __syncthreads();
    }

    if(row < P.height && column < P.width)
        P.elements[row*P.width+column] = pValue;
}
