// close_block: Floyd-Warshall of up to SIDE nodes by one block, in shared memory.
//
// Layout: 16 x 16 threads, SIDE/16 x SIDE/16 cells each; one column more keeps the banks apart.
// Barrier: two for each k: behind the first all have read row and column k, behind the second all cells are written.
// A node that reaches itself better than by staying (diagonal not ONE) is on an improving cycle: `improves` says so.

#define EACH (SIDE / 16)

extern "C" __global__ void __launch_bounds__(256) close_block(
    Partial* D,
#if BEFORE
    long long* before,
#endif
    int* improves, int n, long long lead)
{
    __shared__ Partial square[SIDE][SIDE + 1];
#if BEFORE
    __shared__ int comes[SIDE][SIDE + 1];
#endif
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    for (int i = ty; i < n; i += 16)
        for (int j = tx; j < n; j += 16) {
            square[i][j] = D[i * lead + j];
#if BEFORE
            comes[i][j] = (int)before[i * lead + j];
#endif
        }
    __syncthreads();
    for (int k = 0; k < n; ++k) {
        Partial total[EACH][EACH];
        int came[EACH][EACH];
        #pragma unroll
        for (int a = 0; a < EACH; ++a)
            #pragma unroll
            for (int b = 0; b < EACH; ++b) {
                int i = ty + 16 * a, j = tx + 16 * b;
                if (i < n && j < n) {
                    total[a][b] = add(square[i][j], mul(square[i][k], square[k][j]));
#if BEFORE
                    came[a][b] = total[a][b] != square[i][j] ? comes[k][j] : comes[i][j];
#endif
                }
            }
        __syncthreads();
        #pragma unroll
        for (int a = 0; a < EACH; ++a)
            #pragma unroll
            for (int b = 0; b < EACH; ++b) {
                int i = ty + 16 * a, j = tx + 16 * b;
                if (i < n && j < n) {
                    square[i][j] = total[a][b];
#if BEFORE
                    comes[i][j] = came[a][b];
#endif
                }
            }
        __syncthreads();
    }
    for (int i = ty; i < n; i += 16)
        for (int j = tx; j < n; j += 16) {
            if (i == j && square[i][j] != ONE) *improves = 1;
            D[i * lead + j] = square[i][j];
#if BEFORE
            before[i * lead + j] = comes[i][j];
#endif
        }
}
