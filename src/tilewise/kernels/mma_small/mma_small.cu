// mma_small: a block makes a TM x TN tile of P on tensor cores, for products too small to fill a card with large tiles.
// Elements come in one by one by asynchronous copies, so any strides will do, KC of k a phase, STAGES phases in shared
// memory; k is cut over the blocks of a cluster, whose sums meet in shared memory and are added up in order.
//
// Layout: a stage holds TM lines of M, then TN lines of N, each KC of k side by side whatever way the operand lies, PITCH
//   apart: fragments of a warp, and copies along k or across it, lie in different banks.
// Edges: what lies outside M and N is filled with 0; P is stored through a guard.
// Barrier: one a phase. Behind it the tiles of this phase are there for all, and those of the phase before are used up,
//   so that copies over them begin.

#define WARPS (WARPS_M * WARPS_N)
#define THREADS (WARPS * 32)
#define MATS (TM / WARPS_M / 16)  // fragments of a warp: 16 rows of M,
#define COLS (TN / WARPS_N / 8)   // and 8 columns of N
#define PITCH (KC + 4)            // elements; KC is whole 16s
#define STAGE ((TM + TN) * PITCH)
#define ACROSS 0  // how an operand is copied: its lines' elements of one k lie side by side,
#define ALONG 1   // or those of one line,
#define VECTORS 2 // 16 bytes at a time

extern __shared__ __align__(128) unsigned char memory[];

// One operand of the tile, LINES lines of it: what a thread copies in a phase, and where to. Copies are as far apart as
// the ones before, so that few registers hold where all of them go.
template <int LINES> struct Operand {
    static constexpr int EIGHTS = LINES / 8, TURNS = EIGHTS > WARPS ? EIGHTS / WARPS : 1, APART = LINES / TURNS;

    const Element* from;          // this thread's first copy of the phase
    long long step, turn, phase;  // elements from one copy to the next, from turn to turn, from phase to phase
    int line, at;                 // of that copy: its line in the tile, its k in the phase
    int line_step, at_step, count;
    int inside, wide;             // lines that the operand has from the tile's first on; whether copies are 16 bytes

    __device__ __forceinline__ Operand(
        const Element* first, long long line_stride, long long k_stride, int lines, int how)
        : turn(APART * line_stride), phase(KC * k_stride), inside(lines), wide(how == VECTORS)
    {
        int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        if (how == ACROSS) {  // a warp takes 8 lines at 4 of k
            const int side = EIGHTS < WARPS ? EIGHTS : WARPS;
            line = warp % side * 8 + lane % 8;
            at = warp / side * 4 + lane / 8;
            line_step = 0;
            at_step = WARPS / side * 4;
            count = KC / at_step;
        } else {  // neighbours along k
            int each = wide ? 16 / SIZE : 1, pieces = KC / each;
            line = threadIdx.x / pieces;
            at = threadIdx.x % pieces * each;
            line_step = THREADS / pieces;
            at_step = 0;
            count = APART / line_step;
        }
        from = first + line * line_stride + at * k_stride;
        step = line_step * line_stride + at_step * k_stride;
    }

    // The copies of one phase into `tile`, `left` of k being left.
    __device__ __forceinline__ void fetch(Element* tile, int left) {
        if (wide) fetch_by<16 / SIZE>(tile, left);
        else fetch_by<1>(tile, left);
        from += phase;
    }

    template <int EACH> __device__ __forceinline__ void fetch_by(Element* tile, int left) const {
        #pragma unroll
        for (int group = 0; group < TURNS; ++group) {
            const Element* there = from + group * turn;
            Element* to = tile + (line + group * APART) * PITCH + at;
            int more = inside - line - group * APART, deep = left - at;
            #pragma unroll 4
            for (int i = 0; i < count; ++i, there += step, to += line_step * PITCH + at_step, more -= line_step, deep -= at_step) {
                int valid = more > 0 ? max(0, min(EACH, deep)) * SIZE : 0;
                copy<EACH * SIZE, true>((unsigned)__cvta_generic_to_shared(to), valid ? there : from, valid);
            }
        }
    }
};

#if SIZE == 8
static __device__ __forceinline__ void read_rows(Word (&to)[4], const Element* tile) {
    const Element* at = tile + threadIdx.x % 32 / 4 * PITCH + threadIdx.x % 4;
    #pragma unroll
    for (int w = 0; w < 4; ++w) to[w] = at[w % 2 * 8 * PITCH + w / 2 * 4];
}

static __device__ __forceinline__ void read_columns(Word (&to)[2], const Element* tile) {
    const Element* at = tile + threadIdx.x % 32 / 4 * PITCH + threadIdx.x % 4;
    #pragma unroll
    for (int w = 0; w < 2; ++w) to[w] = at[w * 4];
}
#else
static __device__ __forceinline__ void read_rows(Word (&to)[4], const Element* tile) {
    const Element* at = tile + threadIdx.x % 32 / 4 * PITCH + threadIdx.x % 4;
    #pragma unroll
    for (int w = 0; w < 4; ++w) {
        to[w] = __float_as_uint(at[w % 2 * 8 * PITCH + w / 2 * 4]);
        round_word(to[w]);
    }
}

static __device__ __forceinline__ void read_columns(Word (&to)[2], const Element* tile) {
    const Element* at = tile + threadIdx.x % 32 / 4 * PITCH + threadIdx.x % 4;
    #pragma unroll
    for (int w = 0; w < 2; ++w) {
        to[w] = __float_as_uint(at[w * 4]);
        round_word(to[w]);
    }
}
#endif

