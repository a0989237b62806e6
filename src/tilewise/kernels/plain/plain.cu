// plain: any semiring on the plain cores; warps of 2-D register tiles, fed by asynchronous copies STAGES deep.
//
// Layout: a block of WARPS_M x WARPS_N warps makes BLOCK_M x BLOCK_N of P, DEPTH of k a phase. An operand lies in shared
//   memory as it lies outside, so that copies are as wide as its alignment allows, and threads read it as 16-byte Quads:
//   - across k (its lines run along m or n): Nds[kk] holds BLOCK_N words. A thread's Quads are LANES_N Quads apart:
//     neighbours read neighbours.
//   - ALONG_K: Mds[row] holds DEPTH words of k and a Quad of nothing, which spreads the rows over the banks. A thread's
//     rows are LANES_M apart, and a Quad of each serves QUAD steps.
// Edges: words of rows and columns outside are filled with 0, and what they make is not stored; warps
//   with nothing inside do not compute. A last phase with less than DEPTH of k runs that many steps.
// Barrier: one a phase. Behind it this phase's tiles are there for all, and the tiles of the phase before are used up:
//   only then are they copied over.
// The sum of one cell of P is a Sum; `step` takes it on by one word of M and of N, `finish` makes a Partial of it.
// gridDim.z pieces of k make one plane of sums each, which `combine` adds up in order.

#define THREADS (WARPS_M * WARPS_N * 32)
#define BLOCK_M (WARPS_M * LANES_M * TM)
#define BLOCK_N (WARPS_N * LANES_N * TN)
#define QUAD (16 / (int)sizeof(Word))
#define LINE_M (M_ALONG_K ? DEPTH + QUAD : BLOCK_M)
#define LINE_N (N_ALONG_K ? DEPTH + QUAD : BLOCK_N)
#define TILE_M ((M_ALONG_K ? BLOCK_M : DEPTH) * LINE_M * (int)sizeof(Word))
#define TILE_N ((N_ALONG_K ? BLOCK_N : DEPTH) * LINE_N * (int)sizeof(Word))
#define STAGE (TILE_M + TILE_N)

struct __align__(16) Quad { Word lane[QUAD]; };
struct __align__(QUAD * sizeof(Result)) ResultQuad { Result lane[QUAD]; };
struct __align__(16) Chunk { unsigned word[4]; };
struct __align__(8) Half { unsigned word[2]; };

extern __shared__ __align__(16) unsigned char memory[];

// BYTES from global to shared memory at `to`; with CHECKED only if `valid`, the first `valid` of them, and then zeros
template <int BYTES, bool CHECKED>
static __device__ __forceinline__ void copy(unsigned to, const void* from, int valid)
{
#if __CUDA_ARCH__ >= 800
    to += (unsigned)__cvta_generic_to_shared(memory);
    if (BYTES == 16 && CHECKED)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(valid) : "memory");
    else if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(from) : "memory");
    else if (CHECKED)
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                     :: "r"(to), "l"(from), "n"(BYTES), "r"(valid) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" :: "r"(to), "l"(from), "n"(BYTES) : "memory");
#else
    if (CHECKED) {
        #pragma unroll
        for (int i = 0; i < BYTES; i += 4)
            *(unsigned*)(memory + to + i) = i < valid ? *(const unsigned*)((const char*)from + i) : 0u;
    }
    else if (BYTES == 16) *(Chunk*)(memory + to) = *(const Chunk*)from;
    else if (BYTES == 8) *(Half*)(memory + to) = *(const Half*)from;
    else *(unsigned*)(memory + to) = *(const unsigned*)from;
#endif
}

static __device__ __forceinline__ void close_group()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// all but the newest `pending` groups of this thread's copies have arrived
template <int pending>
static __device__ __forceinline__ void wait_groups()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" :: "n"(pending) : "memory");
#endif
}

// One operand on its way: DEPTH x WIDTH words of it a phase, VECTOR words a copy, from `from` on for this thread.
template <int WIDTH, int LINE, int VECTOR, bool ALONG_K>
struct Source {
    static constexpr int SIZE = (int)sizeof(Word) * VECTOR;
    static constexpr int LINES = ALONG_K ? WIDTH : DEPTH, LENGTH = ALONG_K ? DEPTH : WIDTH;
    static constexpr int ACROSS = LENGTH / VECTOR;  // copies of one line
    static constexpr int EACH = ACROSS > THREADS ? ACROSS / THREADS : 1;  // of them by one thread
    static constexpr int STRIDE = ACROSS > THREADS ? 1 : THREADS / ACROSS;  // lines between its copies

    const Word* from;
    long long lead;
    int line, at;  // of this thread's first copy

    __device__ __forceinline__ Source(const Word* operand, long long lead_, int first, int begin) : lead(lead_)
    {
        line = (int)threadIdx.x / ACROSS;
        at = (int)threadIdx.x % (ACROSS > THREADS ? THREADS : ACROSS) * VECTOR;
        from = operand + ((ALONG_K ? first : begin) + line) * lead + (ALONG_K ? begin : first) + at;
    }

