// buffered: a TM x TN tile of P a block from strips of KC of k, double-buffered: while one strip is multiplied, the next one is loaded
// through registers. A thread computes RM x RN cells, for reuse in registers: for stacks of products of a few dozen to a few hundred
// rows and columns. Split-K over GROUPS groups of threads, which take every GROUPS-th k of a strip, and over the blocks of a cluster;
// their sums are added up in order.
//
// Layout: M and N are contiguous along k or across it, as *_ALONG_K say, of any alignment. A strip in shared memory is contiguous
//   across k; a thread reads pieces of four, neighbouring lanes read neighbouring pieces.
// Edges: outside M and N the last line is read again, and its results are not stored; nothing is read beyond k.
// Barrier: one a strip. After it this strip is complete, and the one before has been read.

#define UPS (TM / RM)
#define ACROSS (TN / RN)
#define GROUP (UPS * ACROSS)
#define PIECE_M (RM < 4 ? RM : 4)
#define PIECE_N (RN < 4 ? RN : 4)
#define LANES_ACROSS (ACROSS < 8 ? ACROSS : 8)
#define PITCH_M (TM + 4)
#define PITCH_N (TN + 4)
#define BUFFER (KC * (PITCH_M + PITCH_N))
#define SIDE 8  // neighbouring threads along k, where the operand is contiguous along k

static_assert(GROUP % 32 == 0 && UPS % (32 / LANES_ACROSS) == 0, "whole warps make the tile");

extern __shared__ __align__(128) unsigned char memory[];

template <int COUNT> struct __align__(COUNT * sizeof(Partial)) Piece { Partial of[COUNT]; };

// One operand of the tile, WIDE lines: a thread's loads of a strip.
template <int WIDE, bool ALONG> struct Lines {
    static constexpr int PITCH = WIDE + 4;
    static constexpr int TEAMS = ALONG ? THREADS / SIDE : THREADS;
    static constexpr int AT_ONCE = TEAMS < WIDE ? TEAMS : WIDE;  // lines
    static constexpr int DEEP = THREADS / AT_ONCE;               // of k, at once
    static constexpr int ROUNDS = WIDE / AT_ONCE, STEPS = KC / DEEP;
    static_assert(ROUNDS * AT_ONCE == WIDE && STEPS * DEEP == KC, "every thread loads as much as every other");

    const Element* from;
    long long next;      // elements from strip to strip
    int offset[ROUNDS];  // of a line, from the first
    int line, at, step;  // the first load's line and k; elements from one k of a line to the next one loaded
    Element held[ROUNDS][STEPS];

    __device__ __forceinline__ Lines(const Element* first, int lines, long long lead) {
        int t = threadIdx.x;
        if (ALONG) {
            line = t / SIDE % AT_ONCE;
            at = t % SIDE + SIDE * (t / SIDE / AT_ONCE);
            from = first + at;
            step = DEEP;
            next = KC;
        } else {
            line = t % AT_ONCE;
            at = t / AT_ONCE;
            from = first + at * lead;
            step = DEEP * (int)lead;
            next = KC * lead;
        }
        #pragma unroll
        for (int i = 0; i < ROUNDS; ++i) offset[i] = min(line + i * AT_ONCE, lines - 1) * (ALONG ? (int)lead : 1);
    }

    // With `left` of k left.
    __device__ __forceinline__ void load(int left) {
        if (left >= KC) {
            #pragma unroll
            for (int i = 0; i < ROUNDS; ++i)
                #pragma unroll
                for (int j = 0; j < STEPS; ++j) held[i][j] = from[offset[i] + j * step];
        } else {
            #pragma unroll
            for (int i = 0; i < ROUNDS; ++i)
                #pragma unroll
                for (int j = 0; j < STEPS; ++j)
                    if (at + j * DEEP < left) held[i][j] = from[offset[i] + j * step];
        }
        from += next;
    }

    __device__ __forceinline__ void keep(Partial* strip) const {
        #pragma unroll
        for (int i = 0; i < ROUNDS; ++i)
            #pragma unroll
            for (int j = 0; j < STEPS; ++j) strip[(at + j * DEEP) * PITCH + line + i * AT_ONCE] = widen(held[i][j]);
    }
};

struct Sums {
    Partial of[RM][RN];
    int group, up, left;

