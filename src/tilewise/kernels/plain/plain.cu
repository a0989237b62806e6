// plain: any semiring on the plain cores; warps of 2-D register tiles, fed by asynchronous copies STAGES deep.
//
// Layout: a block of WARPS_M x WARPS_N warps makes BLOCK_M x BLOCK_N of P, DEPTH of k a phase. Both tiles lie in shared
//   memory k by k: Mds[kk] holds BLOCK_M words of M, Nds[kk] BLOCK_N of N, so a thread reads its rows and its columns
//   as 16-byte Quads. A lane's Quads are LANES_M (LANES_N) Quads apart: neighbours read neighbours, no bank twice.
//   An operand whose k lies side by side (ALONG_K) is turned on the way, one word a copy; then rows of the tile are one
//   Quad longer, which spreads the turned words over the banks.
//   UNROLL steps of k stand in the loop: all of a phase would not fit the nearest instruction cache, and that halves
//   the speed.
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
#define LINE_M (BLOCK_M + (M_ALONG_K ? QUAD : 0))
#define LINE_N (BLOCK_N + (N_ALONG_K ? QUAD : 0))
#define TILE_M (DEPTH * LINE_M * (int)sizeof(Word))
#define STAGE (DEPTH * (LINE_M + LINE_N) * (int)sizeof(Word))

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

// One operand on its way: DEPTH x WIDTH words of it a phase, from `from` on for this thread. Its lines run across k:
// vectors of VECTOR words, as they lie. Or along k: then words are turned one by one, 4 lines of 8 words a warp, and no
// two lanes share a bank.
template <int WIDTH, int LINE, int VECTOR, bool ALONG_K>
struct Source {
    static constexpr int SIZE = (int)sizeof(Word) * (ALONG_K ? 1 : VECTOR);
    static constexpr int ACROSS = ALONG_K ? 8 : WIDTH / VECTOR;  // copies of one kk; of 8 words of a line when turned
    static constexpr int EACH = ACROSS > THREADS ? ACROSS / THREADS : 1;  // of them by one thread
    static constexpr int STRIDE = ACROSS > THREADS ? 1 : THREADS / ACROSS;  // kk, or lines, between its copies

    const Word* from;
    long long lead;
    int across, along;  // this thread's first word

    __device__ __forceinline__ Source(const Word* operand, long long lead_, int first, int begin) : lead(lead_)
    {
        int inner = (int)threadIdx.x % (ACROSS > THREADS ? THREADS : ACROSS), outer = (int)threadIdx.x / ACROSS;
        across = ALONG_K ? outer : inner * VECTOR;
        along = ALONG_K ? inner : outer;
        from = operand + (ALONG_K ? (first + across) * lead + begin + along : (begin + along) * lead + first + across);
    }

    // the phase that starts here; `inside` words across and `left` of k are left of the operand
    template <bool CHECKED>
    __device__ __forceinline__ void copy_phase(unsigned tile, const Word* operand, int inside, int left) const
    {
        unsigned to = tile + (along * LINE + across) * (int)sizeof(Word);
        if (ALONG_K) {
            #pragma unroll
            for (int i = 0; i < WIDTH; i += STRIDE) {
                if (WIDTH % STRIDE && across + i >= WIDTH) break;
                #pragma unroll
                for (int j = 0; j < DEPTH; j += 8) {
                    bool there = !CHECKED || (across + i < inside && along + j < left);
                    copy<SIZE, CHECKED>(
                        to + (j * LINE + i) * (int)sizeof(Word), there ? from + i * lead + j : operand, there ? SIZE : 0);
                }
            }
        } else {
            #pragma unroll
            for (int j = 0; j < DEPTH; j += STRIDE) {
                if (DEPTH % STRIDE && along + j >= DEPTH) break;
                #pragma unroll
                for (int i = 0; i < EACH; ++i) {
                    int more = along + j < left ? inside - across - i * THREADS * VECTOR : 0;
                    int valid = more <= 0 ? 0 : more >= VECTOR ? SIZE : more * (int)sizeof(Word);
                    const Word* there = from + j * lead + i * THREADS * VECTOR;
                    copy<SIZE, CHECKED>(
                        to + (j * LINE + i * THREADS * VECTOR) * (int)sizeof(Word), CHECKED && !valid ? operand : there,
                        valid);
                }
            }
        }
    }

    __device__ __forceinline__ void next_phase() { from += ALONG_K ? DEPTH : DEPTH * lead; }
};

// a thread's words of one kk
struct Fragment {
    Quad M[TM / QUAD], N[TN / QUAD];

