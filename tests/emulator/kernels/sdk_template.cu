// An int template launched twice, flat offsets that step from tile to tile, tiles declared inside the loop.
template <int BLOCK_SIZE>
__global__ void multiplyTiles(float *P, float *M, float *N, int wA, int wB)
{
    int ty = threadIdx.y, tx = threadIdx.x;
    int firstM = wA * BLOCK_SIZE * blockIdx.y;   // where this block's strip of M begins
    int lastM = firstM + wA - 1;
    int stepN = BLOCK_SIZE * wB;
    float total = 0;
    for (int m = firstM, n = BLOCK_SIZE * blockIdx.x; m <= lastM; m += BLOCK_SIZE, n += stepN) {
        __shared__ float tileM[BLOCK_SIZE][BLOCK_SIZE];
        __shared__ float tileN[BLOCK_SIZE][BLOCK_SIZE];
        tileM[ty][tx] = M[m + wA * ty + tx];
        tileN[ty][tx] = N[n + wB * ty + tx];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < BLOCK_SIZE; ++i)
            total += tileM[ty][i] * tileN[i][tx];
        __syncthreads();
    }
    int corner = wB * BLOCK_SIZE * blockIdx.y + BLOCK_SIZE * blockIdx.x;
    P[corner + wB * ty + tx] = total;
}

int main(int argc, char **argv)
{
    int width = 16;
    dim3 dimsM(10 * width, 10 * width, 1), dimsN(20 * width, 10 * width, 1);
    dim3 threads(width, width);
    dim3 grid(dimsN.x / threads.x, dimsM.y / threads.y);
    if (width == 16)
        multiplyTiles<16><<<grid, threads>>>(d_P, d_M, d_N, dimsM.x, dimsN.x);
    else
        multiplyTiles<32><<<grid, threads>>>(d_P, d_M, d_N, dimsM.x, dimsN.x);
    return 0;
}