    __device__ __forceinline__ Sums() {
        int t = threadIdx.x % GROUP, lane = t % 32, warp = t / 32;
        group = threadIdx.x / GROUP;
        up = (lane / LANES_ACROSS + 32 / LANES_ACROSS * (warp / (ACROSS / LANES_ACROSS))) * PIECE_M;
        left = (lane % LANES_ACROSS + LANES_ACROSS * (warp % (ACROSS / LANES_ACROSS))) * PIECE_N;
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < RN; ++j) of[i][j] = ZERO;
    }

    static __device__ __forceinline__ int row(int i) { return i / PIECE_M * (UPS * PIECE_M) + i % PIECE_M; }
    static __device__ __forceinline__ int column(int j) { return j / PIECE_N * (ACROSS * PIECE_N) + j % PIECE_N; }

    __device__ __forceinline__ void take_one(const Partial* m, const Partial* n) {
        Piece<PIECE_M> x[RM / PIECE_M];
        Piece<PIECE_N> y[RN / PIECE_N];
        #pragma unroll
        for (int i = 0; i < RM / PIECE_M; ++i) x[i] = *reinterpret_cast<const Piece<PIECE_M>*>(m + i * (UPS * PIECE_M));
        #pragma unroll
        for (int j = 0; j < RN / PIECE_N; ++j) y[j] = *reinterpret_cast<const Piece<PIECE_N>*>(n + j * (ACROSS * PIECE_N));
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < RN; ++j)
                of[i][j] = add(of[i][j], mul(x[i / PIECE_M].of[i % PIECE_M], y[j / PIECE_N].of[j % PIECE_N]));
    }

    // A strip with `deep` of k.
    __device__ __forceinline__ void take(const Partial* strip, int deep) {
        const Partial* m = strip + group * PITCH_M + up;
        const Partial* n = strip + KC * PITCH_M + group * PITCH_N + left;
        if (deep >= KC) {
            #pragma unroll
            for (int p = 0; p < KC; p += GROUPS) take_one(m + p * PITCH_M, n + p * PITCH_N);
        } else {
            #pragma unroll 1
            for (int p = 0; p < deep - group; p += GROUPS) take_one(m + p * PITCH_M, n + p * PITCH_N);
        }
    }

    // This group's sums to shared memory.
    __device__ __forceinline__ void gather(Partial* parts, bool transposed) const {
        parts += group * (TM * TN);
        #pragma unroll
        for (int i = 0; i < RM; ++i)
            #pragma unroll
            for (int j = 0; j < RN; j += PIECE_N) {
                int down = up + row(i), right = left + column(j);
                if (transposed) {
                    #pragma unroll
                    for (int e = 0; e < PIECE_N; ++e) parts[(right + e) * TM + down] = of[i][j + e];
                } else {
                    Piece<PIECE_N> piece;
                    #pragma unroll
                    for (int e = 0; e < PIECE_N; ++e) piece.of[e] = of[i][j + e];
                    *reinterpret_cast<Piece<PIECE_N>*>(parts + down * TN + right) = piece;
                }
            }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) buffered(
    const Element* __restrict__ M, const Element* __restrict__ N, Result* P, int m, int k, int n,
    long long lead_m, long long lead_n, long long p_row, long long p_col, int p_transposed, int tiles_n, int piece, int accumulate,
    long long step_M, long long step_N, long long step_P)
{
    wait_on_dependent_grids();
    launch_dependent_grids();
    Partial* buffers = reinterpret_cast<Partial*>(memory);
    int blocks = cluster_blocks(), rank = cluster_rank(), tile = blockIdx.x / blocks;
    int row0 = tile / tiles_n * TM, col0 = tile % tiles_n * TN;
    int from = min(rank * piece, k), left = min(piece, k - from);
    M += blockIdx.y * step_M + (M_ALONG_K ? row0 * lead_m + from : from * lead_m + row0);
    N += blockIdx.y * step_N + (N_ALONG_K ? col0 * lead_n + from : from * lead_n + col0);
    P += blockIdx.y * step_P;
    Lines<TM, M_ALONG_K> of_m(M, m - row0, lead_m);
    Lines<TN, N_ALONG_K> of_n(N, n - col0, lead_n);
    Sums sums;

    if (left > 0) {
        of_m.load(left);
        of_n.load(left);
        of_m.keep(buffers);
        of_n.keep(buffers + KC * PITCH_M);
    }
    __syncthreads();
    for (int here = 0; left > 0; left -= KC, here ^= 1) {
        Partial* other = buffers + (here ^ 1) * BUFFER;
        if (left > KC) {
            of_m.load(left - KC);
            of_n.load(left - KC);
        }
        sums.take(buffers + here * BUFFER, left);
        if (left > KC) {
            of_m.keep(other);
            of_n.keep(other + KC * PITCH_M);
        }
        __syncthreads();
    }

    sums.gather(buffers, p_transposed);
    store_tile(buffers, blocks, rank, p_transposed, P, row0, col0, m, n, p_row, p_col, accumulate);
}
