// Four floats at a time through a macro, register tiles, inner braces left out.
#define QUAD(place) (reinterpret_cast<float4 *>(&(place))[0])
#define AT(row, col, ld) ((row) * (ld) + (col))

__global__ void quads(float *__restrict__ M, float *__restrict__ N, float *__restrict__ P, const int m, const int n,
                      const int k)
{
    const int SIDE = 32, DEPTH = 8, PIECE = 4;
    __shared__ float tileM[SIDE][DEPTH];
    __shared__ float tileN[DEPTH][SIDE];
    float sums[PIECE][PIECE] = {0.0f};
    const int ty = threadIdx.y, tx = threadIdx.x, thread = ty * blockDim.x + tx;
    int rowM = thread >> 1, colM = (thread & 1) << 2, rowN = thread >> 3, colN = (thread & 7) << 2;
    for (int p = 0; p < (k + DEPTH - 1) / DEPTH; p++) {
        QUAD(tileM[rowM][colM]) = QUAD(M[AT(blockIdx.y * SIDE + rowM, p * DEPTH + colM, k)]);
        QUAD(tileN[rowN][colN]) = QUAD(N[AT(p * DEPTH + rowN, blockIdx.x * SIDE + colN, n)]);
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < DEPTH; i++)
            for (int r = 0; r < PIECE; r++)
                for (int c = 0; c < PIECE; c++)
                    sums[r][c] += tileM[ty * PIECE + r][i] * tileN[i][tx * PIECE + c];
        __syncthreads();
    }
    for (int r = 0; r < PIECE; r++)
        QUAD(P[AT(blockIdx.y * SIDE + ty * PIECE + r, blockIdx.x * SIDE + tx * PIECE, n)]) = QUAD(sums[r][0]);
}

void run(float *M, float *N, float *P, int m, int n, int k)
{
    dim3 block(8, 8);
    dim3 grid((n + 31) / 32, (m + 31) / 32);
    quads<<<grid, block>>>(M, N, P, m, n, k);
}
