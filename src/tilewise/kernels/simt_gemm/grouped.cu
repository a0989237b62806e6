// grouped: groups of rows whose sizes are data on the card, over any algebra; 64 x 64 of P a block.
//
// Layout: any strides. With BY_K, blockIdx.y is the group: member blockIdx.y of P sums k from offsets[y - 1] to offsets[y]. Else `walk`
//   lists the tiles (walk_groups.cu), each with rows of one group, whose N is the matrix number `group`; rows of no group (-1) get ZERO.
// Tiles: see tile.cuh.

static __device__ __forceinline__ int clamped_end(const Offset* offsets, int group, int rows) {
    long long end = group < 0 ? 0 : (long long)offsets[group];
    return (int)max(0ll, min(end, (long long)rows));
}

extern "C" __global__ void __launch_bounds__(256) grouped(
    const Element* M, const Element* N, Result* P, const void* groups, int m, int k, int n,
    long long m_row, long long m_col, long long n_row, long long n_col, long long p_row, long long p_col,
    long long step_N, long long step_P)
{
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
    make_tile(M, N, P, top, bottom, left, n, from, to, K_ALONG_M, K_ALONG_N, m_row, m_col, n_row, n_col, p_row, p_col);
}
