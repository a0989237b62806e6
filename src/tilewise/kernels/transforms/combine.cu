// combine: adds up the planes of the pieces of k, in the order of k: the same bits in every run.
//
// Layout: SHARE warps make 32 cells of P; each takes pieces that follow each other, and their sums meet in order. One warp
//   alone where pieces are few: then it is cells that keep the card busy.
// Barrier: one, before the first warp of a share adds up its sums.

#define WARPS 8
#define AT_ONCE 8  // loads in flight together

extern "C" __global__ void __launch_bounds__(32 * WARPS) combine(
    const Partial* __restrict__ planes, Result* P,
#if ARG
    const Where* __restrict__ planes_where, Where* Pwhere, long long w_row, long long w_col,
#endif
    int m, int n, long long plane_lead, long long p_row, long long p_col, int pieces, const unsigned* verdict,
    unsigned wanted, int accumulate)
{
    launch_dependent_grids();
    wait_on_dependent_grids();
    if (verdict && *verdict != wanted) return;  // predicated off
    __shared__ Partial meeting[WARPS][32];
#if ARG
    __shared__ Where meeting_where[WARPS][32];
#endif
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = warp % SHARE;
    long long cell = blockIdx.x * (32ll * WARPS / SHARE) + warp / SHARE * 32 + lane;
    bool inside = cell < (long long)m * n;
    long long row = inside ? cell / n : 0, col = inside ? cell % n : 0;
    long long at = row * plane_lead + col, plane = m * plane_lead;
    int each = (pieces + SHARE - 1) / SHARE, first = min(part * each, pieces), stop = min(first + each, pieces);

    Partial value = ZERO;
#if ARG
    Where where = -1;
#endif
    for (int piece = first; piece < stop; piece += AT_ONCE) {
        Partial next[AT_ONCE];
        #pragma unroll
        for (int i = 0; i < AT_ONCE; ++i)
            next[i] = piece + i < stop ? planes[(piece + i) * plane + at] : (Partial)ZERO;
        #pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            if (piece + i >= stop) break;
#if ARG
            if (BETTER(next[i], value)) { value = next[i]; where = planes_where[(piece + i) * plane + at]; }
#else
            value = piece + i == first ? next[i] : add(value, next[i]);
#endif
        }
    }
    meeting[warp][lane] = value;
#if ARG
    meeting_where[warp][lane] = where;
#endif
    __syncthreads();
    if (part || !inside) return;
    for (int w = 1; w < SHARE && w * each < pieces; ++w) {
#if ARG
        if (BETTER(meeting[warp + w][lane], value)) { value = meeting[warp + w][lane]; where = meeting_where[warp + w][lane]; }
#else
        value = add(value, meeting[warp + w][lane]);
#endif
    }
#if ARG
    Pwhere[row * w_row + col * w_col] = where;
#endif
    STORE(P[row * p_row + col * p_col], value);
}