    // the phase that starts here; `inside` words across and `left` of k are left of the operand
    template <bool CHECKED>
    __device__ __forceinline__ void copy_phase(unsigned tile, const Word* operand, int inside, int left) const
    {
        unsigned to = tile + (line * LINE + at) * (int)sizeof(Word);
        int lines = ALONG_K ? inside : left, length = ALONG_K ? left : inside;
        #pragma unroll
        for (int i = 0; i < LINES; i += STRIDE) {
            if (LINES % STRIDE && line + i >= LINES) break;
            #pragma unroll
            for (int e = 0; e < EACH; ++e) {
                const Word* there = from + i * lead + e * THREADS * VECTOR;
                int more = line + i < lines ? length - at - e * THREADS * VECTOR : 0;
                int valid = more <= 0 ? 0 : more >= VECTOR ? SIZE : more * (int)sizeof(Word);
                copy<SIZE, CHECKED>(
                    to + (i * LINE + e * THREADS * VECTOR) * (int)sizeof(Word), CHECKED && !valid ? operand : there, valid);
            }
        }
    }

    __device__ __forceinline__ void next_phase() { from += ALONG_K ? DEPTH : DEPTH * lead; }
};

// what a thread holds of one operand for steps of k: COUNT words for one kk, or Quads along k for QUAD of them
template <int COUNT, int LANES, int LINE, bool ALONG_K>
struct Fragment {
    Quad quads[ALONG_K ? COUNT : COUNT / QUAD];

    // `tile` is at this thread's first word
    __device__ __forceinline__ void read(const Word* tile, int kk)
    {
        #pragma unroll
        for (int i = 0; i < (ALONG_K ? COUNT : COUNT / QUAD); ++i)
            quads[i] = *reinterpret_cast<const Quad*>(tile + (ALONG_K ? i * LANES * LINE + kk : kk * LINE + i * LANES * QUAD));
    }

    __device__ __forceinline__ Word word(int i, int kk) const
    {
        return ALONG_K ? quads[i].lane[kk % QUAD] : quads[i / QUAD].lane[i % QUAD];
    }

    // one word, for the steps of a last phase that is not whole
    static __device__ __forceinline__ Word one(const Word* tile, int i, int kk)
    {
        return tile[ALONG_K ? i * LANES * LINE + kk : kk * LINE + i / QUAD * (LANES * QUAD) + i % QUAD];
    }

    // where word i lies across the tile, from this thread's first
    static __device__ __forceinline__ int place(int i)
    {
        return ALONG_K ? i * LANES : i / QUAD * (LANES * QUAD) + i % QUAD;
    }
};

