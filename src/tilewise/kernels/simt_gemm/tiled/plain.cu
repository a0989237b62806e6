// plain: any semiring on the plain cores; warps of 2-D register tiles, fed by asynchronous copies STAGES deep.
//
// Layout: a block of WARPS_M x WARPS_N warps makes BLOCK_M x BLOCK_N of P, DEPTH of k a phase. Both tiles lie in shared
//   memory k by k: Mds[kk] holds BLOCK_M words of M, Nds[kk] BLOCK_N of N, so a thread reads its rows and its columns
//   as 16-byte Quads. A lane's Quads are LANES_M (LANES_N) Quads apart: neighbouring lanes read neighbouring Quads, without bank
//   conflicts. An operand that is contiguous along k (ALONG_K) is transposed by the copies, one word each; then rows of the tile are
//   one Quad longer, against bank conflicts.
//   The loop is unrolled by UNROLL steps: all of a phase would not fit the L0 instruction cache, which halves the speed.
// Register banks: two, by the lowest bit of the register number, with one read a clock each; operands of the step before are reused.
//   The steps of a row share their word of M and follow ORDER along N, and sums are `opaque`, so that few steps wait for a bank.
// Edges: outside M and N the last row or column is read again, and its results are not stored; warps outside P do not compute. A
//   last phase has less than DEPTH steps.
// Barrier: one a phase. After it this phase's tiles are complete, and those of the phase before have been read and may be overwritten.
// Sum is the accumulator of a cell of P: `step` updates it by a word of M and one of N, `finish` converts it to Partial.
// gridDim.z pieces of k make one plane of sums each, which `combine` adds up in order.
#if CHAIN
// Chains: every CHAIN of k the sums are added to those of the chains before and start anew; the last chain goes to P. Until then they
//   are in `sums`, which is P where that has their dtype. A thread reads only cells that it wrote itself.
#endif  // CHAIN
// Symmetric: see mirrored.cuh. Verdict: a predicated launch exits at once unless *verdict == wanted.

#define THREADS (WARPS_M * WARPS_N * 32)
#define QUAD (16 / (int)sizeof(Word))
#define LINE_M (BLOCK_M + (M_ALONG_K ? QUAD : 0))
#define LINE_N (BLOCK_N + (N_ALONG_K ? QUAD : 0))
#define TILE_M (DEPTH * LINE_M * (int)sizeof(Word))
#define STAGE (DEPTH * (LINE_M + LINE_N) * (int)sizeof(Word))

struct __align__(16) Quad { Word lane[QUAD]; };
struct __align__(QUAD * sizeof(Result)) ResultQuad { Result lane[QUAD]; };
#if CHAIN
struct __align__(QUAD * sizeof(Partial)) PartialQuad { Partial lane[QUAD]; };
#endif  // CHAIN
struct __align__(16) Chunk { unsigned word[4]; };
struct __align__(8) Half { unsigned word[2]; };

extern __shared__ __align__(16) unsigned char memory[];

