// tile: 64 x 64 of P from tiles of M and N in shared memory, over any algebra and strides.
//
// Phases: 16 of k; outside the operands the tiles in shared memory have the fill.
// Barrier: before a tile is read, and before it is overwritten. A thread computes 4 x 4 cells, 16 apart.

#define SIDE 64
#define PHASE 16

// The tile at row `top` and column `left` of P, up to `bottom` and n, over k in [from, to). `along_m`, `along_n`: whether M and N are
// contiguous along k.
static __device__ __forceinline__ void make_tile(
    const Element* M, const Element* N, Result* P, int top, int bottom, int left, int n, int from, int to, bool along_m,
    bool along_n, long long m_row, long long m_col, long long n_row, long long n_col, long long p_row, long long p_col)
{
    __shared__ Partial tile_m[SIDE][PHASE + 1], tile_n[PHASE][SIDE + 1];
    Partial sums[4][4];
    #pragma unroll
    for (int i = 0; i < 16; ++i) sums[i / 4][i % 4] = ZERO;
    int row = threadIdx.x / 16, column = threadIdx.x % 16;
    for (int start = from; start < to; start += PHASE) {
        for (int i = threadIdx.x; i < SIDE * PHASE; i += 256) {
            int r = along_m ? i / PHASE : i % SIDE, s = along_m ? i % PHASE : i / SIDE;
            bool inside = top + r < bottom && start + s < to;
            tile_m[r][s] = inside ? widen(M[(top + r) * m_row + (start + s) * m_col]) : PAD_M;
            int c = along_n ? i / PHASE : i % SIDE, d = along_n ? i % PHASE : i / SIDE;
            inside = left + c < n && start + d < to;
            tile_n[d][c] = inside ? widen(N[(start + d) * n_row + (left + c) * n_col]) : PAD_N;
        }
        __syncthreads();
        #pragma unroll 4
        for (int s = 0; s < PHASE; ++s) {
            Partial of_m[4], of_n[4];
            #pragma unroll
            for (int i = 0; i < 4; ++i) of_m[i] = tile_m[row + 16 * i][s], of_n[i] = tile_n[s][column + 16 * i];
            #pragma unroll
            for (int i = 0; i < 16; ++i) sums[i / 4][i % 4] = add(sums[i / 4][i % 4], mul(of_m[i / 4], of_n[i % 4]));
        }
        __syncthreads();
    }
    #pragma unroll
    for (int i = 0; i < 16; ++i) {
        int r = top + row + 16 * (i / 4), c = left + column + 16 * (i % 4);
        if (r < bottom && c < n) STORE(P[r * p_row + c * p_col], sums[i / 4][i % 4]);
    }
}
