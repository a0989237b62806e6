// direct: a TM x TN tile of P a block from strips of KC of k in one buffer: for products so small that filling a pipeline takes longer
// than the work. All loads of a strip are issued before the first is used, those of the next strip before this one is multiplied.
// Split-K over GROUPS groups of threads, which take every GROUPS-th k of a strip, and over the blocks of a cluster; sums are added up in
// order.
//
// Layout: any strides; threads read neighbours along k or across it, as the arguments say. Outside M and N the last element is read again,
//   and its results are not stored.
// Barrier: two a strip: when it is complete, and before the next one overwrites it.

#define ACROSS (TN / RN)
#define GROUP ((TM / RM) * ACROSS)
#define PAD (16 / (int)sizeof(Partial))  // rows aligned to 16 bytes, no bank conflicts for stores down a column
#define LOADS_M (TM * KC / THREADS)
#define LOADS_N (TN * KC / THREADS)
#define SIDE 8  // neighbouring threads along k, where the operand is contiguous along k

template <int COUNT> struct __align__(COUNT * sizeof(Partial) < 16 ? COUNT * sizeof(Partial) : 16) Several { Partial of[COUNT]; };

struct Place { int k, line; };

// The position of a thread's i-th element in a strip of WIDE lines.
template <int WIDE> static __device__ __forceinline__ Place place(int i, bool along_k) {
    int t = threadIdx.x;
    if (along_k) {  // SIDE neighbours along k, then over the lines
        const int lines = THREADS / SIDE < WIDE ? THREADS / SIDE : WIDE, deep = SIDE * (THREADS / SIDE / lines);
        int line = t / SIDE % lines, k = t % SIDE + SIDE * (t / SIDE / lines);
        return {k + i % (KC / deep) * deep, line + i / (KC / deep) * lines};
    }
    const int wide = THREADS < WIDE ? THREADS : WIDE, deep = THREADS / wide;
    return {t / wide + i % (KC / deep) * deep, t % wide + i / (KC / deep) * wide};
}

template <int WIDE, int COUNT> static __device__ __forceinline__ void load(
    Element (&held)[COUNT], const Element* X, int first, int lines, int k0, int k, long long line_step, long long k_step, bool along_k)
{
    #pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        Place at = place<WIDE>(i, along_k);
        held[i] = X[min(first + at.line, lines - 1) * line_step + min(k0 + at.k, k - 1) * k_step];
    }
}

template <int WIDE, int COUNT> static __device__ __forceinline__ void keep(
    Partial (&strip)[KC][WIDE + PAD], const Element (&held)[COUNT], bool along_k)
{
    #pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        Place at = place<WIDE>(i, along_k);
        strip[at.k][at.line] = widen(held[i]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) direct(
    const Element* __restrict__ M, const Element* __restrict__ N, Result* P, int m, int k, int n,
    long long m_row, long long m_col, long long n_row, long long n_col, long long p_row, long long p_col,
    int m_along_k, int n_along_k, int p_transposed, int tiles_n, int piece, int accumulate,
    long long step_M, long long step_N, long long step_P)
{
    wait_on_dependent_grids();
    launch_dependent_grids();
    __shared__ union Shared {
        struct { Partial M[KC][TM + PAD], N[KC][TN + PAD]; } strip;
        Partial sums[GROUPS][TM * TN];
    } shared;
    M += blockIdx.y * step_M;
    N += blockIdx.y * step_N;
    P += blockIdx.y * step_P;
    int blocks = cluster_blocks(), rank = cluster_rank(), tile = blockIdx.x / blocks;
    int row0 = tile / tiles_n * TM, col0 = tile % tiles_n * TN;
    int from = min(rank * piece, k), till = min(from + piece, k);
    int group = threadIdx.x / GROUP, up = threadIdx.x % GROUP / ACROSS * RM, left = threadIdx.x % ACROSS * RN;

    Partial sums[RM][RN];
    #pragma unroll
    for (int i = 0; i < RM; ++i)
        #pragma unroll
        for (int j = 0; j < RN; ++j) sums[i][j] = ZERO;

    Element held_m[LOADS_M], held_n[LOADS_N];
    if (from < till) {
        load<TM>(held_m, M, row0, m, from, till, m_row, m_col, m_along_k);
        load<TN>(held_n, N, col0, n, from, till, n_col, n_row, n_along_k);
    }
    for (int k0 = from; k0 < till; k0 += KC) {
        keep<TM>(shared.strip.M, held_m, m_along_k);
        keep<TN>(shared.strip.N, held_n, n_along_k);
        __syncthreads();
        if (k0 + KC < till) {
            load<TM>(held_m, M, row0, m, k0 + KC, till, m_row, m_col, m_along_k);
            load<TN>(held_n, N, col0, n, k0 + KC, till, n_col, n_row, n_along_k);
        }
        int deep = min(KC, till - k0);
        #pragma unroll 8
        for (int p = group; p < deep; p += GROUPS) {
            Several<RM> x = *(const Several<RM>*)&shared.strip.M[p][up];
            Several<RN> y = *(const Several<RN>*)&shared.strip.N[p][left];
            #pragma unroll
            for (int i = 0; i < RM; ++i)
                #pragma unroll
                for (int j = 0; j < RN; ++j) sums[i][j] = add(sums[i][j], mul(x.of[i], y.of[j]));
        }
        __syncthreads();
    }

    #pragma unroll
    for (int i = 0; i < RM; ++i)
        #pragma unroll
        for (int j = 0; j < RN; ++j)
            shared.sums[group][p_transposed ? (left + j) * TM + up + i : (up + i) * TN + left + j] = sums[i][j];
    store_tile(shared.sums[0], blocks, rank, p_transposed, P, row0, col0, m, n, p_row, p_col, accumulate);
}
