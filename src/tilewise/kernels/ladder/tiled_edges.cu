// tiled_edges: tiled for any size. A cell of a tile that lies outside its matrix is filled, never loaded.
//
// Layout: as in tiled; the last tile of a row or column may stick out of its matrix (an edge).
// Fill: PAD_M and PAD_N, with mul(PAD_M, PAD_N) == ZERO, so the last phase adds nothing where there is nothing.
// Barrier: as in tiled. A thread that stores no element of P still loads, fills and waits with its block.

extern "C" __global__ void tiled_edges(
    const Element* __restrict__ M, const Element* __restrict__ N, Result* __restrict__ P,
    int m, int k, int n, Index ldm, Index ldn, Index ldp)
{
    __shared__ Partial Mds[TILE_WIDTH][TILE_WIDTH];
    __shared__ Partial Nds[TILE_WIDTH][TILE_WIDTH];

    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE_WIDTH + ty;
    int col = blockIdx.x * TILE_WIDTH + tx;

    Partial Pvalue = ZERO;
    for (int phase = 0; phase < (k + TILE_WIDTH - 1) / TILE_WIDTH; ++phase) {
        if (row < m && phase * TILE_WIDTH + tx < k)
            Mds[ty][tx] = widen(M[row * ldm + phase * TILE_WIDTH + tx]);
        else
            Mds[ty][tx] = PAD_M;
        if (phase * TILE_WIDTH + ty < k && col < n)
            Nds[ty][tx] = widen(N[(phase * TILE_WIDTH + ty) * ldn + col]);
        else
            Nds[ty][tx] = PAD_N;
        __syncthreads();

        for (int i = 0; i < TILE_WIDTH; ++i)
            Pvalue = add(Pvalue, mul(Mds[ty][i], Nds[i][tx]));
        __syncthreads();
    }
    if (row < m && col < n)
        STORE(P[row * ldp + col], Pvalue);
}
