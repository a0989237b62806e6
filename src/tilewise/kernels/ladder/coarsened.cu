// coarsened: a thread computes COARSE elements of P, TILE_WIDTH columns apart, so each M it reads serves COARSE times.
//
// Layout: Mds is one tile of M; Nds is COARSE tiles of N side by side; thread (ty, tx) owns columns tx, tx + TILE_WIDTH, ...
// Barrier: after the first, the tile of M and all COARSE tiles of N are loaded; after the second, all are used.

extern "C" __global__ void coarsened(
    const Element* __restrict__ M, const Element* __restrict__ N, Result* __restrict__ P,
    int m, int k, int n, Index ldm, Index ldn, Index ldp)
{
    __shared__ Partial Mds[TILE_WIDTH][TILE_WIDTH];
    __shared__ Partial Nds[TILE_WIDTH][COARSE * TILE_WIDTH];

    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE_WIDTH + ty;
    int first = blockIdx.x * (COARSE * TILE_WIDTH) + tx;

    Partial Pvalue[COARSE];
    for (int c = 0; c < COARSE; ++c)
        Pvalue[c] = ZERO;

    for (int phase = 0; phase < (k + TILE_WIDTH - 1) / TILE_WIDTH; ++phase) {
        if (row < m && phase * TILE_WIDTH + tx < k)
            Mds[ty][tx] = widen(M[row * ldm + phase * TILE_WIDTH + tx]);
        else
            Mds[ty][tx] = PAD_M;
        for (int c = 0; c < COARSE; ++c) {
            int col = first + c * TILE_WIDTH;
            if (phase * TILE_WIDTH + ty < k && col < n)
                Nds[ty][c * TILE_WIDTH + tx] = widen(N[(phase * TILE_WIDTH + ty) * ldn + col]);
            else
                Nds[ty][c * TILE_WIDTH + tx] = PAD_N;
        }
        __syncthreads();

        for (int i = 0; i < TILE_WIDTH; ++i) {
            Partial Mvalue = Mds[ty][i];
            for (int c = 0; c < COARSE; ++c)
                Pvalue[c] = add(Pvalue[c], mul(Mvalue, Nds[i][c * TILE_WIDTH + tx]));
        }
        __syncthreads();
    }
    for (int c = 0; c < COARSE; ++c) {
        int col = first + c * TILE_WIDTH;
        if (row < m && col < n)
            STORE(P[row * ldp + col], Pvalue[c]);
    }
}
