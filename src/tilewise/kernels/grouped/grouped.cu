// grouped: groups of rows whose sizes only the card knows, over any algebra; a block makes 64 x 64 of P.
//
// Layout: any strides. With BY_K, blockIdx.y is the group: member blockIdx.y of P adds up the k from offsets[y - 1] on, to
//   offsets[y]. Else tiles stand in `walk` (walk_groups.cu): rows of one group each, whose N lies step_N further for each group;
//   rows of no group (-1) get ZERO.
// Phases: 16 of k; the tiles of M and N in shared memory are padded with the fill outside of k, rows and columns.
// Barrier: before a tile is used, and before it is filled again. A thread makes 4 x 4 cells, 16 apart.

#define SIDE 64
#define PHASE 16

static __device__ __forceinline__ int clamped_end(const Offset* offsets, int group, int rows) {
    long long end = group < 0 ? 0 : (long long)offsets[group];
    return (int)max(0ll, min(end, (long long)rows));
}

extern "C" __global__ void __launch_bounds__(256) grouped(
    const Element* M, const Element* N, Result* P, const void* groups, int m, int k, int n,
    long long m_row, long long m_col, long long n_row, long long n_col, long long p_row, long long p_col,
    long long step_N, long long step_P)
{
    __shared__ Partial tile_m[SIDE][PHASE + 1], tile_n[PHASE][SIDE + 1];
    int across = (n + SIDE - 1) / SIDE, down = blockIdx.x / across, left = blockIdx.x % across * SIDE;
    int top = down * SIDE, bottom = m, from = 0, to = k;
#if BY_K
    from = clamped_end(static_cast<const Offset*>(groups), (int)blockIdx.y - 1, k);
    to = clamped_end(static_cast<const Offset*>(groups), blockIdx.y, k);
    P += blockIdx.y * step_P;
#else
    const int* walk = static_cast<const int*>(groups);
    if (down >= walk[0]) return;
    int4 piece = reinterpret_cast<const int4*>(walk)[1 + down];
    top = piece.y;
    bottom = piece.z;
    if (piece.x < 0) to = 0;
    N += max(0, piece.x) * step_N;
#endif
    Partial sums[4][4];
    #pragma unroll
    for (int i = 0; i < 16; ++i) sums[i / 4][i % 4] = ZERO;
    int row = threadIdx.x / 16, column = threadIdx.x % 16;
    for (int start = from; start < to; start += PHASE) {
        for (int i = threadIdx.x; i < SIDE * PHASE; i += 256) {
            int r = K_ALONG_M ? i / PHASE : i % SIDE, s = K_ALONG_M ? i % PHASE : i / SIDE;
            bool inside = top + r < bottom && start + s < to;
            tile_m[r][s] = inside ? widen(M[(top + r) * m_row + (start + s) * m_col]) : PAD_M;
            int c = K_ALONG_N ? i / PHASE : i % SIDE, d = K_ALONG_N ? i % PHASE : i / SIDE;
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