// One phase of a warp: tiles of M and N as they lie in a stage, from the warp's first line on.
static __device__ __forceinline__ void multiply_phase(Element (&sums)[MATS][COLS][4], const Element* m, const Element* n) {
    #pragma unroll
    for (int k = 0; k < KC; k += 8) {
        Word rows[MATS][4], columns[COLS][2];
        #pragma unroll
        for (int i = 0; i < MATS; ++i) read_rows(rows[i], m + i * 16 * PITCH + k);
        #pragma unroll
        for (int j = 0; j < COLS; ++j) read_columns(columns[j], n + j * 8 * PITCH + k);
        #pragma unroll
        for (int i = 0; i < MATS; ++i)
            #pragma unroll
            for (int j = 0; j < COLS; ++j) multiply(sums[i][j], rows[i], columns[j]);
    }
}

// P and what of it lies from the tile on.
struct Target {
    Element* P;
    long long row_step, col_step;
    int rows, cols, accumulate;

    __device__ __forceinline__ void store(int row, int col, Element sum) const {
        if (row >= rows || col >= cols) return;
        Element* to = P + row * row_step + col * col_step;
        *to = accumulate ? *to + sum : sum;
    }
};

// Calls act(row, column, sum) for the cells of the tile that a lane has.
template <typename Act> static __device__ __forceinline__ void each_cell(const Element (&sums)[MATS][COLS][4], Act act) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int top = warp / WARPS_N * (MATS * 16) + lane / 4, left = warp % WARPS_N * (COLS * 8) + lane % 4 * 2;
    #pragma unroll
    for (int i = 0; i < MATS; ++i)
        #pragma unroll
        for (int j = 0; j < COLS; ++j)
            #pragma unroll
            for (int e = 0; e < 4; ++e) act(top + i * 16 + e / 2 * 8, left + j * 8 + e % 2, sums[i][j][e]);
}

// The cluster's blocks add up what each has made of the tile, block by block in order; each stores a share of its cells.
static __device__ __forceinline__ void store_together(
    const Element (&sums)[MATS][COLS][4], const Target& target, int rank, int blocks, bool turned)
{
    Element* mine = reinterpret_cast<Element*>(memory);
    __syncthreads();  // all tiles have been used: their memory takes the sums
    each_cell(sums, [&](int row, int col, Element sum) { mine[turned ? col * (TM + 1) + row : row * (TN + 1) + col] = sum; });
    cluster_meet();
    const int cells = TM * TN;
    for (int cell = rank * THREADS + threadIdx.x; cell < cells; cell += blocks * THREADS) {
        int row = turned ? cell % TM : cell / TN, col = turned ? cell / TM : cell % TN;
        const Element* here = mine + (turned ? col * (TM + 1) + row : row * (TN + 1) + col);
        Element sum = *in_block(here, 0);
        for (int other = 1; other < blocks; ++other) sum += *in_block(here, other);
        target.store(row, col, sum);
    }
    cluster_meet();  // nobody leaves while another reads here
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) mma_small(
    const Element* __restrict__ M, const Element* __restrict__ N, Element* P, int m, int k, int n,
    long long m_row, long long m_col, long long n_row, long long n_col, long long p_row, long long p_col,
    int how_m, int how_n, int accumulate, int tiles_n, int piece, long long step_M, long long step_N, long long step_P)
{
    wait_for_the_one_before();
    let_the_next_start();
    int blocks = cluster_blocks(), rank = cluster_rank(), tile = blockIdx.x / blocks;
    int top = tile / tiles_n * TM, across = tile % tiles_n * TN;
    int begin = min(rank * piece, k), left = min(piece, k - begin), phases = (left + KC - 1) / KC;
    Operand<TM> of_m(M + blockIdx.y * step_M + top * m_row + begin * m_col, m_row, m_col, m - top, how_m);
    Operand<TN> of_n(N + blockIdx.y * step_N + across * n_col + begin * n_row, n_col, n_row, n - across, how_n);
    Element* stages = reinterpret_cast<Element*>(memory);

    Element sums[MATS][COLS][4];
    #pragma unroll
    for (int i = 0; i < MATS * COLS * 4; ++i) sums[i / (COLS * 4)][i / 4 % COLS][i % 4] = 0;

    #pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < phases) {
            of_m.fetch(stages + s * STAGE, left);
            of_n.fetch(stages + s * STAGE + TM * PITCH, left);
            left -= KC;
        }
        close_group();
    }
    int warp = threadIdx.x / 32, mine_m = warp / WARPS_N * (MATS * 16) * PITCH;
    int mine_n = (TM + warp % WARPS_N * (COLS * 8)) * PITCH;
    for (int phase = 0, here = 0, filling = STAGES - 1; phase < phases; ++phase) {
        wait_groups<STAGES - 2>();
        __syncthreads();
        if (left > 0) {
            of_m.fetch(stages + filling * STAGE, left);
            of_n.fetch(stages + filling * STAGE + TM * PITCH, left);
            left -= KC;
        }
        close_group();
        multiply_phase(sums, stages + here * STAGE + mine_m, stages + here * STAGE + mine_n);
        here = here + 1 == STAGES ? 0 : here + 1;
        filling = filling + 1 == STAGES ? 0 : filling + 1;
    }
    Target target = {P + blockIdx.y * step_P + top * p_row + across * p_col, p_row, p_col, m - top, n - across, accumulate};
    if (blocks > 1) store_together(sums, target, rank, blocks, p_row < p_col);
    else each_cell(sums, [&](int row, int col, Element sum) { target.store(row, col, sum); });
}