typedef Fragment<TM, LANES_M, LINE_M, M_ALONG_K> FragmentM;
typedef Fragment<TN, LANES_N, LINE_N, N_ALONG_K> FragmentN;

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) plain(
    const Word* __restrict__ M, const Word* __restrict__ N, Result* P,
#if ARG
    Where* Pwhere, long long ldw,
#endif
    int m, int k, int n, long long ldm, long long ldn, long long ldp, int k_each)
{
    // blocks walk GROUP rows of tiles column by column, so that what they read together stays in L2
    int tiles_m = (m + BLOCK_M - 1) / BLOCK_M, tiles_n = (n + BLOCK_N - 1) / BLOCK_N;
    int band = blockIdx.x / (GROUP * tiles_n), within = blockIdx.x % (GROUP * tiles_n);
    int high = min(GROUP, tiles_m - band * GROUP);
    int top = (band * GROUP + within % high) * BLOCK_M, left = within / high * BLOCK_N;

    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int lane_m = LANE_M, lane_n = LANE_N;
    int row = warp / WARPS_N * (LANES_M * TM), col = warp % WARPS_N * (LANES_N * TN);
    bool busy = top + row < m && left + col < n;
    row += lane_m * (M_ALONG_K ? 1 : QUAD);
    col += lane_n * (N_ALONG_K ? 1 : QUAD);

    int begin = blockIdx.z * k_each, stop = min(k, begin + k_each);
    int phases = (stop - begin + DEPTH - 1) / DEPTH;
    bool whole = top + BLOCK_M <= m && left + BLOCK_N <= n;

    Sum Pvalue[TM][TN];
    #pragma unroll
    for (int i = 0; i < TM; ++i)
        #pragma unroll
        for (int j = 0; j < TN; ++j)
            Pvalue[i][j] = start();

    Source<BLOCK_M, LINE_M, VECTOR_M, M_ALONG_K> from_m(M, ldm, top, begin);
    Source<BLOCK_N, LINE_N, VECTOR_N, N_ALONG_K> from_n(N, ldn, left, begin);
    int filled = begin;  // copies of k below are on their way
    unsigned filling = 0;
    #pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (filled < stop) {
            from_m.copy_phase<true>(filling, M, m - top, stop - filled);
            from_n.copy_phase<true>(filling + TILE_M, N, n - left, stop - filled);
        }
        close_group();
        filled += DEPTH;
        filling += STAGE;
        from_m.next_phase();
        from_n.next_phase();
    }
    unsigned using_stage = 0;
    for (int phase = 0; phase < phases; ++phase) {
        wait_groups<STAGES - 2>();
        __syncthreads();
        if (whole && filled + DEPTH <= stop) {
            from_m.copy_phase<false>(filling, M, 0, 0);
            from_n.copy_phase<false>(filling + TILE_M, N, 0, 0);
        } else if (filled < stop) {
            from_m.copy_phase<true>(filling, M, m - top, stop - filled);
            from_n.copy_phase<true>(filling + TILE_M, N, n - left, stop - filled);
        }
        close_group();
        filled += DEPTH;
        filling = filling + STAGE == STAGES * STAGE ? 0 : filling + STAGE;
        from_m.next_phase();
        from_n.next_phase();
        const Word* Mds = reinterpret_cast<const Word*>(memory + using_stage) + row * (M_ALONG_K ? LINE_M : 1);
        const Word* Nds = reinterpret_cast<const Word*>(memory + using_stage + TILE_M) + col * (N_ALONG_K ? LINE_N : 1);
        int at = begin + phase * DEPTH, steps = stop - begin - phase * DEPTH;
        if (busy && steps >= DEPTH) {
            FragmentM f_m[1 + PAIRS];
            FragmentN f_n[1 + PAIRS];
            #pragma unroll
            for (int kk = 0; kk < DEPTH; kk += 1 + PAIRS) {
                #pragma unroll
                for (int h = 0; h <= PAIRS; ++h) {
                    if (!M_ALONG_K || kk % QUAD == 0) f_m[M_ALONG_K ? 0 : h].read(Mds, kk + (M_ALONG_K ? 0 : h));
                    if (!N_ALONG_K || kk % QUAD == 0) f_n[N_ALONG_K ? 0 : h].read(Nds, kk + (N_ALONG_K ? 0 : h));
                }
                #pragma unroll
                for (int i = 0; i < TM; ++i)
                    #pragma unroll
                    for (int j = 0; j < TN; ++j)
#if PAIRS
                        step_pair(Pvalue[i][j], f_m[0].word(i, kk), f_n[0].word(j, kk),
                                  f_m[M_ALONG_K ? 0 : 1].word(i, kk + 1), f_n[N_ALONG_K ? 0 : 1].word(j, kk + 1));
#else
                        step(Pvalue[i][j], f_m[0].word(i, kk), f_n[0].word(j, kk), at + kk);
#endif
            }
        } else if (busy) {
            #pragma unroll 1
            for (int kk = 0; kk < steps; ++kk) {
                Word left_words[TM], right_words[TN];
                #pragma unroll
                for (int i = 0; i < TM; ++i) left_words[i] = FragmentM::one(Mds, i, kk);
                #pragma unroll
                for (int j = 0; j < TN; ++j) right_words[j] = FragmentN::one(Nds, j, kk);
                #pragma unroll
                for (int i = 0; i < TM; ++i)
                    #pragma unroll
                    for (int j = 0; j < TN; ++j)
                        step(Pvalue[i][j], left_words[i], right_words[j], at + kk);
            }
        }
        using_stage = using_stage + STAGE == STAGES * STAGE ? 0 : using_stage + STAGE;
    }
    wait_groups<0>();

    long long plane = blockIdx.z * (long long)m * ldp;  // one for each piece of k
    constexpr int SPAN = N_ALONG_K ? 1 : QUAD;  // cells side by side
    #pragma unroll
    for (int i = 0; i < TM; ++i) {
        int r = top + row + FragmentM::place(i);
        if (r >= m) continue;
        #pragma unroll
        for (int j = 0; j < TN; j += SPAN) {
            int c = left + col + FragmentN::place(j);
            Result* cell = P + plane + r * ldp + c;
            Partial value[SPAN];
            #pragma unroll
            for (int e = 0; e < SPAN; ++e)
                value[e] = finish(Pvalue[i][j + e]);
            if (P_ALIGNED && SPAN == QUAD && c + QUAD <= n) {
                ResultQuad quad;
                if (ACCUMULATE) quad = *reinterpret_cast<ResultQuad*>(cell);
                #pragma unroll
                for (int e = 0; e < SPAN; ++e)
                    STORE(quad.lane[e], value[e]);
                *reinterpret_cast<ResultQuad*>(cell) = quad;
            } else {
                #pragma unroll
                for (int e = 0; e < SPAN; ++e)
                    if (c + e < n) STORE(cell[e], value[e]);
            }
#if ARG
            #pragma unroll
            for (int e = 0; e < SPAN; ++e)
                if (c + e < n) Pwhere[(blockIdx.z * (long long)m + r) * ldw + c + e] = Pvalue[i][j + e].where;
#endif
        }
    }
}