// BYTES from global to shared memory at `to`
template <int BYTES>
static __device__ __forceinline__ void copy(unsigned to, const void* from)
{
#if __CUDA_ARCH__ >= 800
    to += (unsigned)__cvta_generic_to_shared(memory);
    if (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(from) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" :: "r"(to), "l"(from), "n"(BYTES) : "memory");
#else
    if (BYTES == 16) *(Chunk*)(memory + to) = *(const Chunk*)from;
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

// The copies of one operand, DEPTH x WIDTH words a phase, in PIECES: vectors of VECTOR words where it is contiguous across k; along
// k single words, transposed, 4 lines of 8 words a warp, without bank conflicts. Outside the operand its last words are copied.
template <int WIDTH, int LINE, int VECTOR, bool ALONG_K>
struct Source {
    static constexpr int SIZE = (int)sizeof(Word) * (ALONG_K ? 1 : VECTOR);
    static constexpr int ACROSS = ALONG_K ? 8 : WIDTH / VECTOR;  // copies of one kk; when transposed, words of a line
    static constexpr int STRIDE = ACROSS > THREADS ? 1 : THREADS / ACROSS;  // kk, or lines, from piece to piece
    static constexpr int LINES = ALONG_K ? WIDTH : DEPTH;
    static constexpr int PIECES = (LINES + STRIDE - 1) / STRIDE;
    static constexpr int EACH = ALONG_K ? DEPTH / 8 : ACROSS > THREADS ? ACROSS / THREADS : 1;  // copies of a piece,
    static constexpr int APART = ALONG_K ? 8 : THREADS * VECTOR;  // so many words from each other

    const Word* from;  // this thread's first word of the phase
    long long lead, step;  // words from line to line, and from piece to piece
    int line, at;  // its line in the tile, and where in that
    int inside;  // words across, from the tile's first one on
    unsigned place;  // in the tile

    __device__ __forceinline__ Source(const Word* operand, long long lead_, int first, int extent, int begin)
        : lead(lead_), step(STRIDE * lead_), line((int)threadIdx.x / ACROSS), inside(extent - first)
    {
        at = (int)threadIdx.x % (ACROSS > THREADS ? THREADS : ACROSS) * (ALONG_K ? 1 : VECTOR);
        if (!ALONG_K) inside = (inside + VECTOR - 1) / VECTOR * VECTOR;  // the leading dimension of packed operands is a multiple of VECTOR
        place = (ALONG_K ? at * LINE + line : line * LINE + at) * (int)sizeof(Word);
        from = ALONG_K ? operand + (first + min(line, inside - 1)) * lead + begin + at
                       : operand + (begin + line) * lead + first + min(at, inside - VECTOR);
    }

    // one piece, from `start` on; LAST: of a phase with `left` of k, which may be less than DEPTH
    template <bool LAST>
    __device__ __forceinline__ void copy_piece(unsigned tile, int piece, const Word* start, int left) const
    {
        if (LINES % STRIDE && line + piece * STRIDE >= LINES) return;
        unsigned to = tile + place + piece * STRIDE * (ALONG_K ? 1 : LINE) * (int)sizeof(Word);
        #pragma unroll
        for (int i = 0; i < EACH; ++i) {
            int x = i * APART;
            unsigned further = x * (ALONG_K ? LINE : 1) * (int)sizeof(Word);
            if (ALONG_K && LAST) x = min(at + x, left - 1) - at;
            if (!ALONG_K && i) x = min(at + x, inside - VECTOR) - min(at, inside - VECTOR);
            copy<SIZE>(to + further, start + x);
        }
    }

    // a phase with `left` of k
    __device__ __forceinline__ void copy_phase(unsigned tile, int left) const
    {
        if (left >= DEPTH && (!ALONG_K || inside >= WIDTH)) {
            const Word* start = from;
            #pragma unroll
            for (int piece = 0; piece < PIECES; ++piece, start += step) copy_piece<false>(tile, piece, start, left);
        } else if (left > 0) {
            int last = ALONG_K ? inside - 1 : left - 1, first = ALONG_K ? min(line, last) : line;
            #pragma unroll
            for (int piece = 0; piece < PIECES; ++piece)
                copy_piece<true>(tile, piece, from + (min(line + piece * STRIDE, last) - first) * lead, left);
        }
    }

    __device__ __forceinline__ void next_phase() { from += ALONG_K ? DEPTH : DEPTH * lead; }
};

// a thread's words of M and N of one kk
struct Fragment {
    Quad M[TM / QUAD], N[TN / QUAD];

    __device__ __forceinline__ Word m(int i) const { return M[i / QUAD].lane[i % QUAD]; }
    __device__ __forceinline__ Word n(int j) const { return N[j / QUAD].lane[j % QUAD]; }

    __device__ __forceinline__ void read_m(const Word* Mds)
    {
        #pragma unroll
        for (int i = 0; i < TM / QUAD; ++i) M[i] = *reinterpret_cast<const Quad*>(Mds + i * LANES_M * QUAD);
    }

    // N first without PAIRS: then ptxas keeps all loads a whole step ahead
    __device__ __forceinline__ void read(const Word* Mds, const Word* Nds)
    {
        if (PAIRS) read_m(Mds);
        #pragma unroll
        for (int j = 0; j < TN / QUAD; ++j) N[j] = *reinterpret_cast<const Quad*>(Nds + j * LANES_N * QUAD);
        if (!PAIRS) read_m(Mds);
    }
};

// Identity that is opaque to the compiler (`nothing` is 0): otherwise it would keep sums in the registers of 16-byte stores, whose banks
// conflict with those of N's words.
static __device__ __forceinline__ Partial opaque(Partial value, unsigned nothing)
{
    if (sizeof(Partial) != 4) return value;
    union { unsigned bits; Partial value; } both;
    both.bits = 0;
    both.value = value;
    both.bits ^= nothing;
    return both.value;
}

extern "C" __global__ void BOUNDS plain(
    const Word* __restrict__ M, const Word* __restrict__ N, Result* P,
#if ARG
    Where* Pwhere, long long ldw,
#endif
#if TAIL
    Result* planes, int whole, int first_k, int next_k,
#endif
#if CHAIN
    Partial* sums, long long lds,
#endif  // CHAIN
    int m, int k, int n, long long ldm, long long ldn, long long ldp, int k_each, const unsigned* verdict, unsigned wanted)
{
    wait_on_dependent_grids();
    launch_dependent_grids();
    if (verdict && *verdict != wanted) return;
#if TAIL
    int tails = tiles_of(m, n) - whole, piece = max(0, (int)blockIdx.x - whole) / tails;
    Corner tile(blockIdx.x - piece * tails, m, n);
    int begin = piece ? first_k + (piece - 1) * next_k : 0;
    int stop = blockIdx.x < whole ? k : min(k, begin + (piece ? next_k : first_k));
#else
    Corner tile(blockIdx.x, m, n);
    int begin = blockIdx.z * k_each, stop = min(k, begin + k_each);
#endif
    int top = tile.top, left = tile.left;
    if (SYMMETRIC && (top >= m || left >= n)) return;

    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int lane_m = LANE_M, lane_n = LANE_N;
    int row = warp / WARPS_N * (LANES_M * TM), col = warp % WARPS_N * (LANES_N * TN);
    bool busy = top + row < m && left + col < n;
    row += lane_m * QUAD;
    col += lane_n * QUAD;

    Sum Pvalue[TM][TN];
    #pragma unroll
    for (int i = 0; i < TM; ++i)
        #pragma unroll
        for (int j = 0; j < TN; ++j)
            Pvalue[i][j] = start();

    Source<BLOCK_M, LINE_M, VECTOR_M, M_ALONG_K> from_m(M, ldm, top, m, begin);
    Source<BLOCK_N, LINE_N, VECTOR_N, N_ALONG_K> from_n(N, ldn, left, n, begin);
    int filled = begin;  // copies of k below this are issued
    unsigned filling = 0;
    #pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        from_m.copy_phase(filling, stop - filled);
        from_n.copy_phase(filling + TILE_M, stop - filled);
        close_group();
        filled += DEPTH;
        filling += STAGE;
        from_m.next_phase();
        from_n.next_phase();
    }
    unsigned using_stage = 0;
#if CHAIN
    for (int chain = begin; ; chain += CHAIN) {
    const int last = min(stop, chain + CHAIN);
    for (int at = chain; at < last; at += DEPTH) {
#else  // CHAIN
    for (int at = begin; at < stop; at += DEPTH) {
#endif  // CHAIN
        wait_groups<STAGES - 2>();
        __syncthreads();
        from_m.copy_phase(filling, stop - filled);
        from_n.copy_phase(filling + TILE_M, stop - filled);
        close_group();
        filled += DEPTH;
        filling = filling + STAGE == STAGES * STAGE ? 0 : filling + STAGE;
        from_m.next_phase();
        from_n.next_phase();
        const Word* Mds = reinterpret_cast<const Word*>(memory + using_stage) + row;
        const Word* Nds = reinterpret_cast<const Word*>(memory + using_stage + TILE_M) + col;
        using_stage = using_stage + STAGE == STAGES * STAGE ? 0 : using_stage + STAGE;
        if (!busy) continue;
        int steps = min(DEPTH, stop - at), unrolled = steps / UNROLL * UNROLL;
        Fragment f[2];
        f[0].read(Mds, Nds);
        #pragma unroll 1
        for (int kk = 0; kk < unrolled; kk += UNROLL, Mds += UNROLL * LINE_M, Nds += UNROLL * LINE_N) {
            #pragma unroll
            for (int u = 0; u < UNROLL; u += 1 + PAIRS) {
                // loads of the next words overlap these steps
                if (PAIRS || u + 1 < UNROLL || kk + UNROLL < unrolled)
                    f[(u + 1) % 2].read(Mds + (u + 1) * LINE_M, Nds + (u + 1) * LINE_N);
                #pragma unroll
                for (int i = 0; i < TM; ++i)
                    #pragma unroll
                    for (int c = 0; c < TN; ++c) {
                        const int j = ORDER(i, c);
#if PAIRS
                        step_pair(Pvalue[i][j], f[0].m(i), f[0].n(j), f[1].m(i), f[1].n(j));
#else
                        step(Pvalue[i][j], f[u % 2].m(i), f[u % 2].n(j), at + kk + u);
#endif
                    }
                if (PAIRS && (u + 2 < UNROLL || kk + UNROLL < unrolled))
                    f[0].read(Mds + (u + 2) * LINE_M, Nds + (u + 2) * LINE_N);
            }
        }
        #pragma unroll 1
        for (int kk = unrolled; kk < steps; ++kk, Mds += LINE_M, Nds += LINE_N) {
            f[0].read(Mds, Nds);
            #pragma unroll
            for (int i = 0; i < TM; ++i)
                #pragma unroll
                for (int j = 0; j < TN; ++j) step(Pvalue[i][j], f[0].m(i), f[0].n(j), at + kk);
        }
    }
#if CHAIN
    const bool ends = last == stop, inside = top + BLOCK_M <= m && left + BLOCK_N <= n;
    Partial old[2][TN];  // of this row and the next: loads are in flight while a row is stored
    #pragma unroll
    for (int next = 0; next <= TM; ++next) {
        if (next < TM) {
            int r = top + row + next / QUAD * (LANES_M * QUAD) + next % QUAD;
            #pragma unroll
            for (int j = 0; j < TN; j += QUAD) {
                int c = left + col + j / QUAD * (LANES_N * QUAD);
                if (chain > begin && inside) {
                    PartialQuad quad = *reinterpret_cast<PartialQuad*>(sums + r * lds + c);
                    #pragma unroll
                    for (int e = 0; e < QUAD; ++e) old[next % 2][j + e] = quad.lane[e];
                } else if (ACCUMULATE || chain > begin) {
                    #pragma unroll
                    for (int e = 0; e < QUAD; ++e)
                        if (r < m && c + e < n)
                            old[next % 2][j + e] = chain > begin ? sums[r * lds + c + e] : resume(P[r * ldp + c + e]);
                }
            }
        }
        if (next == 0) continue;
        int i = next - 1, r = top + row + i / QUAD * (LANES_M * QUAD) + i % QUAD;
        #pragma unroll
        for (int j = 0; j < TN; j += QUAD) {
            int c = left + col + j / QUAD * (LANES_N * QUAD);
            PartialQuad value;
            #pragma unroll
            for (int e = 0; e < QUAD; ++e) {
                value.lane[e] = opaque(finish(Pvalue[i][j + e]), blockDim.z - 1);
                if (ACCUMULATE && chain == stop) value.lane[e] = old[i % 2][j + e];  // k = 0: there is no chain to add, and a negative zero stays
                else if (ACCUMULATE || chain > begin) value.lane[e] = add(old[i % 2][j + e], value.lane[e]);
                Pvalue[i][j + e] = start();
            }
            if (!ends) {
                if (inside) *reinterpret_cast<PartialQuad*>(sums + r * lds + c) = value;
                #pragma unroll
                for (int e = 0; !inside && e < QUAD; ++e)
                    if (r < m && c + e < n) sums[r * lds + c + e] = value.lane[e];
                continue;
            }
            ResultQuad made;
            #pragma unroll
            for (int e = 0; e < QUAD; ++e) made.lane[e] = kept(value.lane[e]);
            if (P_ALIGNED && inside) *reinterpret_cast<ResultQuad*>(P + r * ldp + c) = made;
            #pragma unroll
            for (int e = 0; !(P_ALIGNED && inside) && e < QUAD; ++e)
                if (r < m && c + e < n) P[r * ldp + c + e] = made.lane[e];
        }
    }
    if (ends) break;
    }
    wait_groups<0>();
}
#else  // CHAIN
    wait_groups<0>();

    P += blockIdx.z * (long long)m * ldp;  // a plane for each piece of k
#if TAIL
    if (blockIdx.x >= whole) {
        P = planes + (blockIdx.x - whole) * (long long)(BLOCK_M * BLOCK_N) - (top * BLOCK_N + left);
        ldp = BLOCK_N;
    }
#endif
#if !P_ALIGNED
    // unaligned rows of P: LANES_M of a warp's rows at a time are staged in shared memory for coalesced stores
    static_assert(WARPS_M * WARPS_N * 32 * TN * (int)sizeof(Partial) <= STAGES * STAGE, "no room for a warp's rows");
    __syncthreads();
    Partial* passing = reinterpret_cast<Partial*>(memory) + warp * (32 * TN);
#endif
    #pragma unroll
    for (int i = 0; i < TM; ++i) {
        int r = top + row + i / QUAD * (LANES_M * QUAD) + i % QUAD;
        #pragma unroll
        for (int j = 0; j < TN; j += QUAD) {
            int c = left + col + j / QUAD * (LANES_N * QUAD);
            Partial value[QUAD];
            #pragma unroll
            for (int e = 0; e < QUAD; ++e)
                value[e] = opaque(finish(Pvalue[i][j + e]), blockDim.z - 1);
#if P_ALIGNED
            Result* cell = P + r * ldp + c;
            if (r < m && c + QUAD <= n) {
                ResultQuad quad;
                if (ACCUMULATE) quad = *reinterpret_cast<ResultQuad*>(cell);
                #pragma unroll
                for (int e = 0; e < QUAD; ++e)
                    STORE(quad.lane[e], value[e]);
                *reinterpret_cast<ResultQuad*>(cell) = quad;
            } else {
                #pragma unroll
                for (int e = 0; e < QUAD; ++e)
                    if (r < m && c + e < n) STORE(cell[e], value[e]);
            }
#else
            #pragma unroll
            for (int e = 0; e < QUAD; ++e)
                passing[(lane_m * TN + j) * LANES_N + lane_n * QUAD + e] = value[e];
#endif
#if ARG
            #pragma unroll
            for (int e = 0; e < QUAD; ++e)
                if (r < m && c + e < n) Pwhere[(blockIdx.z * (long long)m + r) * ldw + c + e] = Pvalue[i][j + e].where;
#endif
        }
#if !P_ALIGNED
        __syncwarp();
        #pragma unroll
        for (int x = 0; x < TN; ++x) {
            int at = x * 32 + lane, line = at / (LANES_N * TN);
            int to = r + (line - lane_m) * QUAD, c = left + col - lane_n * QUAD + at % (LANES_N * TN);
            if (to < m && c < n) STORE(P[to * ldp + c], passing[at]);
        }
        __syncwarp();
#endif
    }
#if SYMMETRIC
    if (tile.mirrored) store_mirrored<ResultQuad, QUAD>(Pvalue, P, ldp, m, n, top + row, left + col);
#endif  // SYMMETRIC
}
#endif  // CHAIN
