// tiled: the threads of a block load a tile of M and a tile of N into shared memory together, then all use both.
//
// Layout: Mds[ty][tx] and Nds[ty][tx] hold one TILE_WIDTH x TILE_WIDTH tile each; the same storage serves every phase.
// Barrier: after the first, every cell of both tiles is loaded; after the second, every thread has used them.
// Sizes must be multiples of TILE_WIDTH: there is no check here, so that the idea stands alone (see tiled_edges).

extern "C" __global__ void tiled(
    const Element* __restrict__ M, const Element* __restrict__ N, Result* __restrict__ P,
    int m, int k, int n, Index ldm, Index ldn, Index ldp)
{
    __shared__ Partial Mds[TILE_WIDTH][TILE_WIDTH];
    __shared__ Partial Nds[TILE_WIDTH][TILE_WIDTH];

    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE_WIDTH + ty;
    int col = blockIdx.x * TILE_WIDTH + tx;

    Partial Pvalue = ZERO;
    for (int phase = 0; phase < k / TILE_WIDTH; ++phase) {
        Mds[ty][tx] = widen(M[row * ldm + phase * TILE_WIDTH + tx]);
        Nds[ty][tx] = widen(N[(phase * TILE_WIDTH + ty) * ldn + col]);
        __syncthreads();

        for (int i = 0; i < TILE_WIDTH; ++i)
            Pvalue = add(Pvalue, mul(Mds[ty][i], Nds[i][tx]));
        __syncthreads();
    }
    STORE(P[row * ldp + col], Pvalue);
}
