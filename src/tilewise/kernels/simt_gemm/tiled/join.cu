// join: adds up the pieces of k of P's last tiles, in the order of k: the same bits in every run.
//
// Names: a plane has one piece of all these tiles, tile by tile; the first is tile number `whole` of P.
// Layout: THREADS * EACH cells of one tile a block, EACH of them a thread, THREADS apart, loaded together.

#define THREADS 256
#define EACH 8
#define CELLS (BLOCK_M * BLOCK_N)
#define SHARES (CELLS / (THREADS * EACH))  // blocks of a tile

extern "C" __global__ void __launch_bounds__(THREADS) join(
    const Partial* __restrict__ planes, Result* P, int whole, int m, int n, long long ldp, int pieces)
{
    static_assert(CELLS % (THREADS * EACH) == 0, "blocks divide a tile");
    launch_dependent_grids();
    wait_on_dependent_grids();
    Corner tile(whole + blockIdx.x / SHARES, m, n);
    int cell = blockIdx.x % SHARES * (THREADS * EACH) + threadIdx.x;
    long long plane = (long long)(tiles_of(m, n) - whole) * CELLS;
    const Partial* from = planes + (long long)(blockIdx.x / SHARES) * CELLS + cell;

    Partial value[EACH];
    #pragma unroll
    for (int i = 0; i < EACH; ++i) value[i] = from[i * THREADS];
    #pragma unroll 2
    for (int piece = 1; piece < pieces; ++piece) {
        from += plane;
        #pragma unroll
        for (int i = 0; i < EACH; ++i) value[i] = add(value[i], from[i * THREADS]);
    }
    #pragma unroll
    for (int i = 0; i < EACH; ++i) {
        int at = cell + i * THREADS, row = tile.top + at / BLOCK_N, col = tile.left + at % BLOCK_N;
        if (row < m && col < n) STORE(P[row * ldp + col], value[i]);
    }
}