    __device__ __forceinline__ void read(const Word* Mds, const Word* Nds)
    {
        #pragma unroll
        for (int i = 0; i < TM / QUAD; ++i) M[i] = *reinterpret_cast<const Quad*>(Mds + i * LANES_M * QUAD);
        #pragma unroll
        for (int j = 0; j < TN / QUAD; ++j) N[j] = *reinterpret_cast<const Quad*>(Nds + j * LANES_N * QUAD);
    }
};

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
    row += lane_m * QUAD;
    col += lane_n * QUAD;

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
        const Word* Mds = reinterpret_cast<const Word*>(memory + using_stage) + row;
        const Word* Nds = reinterpret_cast<const Word*>(memory + using_stage + TILE_M) + col;
        int at = begin + phase * DEPTH, steps = stop - begin - phase * DEPTH;
        if (busy && steps >= DEPTH) {
            Fragment f[2];
            f[0].read(Mds, Nds);
            #pragma unroll 1
            for (int kk = 0; kk < DEPTH; kk += UNROLL) {
                #pragma unroll
                for (int u = 0; u < UNROLL; u += 1 + PAIRS) {
#if PAIRS
                    f[1].read(Mds + (u + 1) * LINE_M, Nds + (u + 1) * LINE_N);
#else
                    if (u + 1 < UNROLL || kk + UNROLL < DEPTH)  // the next words are on their way during these steps
                        f[(u + 1) % 2].read(Mds + (u + 1) * LINE_M, Nds + (u + 1) * LINE_N);
#endif
                    #pragma unroll
                    for (int i = 0; i < TM; ++i)
                        #pragma unroll
                        for (int j = 0; j < TN; ++j)
#if PAIRS
                            step_pair(Pvalue[i][j], f[0].M[i / QUAD].lane[i % QUAD], f[0].N[j / QUAD].lane[j % QUAD],
                                      f[1].M[i / QUAD].lane[i % QUAD], f[1].N[j / QUAD].lane[j % QUAD]);
                    if (u + 2 < UNROLL || kk + UNROLL < DEPTH)
                        f[0].read(Mds + (u + 2) * LINE_M, Nds + (u + 2) * LINE_N);
#else
                            step(Pvalue[i][j], f[u % 2].M[i / QUAD].lane[i % QUAD],
                                 f[u % 2].N[j / QUAD].lane[j % QUAD], at + kk + u);
#endif
                }
                Mds += UNROLL * LINE_M;
                Nds += UNROLL * LINE_N;
            }
        } else if (busy) {
            #pragma unroll 1
            for (int kk = 0; kk < steps; ++kk) {
                Fragment f;
                f.read(Mds + kk * LINE_M, Nds + kk * LINE_N);
                #pragma unroll
                for (int i = 0; i < TM; ++i)
                    #pragma unroll
                    for (int j = 0; j < TN; ++j)
                        step(Pvalue[i][j], f.M[i / QUAD].lane[i % QUAD], f.N[j / QUAD].lane[j % QUAD], at + kk);
            }
        }
        using_stage = using_stage + STAGE == STAGES * STAGE ? 0 : using_stage + STAGE;
    }
    wait_groups<0>();

    long long plane = blockIdx.z * (long long)m * ldp;  // one for each piece of k
    #pragma unroll
    for (int i = 0; i < TM; ++i) {
        int r = top + row + i / QUAD * (LANES_M * QUAD) + i % QUAD;
        if (r >= m) continue;
        #pragma unroll
        for (int j = 0; j < TN; j += QUAD) {
            int c = left + col + j / QUAD * (LANES_N * QUAD);
            Result* cell = P + plane + r * ldp + c;
            Partial value[QUAD];
            #pragma unroll
            for (int e = 0; e < QUAD; ++e)
                value[e] = finish(Pvalue[i][j + e]);
            if (P_ALIGNED && c + QUAD <= n) {
                ResultQuad quad;
                if (ACCUMULATE) quad = *reinterpret_cast<ResultQuad*>(cell);
                #pragma unroll
                for (int e = 0; e < QUAD; ++e)
                    STORE(quad.lane[e], value[e]);
                *reinterpret_cast<ResultQuad*>(cell) = quad;
            } else {
                #pragma unroll
                for (int e = 0; e < QUAD; ++e)
                    if (c + e < n) STORE(cell[e], value[e]);
            }
#if ARG
            #pragma unroll
            for (int e = 0; e < QUAD; ++e)
                if (c + e < n) Pwhere[(blockIdx.z * (long long)m + r) * ldw + c + e] = Pvalue[i][j + e].where;
#endif
        }
    }
}
