// mma_sync: tiles come in by asynchronous copies, warps multiply pieces of them on tensor cores, from registers.
//
// Layout: a stage holds BLOCK_M rows of M and BLOCK_N columns of N, 128 bytes of k of each. An operand whose k lies side by
//   side comes as lines of 128 bytes, one for each row (column); one whose rows (columns) lie side by side as a line for
//   each k. Chunks of 16 bytes change places within their line, so that what a warp reads at a time lies in all banks.
// Fragments: a warp's lane is (g, t) = (lane / 4, lane % 4). `ldmatrix` hands out 4 bytes of each line, transposed where k
//   lies across lines of 2-byte elements. Words of 4 and 8 bytes are read one by one. Bytes across k are read four by four
//   and turned; a fragment's rows (columns) are then four apart, which `row_of` and `column_of` know.
// Edges: what lies outside M and N is filled with 0, so pads only meet pads; P is stored through a guard.
// Barrier: one a phase, before its last step. Behind it the tiles of the next phase are there for all, and the tiles of the
//   phase before this one are used up (with ROLLING; else those of this phase too): copies over them begin after it.
// Stores: sums leave through shared memory, 16 rows of a warp at a time, so that P is written in whole lines whatever its
//   stride. gridDim.z parts of k make one matrix of sums each, and `add_parts` adds them up in order.

#define THREADS (WARPS_M * WARPS_N * 32)
#define WARP_M (BLOCK_M / WARPS_M)
#define WARP_N (BLOCK_N / WARPS_N)
#define MATS (WARP_M / 16)  // fragments of a warp: 16 rows of M,
#define COLS (WARP_N / 8)   // and 8 columns of N
#define PHASE_BYTES 128
#define BLOCK_K (PHASE_BYTES / SIZE)
#define STEPS (BLOCK_K / STEP_K)  // products of fragments in a phase
#define STAGE_BYTES ((BLOCK_M + BLOCK_N) * PHASE_BYTES)
#define AHEAD (STAGES - 1 - ROLLING)  // phases whose copies are on their way
#define TURNED_M (SIZE == 1 && !M_ALONG_K)
#define TURNED_N (SIZE == 1 && !N_ALONG_K)
#define PITCH (WARP_N * (int)sizeof(Result) + 16)  // of a staged row

extern __shared__ __align__(128) unsigned char memory[];

// One operand: WIDTH rows (columns) of it a tile, in copies of VECTOR bytes.
template <int WIDTH, int VECTOR, bool ALONG_K>
struct Operand {
    static constexpr int LINES = ALONG_K ? WIDTH : BLOCK_K;
    static constexpr int LINE_BYTES = ALONG_K ? PHASE_BYTES : WIDTH * SIZE;
    static constexpr int PIECES = LINE_BYTES / VECTOR;  // of a line
    static constexpr int EVERY = THREADS / PIECES;      // lines between two copies of a thread
    static constexpr int COPIES = LINES / EVERY;
    static constexpr bool BY_MATRIX = SIZE == 2 || (SIZE < 8 && ALONG_K);  // read by ldmatrix
    static_assert(THREADS % PIECES == 0 && LINES % EVERY == 0 && LINE_BYTES >= 128, "a tile is copied evenly");

    // Which chunk of a line changes places with which.
    static __device__ __forceinline__ int swizzle(int line) {
        return BY_MATRIX ? line & 7 : (SIZE == 1 ? line >> 2 & 3 : line & 3) << 1;
    }

    const unsigned char* from;  // this thread's first copy
    long long lead;             // bytes from line to line
    int line, start;            // of that copy: its line, and where in it

    __device__ __forceinline__ Operand(const Element* operand, long long lead_elements, int first, int begin)
        : lead(lead_elements * SIZE), line((int)threadIdx.x / PIECES), start((int)threadIdx.x % PIECES * VECTOR)
    {
        long long top = ALONG_K ? first : begin, along = ALONG_K ? begin : first;
        from = reinterpret_cast<const unsigned char*>(operand) + (top + line) * lead + along * SIZE + start;
    }

    // Part `part` of `parts` of a phase's copies. `inside` elements across k and `left` of k are left of the operand.
    template <bool CHECKED>
    __device__ __forceinline__ void copy_part(
        unsigned tile, const Element* operand, int inside, int left, int part, int parts) const
    {
        const unsigned char* there = from + COPIES * part / parts * EVERY * lead;
        #pragma unroll
        for (int i = COPIES * part / parts; i < COPIES * (part + 1) / parts; ++i, there += EVERY * lead) {
            int at = line + i * EVERY;
            unsigned to = tile + at * LINE_BYTES + ((start >> 4 ^ swizzle(at)) << 4) + (start & 15);
            int lines_left = ALONG_K ? inside : left, more = (ALONG_K ? left : inside) * SIZE - start;
            int valid = at < lines_left && more > 0 ? min(more, VECTOR) : 0;
            copy<VECTOR, CHECKED>(to, CHECKED && !valid ? (const void*)operand : there, valid);
        }
    }

    __device__ __forceinline__ void next_phase() { from += ALONG_K ? PHASE_BYTES : BLOCK_K * lead; }
};

typedef Operand<BLOCK_M, VECTOR_M, M_ALONG_K> OperandM;
typedef Operand<BLOCK_N, VECTOR_N, N_ALONG_K> OperandN;

template <bool TRANSPOSED>
static __device__ __forceinline__ void read_matrices(unsigned at, unsigned& a, unsigned& b, unsigned& c, unsigned& d) {
    if (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at));
}

static __device__ __forceinline__ void read_word(unsigned at, unsigned& word) {
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(at));
}

static __device__ __forceinline__ void read_word(unsigned at, double& word) {
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(word) : "r"(at));
}

// Four bytes of each of four k become four k of each of four bytes.
static __device__ __forceinline__ void read_turned(unsigned at, int line_bytes, unsigned (&made)[4]) {
    unsigned x[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i) read_word(at + i * line_bytes, x[i]);
    unsigned low01 = __byte_perm(x[0], x[1], 0x5140), low23 = __byte_perm(x[2], x[3], 0x5140);
    unsigned high01 = __byte_perm(x[0], x[1], 0x7362), high23 = __byte_perm(x[2], x[3], 0x7362);
    made[0] = __byte_perm(low01, low23, 0x5410);
    made[1] = __byte_perm(low01, low23, 0x7632);
    made[2] = __byte_perm(high01, high23, 0x5410);
    made[3] = __byte_perm(high01, high23, 0x7632);
}

// Where a lane reads, before it is told which fragment: `first` is the warp's first row (column). Row and column bits of
// such an offset never meet those of a fragment's number, so they are joined by ^, which the swizzle passes through.
template <int LINE_BYTES, bool ALONG_K, bool BY_MATRIX, bool SECOND>
static __device__ __forceinline__ unsigned lane_offset(int first)
{
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    if (BY_MATRIX) {  // a lane holds the address of one line of four matrices
        int low = lane % 8, mid = lane / 8 % 2, high = lane / 16;
        int other = SECOND ? mid : high, same = SECOND ? high : mid;  // along k: which 16 bytes; across: which 8
        if (ALONG_K) return (first + same * 8 + low) * LINE_BYTES + ((other ^ low) << 4);
        return (other * 8 + low) * LINE_BYTES + ((first / 8 + same ^ low) << 4);
    }
    if (SIZE == 8 && ALONG_K) return (first + g) * LINE_BYTES + ((t / 2 ^ (g & 3) << 1) << 4) + t % 2 * 8;
    if (SIZE == 8) return t * LINE_BYTES + ((first / 2 + g / 2 ^ t << 1) << 4) + g % 2 * 8;
    if (SIZE == 4) return t * LINE_BYTES + ((first / 4 + g / 4 ^ t << 1) << 4) + g % 4 * 4;
    return 4 * t * LINE_BYTES + ((first / 16 + g / 4 ^ t << 1) << 4) + g % 4 * 4;
}

// One fragment of 16 rows of M at `step`: k from step * STEP_K on. Turned bytes come for two fragments at a time.
static __device__ __forceinline__ void read_rows(Word (*to)[WORDS_M], unsigned tile, unsigned lane, int step, int i)
{
    const int line = OperandM::LINE_BYTES;
#if SIZE == 8
    #pragma unroll
    for (int w = 0; w < WORDS_M; ++w) {
        int k = step * STEP_K + w / 2 * 4;
        read_word(tile + (M_ALONG_K ? (lane ^ k * 8) + (i * 16 + w % 2 * 8) * line
                                    : (lane ^ i * 128 + w % 2 * 64) + k * line), to[0][w]);
    }
#else
    if (OperandM::BY_MATRIX)
        read_matrices<!M_ALONG_K>(
            tile + (M_ALONG_K ? (lane ^ step * 32) + i * 16 * line : (lane ^ i * 32) + step * STEP_K * line),
            to[0][0], to[0][1], to[0][2], to[0][3]);
    else if (SIZE == 4) {
        #pragma unroll
        for (int w = 0; w < 4; ++w)
            read_word(tile + (lane ^ i * 64 + w % 2 * 32) + (step * STEP_K + w / 2 * 4) * line, to[0][w]);
    } else if (i % 2 == 0) {
        unsigned low[4], high[4];
        read_turned(tile + (lane ^ i * 16) + step * STEP_K * line, line, low);
        read_turned(tile + (lane ^ i * 16) + (step * STEP_K + 16) * line, line, high);
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            to[j / 2][j % 2] = low[j];
            to[j / 2][2 + j % 2] = high[j];
        }
    }
#endif
#if ROUNDED
    #pragma unroll
    for (int w = 0; w < WORDS_M; ++w) round_word(to[0][w]);
#endif
}

// Fragments `from` to `until` of 8 columns of N each; ldmatrix brings two at a time, turned bytes come by fours.
static __device__ __forceinline__ void read_columns(
    Word (&to)[COLS][WORDS_N], unsigned tile, unsigned lane, int step, int from, int until)
{
    const int line = OperandN::LINE_BYTES;
    #pragma unroll
    for (int j = from; j < until; ++j) {
#if SIZE == 8
        #pragma unroll
        for (int w = 0; w < WORDS_N; ++w) {
            int k = step * STEP_K + w * 4;
            read_word(tile + (N_ALONG_K ? (lane ^ k * 8) + j * 8 * line : (lane ^ j * 64) + k * line), to[j][w]);
        }
#else
        const int more = j + 1 < COLS ? j + 1 : j;
        if (OperandN::BY_MATRIX) {
            if (j % 2 == 0)
                read_matrices<!N_ALONG_K>(
                    tile + (N_ALONG_K ? (lane ^ step * 32) + j * 8 * line : (lane ^ j * 16) + step * STEP_K * line),
                    to[j][0], to[j][1], to[more][0], to[more][1]);
        } else if (SIZE == 4) {
            #pragma unroll
            for (int w = 0; w < 2; ++w)
                read_word(tile + (lane ^ j * 32) + (step * STEP_K + w * 4) * line, to[j][w]);
        } else if (j % 4 == 0) {
            unsigned low[4], high[4];
            read_turned(tile + (lane ^ j * 8) + step * STEP_K * line, line, low);
            read_turned(tile + (lane ^ j * 8) + (step * STEP_K + 16) * line, line, high);
            #pragma unroll
            for (int e = 0; e < 4; ++e) {
                to[(j + e) % COLS][0] = low[e];
                to[(j + e) % COLS][1] = high[e];
            }
        }
#endif
#if ROUNDED
        if (!OperandN::BY_MATRIX || j % 2 == 0) {
            #pragma unroll
            for (int w = 0; w < WORDS_N; ++w) {
                round_word(to[j][w]);
                if (OperandN::BY_MATRIX) round_word(to[more][w]);
            }
        }
#endif
    }
}

// Fragments on their way. ROLLING: of M one is read while the one before is multiplied, which takes few registers.
// Else all of a step's are read during the step before.
struct Fragments {
    Word M[2][ROLLING ? 1 : MATS][WORDS_M];
    Word N[2][COLS][WORDS_N];
};

// One phase: its products, and the copies of a phase AHEAD of it. Everything but the barrier is one straight line.
template <bool CHECKED>
static __device__ __forceinline__ void run_phase(
    Sum (&sums)[MATS][COLS][4], Fragments& held, OperandM& from_m, OperandN& from_n, const Element* M, const Element* N,
    int inside_m, int inside_n, int left, unsigned here, unsigned next, unsigned filling, unsigned lane_m, unsigned lane_n)
{
    const int tile_n = BLOCK_M * PHASE_BYTES;
    #pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        if (step == STEPS - 1) {
            close_group();
            wait_groups<AHEAD - 1>();
            __syncthreads();
        } else {
            from_m.copy_part<CHECKED>(filling, M, inside_m, left, step, STEPS - 1);
            from_n.copy_part<CHECKED>(filling + tile_n, N, inside_n, left, step, STEPS - 1);
        }
        const int now = step % 2, then = (step + 1) % 2, after = (step + 1) % STEPS;
        unsigned stage = step + 1 < STEPS ? here : next;  // of the step after this one
        #pragma unroll
        for (int i = 0; i < MATS; ++i) {
            if (ROLLING) {
                if (i + 1 < MATS)
                    read_rows(held.M[(step * MATS + i + 1) % 2], here, lane_m, step, i + 1);
                else
                    read_rows(held.M[(step * MATS + i + 1) % 2], stage, lane_m, after, 0);
            } else
                read_rows(held.M[then] + i % (ROLLING ? 1 : MATS), stage, lane_m, after, i);
            read_columns(held.N[then], stage + tile_n, lane_n, after, COLS * i / MATS, COLS * (i + 1) / MATS);
            #pragma unroll
            for (int j = 0; j < COLS; ++j)
                multiply(sums[i][j], ROLLING ? held.M[(step * MATS + i) % 2][0] : held.M[now][i % (ROLLING ? 1 : MATS)],
                         held.N[now][j]);
        }
    }
    from_m.next_phase();
    from_n.next_phase();
}

// Which row of the warp's is row `slot` (0 to 15) of fragment i, and which column is column `c` (0 to 7) of fragment j.
static __device__ __forceinline__ int row_of(int i, int slot) {
    return TURNED_M ? i / 2 * 32 + slot % 8 * 4 + i % 2 * 2 + slot / 8 : i * 16 + slot;
}

static __device__ __forceinline__ int column_of(int j, int c) { return TURNED_N ? j / 4 * 32 + c * 4 + j % 4 : j * 8 + c; }

// 16 staged rows of a warp to P, which points at the warp's first element; `height` and `width` are what P has from there.
static __device__ __forceinline__ void store_rows(
    const unsigned char* staged, int i, Result* P, long long ldp, int height, int width)
{
    int lane = threadIdx.x % 32;
#if STORE_BYTES >= 4
    const int each = STORE_BYTES / (int)sizeof(Result), pieces = WARP_N / each;  // elements of a store, stores of a row
    const int rows = pieces < 32 ? 32 / pieces : 1;
    #pragma unroll
    for (int first = 0; first < 16; first += rows)
        #pragma unroll
        for (int piece = lane % pieces; piece < pieces; piece += 32) {
            int slot = first + lane / pieces % rows, row = row_of(i, slot), column = piece * each;
            if (row >= height) continue;
            const unsigned char* at = staged + slot * PITCH + piece * STORE_BYTES;
            Result* to = P + row * ldp + column;
            if (column + each <= width)
                *reinterpret_cast<Stored*>(to) = *reinterpret_cast<const Stored*>(at);
            else
                for (int e = 0; column + e < width; ++e) to[e] = reinterpret_cast<const Result*>(at)[e];
        }
#else
    const int each = 4 / (int)sizeof(Result);  // rows may start anywhere: whole words between P's own boundaries
    for (int slot = 0; slot < 16; ++slot) {
        int row = row_of(i, slot);
        if (row >= height) continue;
        Result* to = P + row * ldp;
        const Result* at = reinterpret_cast<const Result*>(staged + slot * PITCH);
        int skew = (int)(reinterpret_cast<unsigned long long>(to) / sizeof(Result) % each);
        for (int column = lane * each - skew; column < min(width, WARP_N); column += 32 * each) {
            if (column >= 0 && column + each <= min(width, WARP_N)) {
                unsigned word = 0;
                #pragma unroll
                for (int e = 0; e < each; ++e) word |= bits_of(at[column + e]) << e * 8 * (int)sizeof(Result);
                *reinterpret_cast<unsigned*>(to + column) = word;
            } else
                for (int e = max(column, 0); e < min(column + each, min(width, WARP_N)); ++e) to[e] = at[e];
        }
    }
#endif
}

// `ldp` is the lead of P, or of each matrix of sums; a part of k takes `phases_each` phases.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) mma_sync(
    const Element* __restrict__ M, const Element* __restrict__ N, Result* P, Epilogue epilogue, int m, int k, int n,
    long long ldm, long long ldn, long long ldp, int phases_each)
{
    wait_for_the_one_before();
    let_the_next_start();
    // blocks walk GROUP rows of tiles column by column, so that what they read together stays in L2
    int tiles_m = (m + BLOCK_M - 1) / BLOCK_M, tiles_n = (n + BLOCK_N - 1) / BLOCK_N;
    int band = blockIdx.x / (GROUP * tiles_n), within = blockIdx.x % (GROUP * tiles_n);
    int high = min(GROUP, tiles_m - band * GROUP);
    int top = (band * GROUP + within % high) * BLOCK_M, across = within / high * BLOCK_N;

    int warp = threadIdx.x / 32, warp_row = warp / WARPS_N * WARP_M, warp_column = warp % WARPS_N * WARP_N;
    bool whole = top + BLOCK_M <= m && across + BLOCK_N <= n;
    unsigned each = (unsigned)phases_each * BLOCK_K;  // of k, which is below 2^31; rounded up it may not be
    int begin = blockIdx.z * each, stop = (int)min((unsigned)k, begin + each);

    unsigned stages = (unsigned)__cvta_generic_to_shared(memory);
    unsigned lane_m = lane_offset<OperandM::LINE_BYTES, M_ALONG_K, OperandM::BY_MATRIX, false>(warp_row);
    unsigned lane_n = lane_offset<OperandN::LINE_BYTES, N_ALONG_K, OperandN::BY_MATRIX, true>(warp_column);
    OperandM from_m(M, ldm, top, begin);
    OperandN from_n(N, ldn, across, begin);
    int left = stop - begin;  // of k that no copy has been asked for

    Sum sums[MATS][COLS][4];
    #pragma unroll
    for (int i = 0; i < MATS * COLS * 4; ++i) sums[i / (COLS * 4)][i / 4 % COLS][i % 4] = 0;

    #pragma unroll
    for (int s = 0; s < AHEAD; ++s) {
        from_m.copy_part<true>(stages + s * STAGE_BYTES, M, m - top, left, 0, 1);
        from_n.copy_part<true>(stages + s * STAGE_BYTES + BLOCK_M * PHASE_BYTES, N, n - across, left, 0, 1);
        close_group();
        from_m.next_phase();
        from_n.next_phase();
        left -= BLOCK_K;
    }
    wait_groups<AHEAD - 1>();
    __syncthreads();

    unsigned here = stages, filling = stages + AHEAD * STAGE_BYTES, end = stages + STAGES * STAGE_BYTES;
    Fragments held;
    #pragma unroll
    for (int i = 0; i < (ROLLING ? 1 : MATS); ++i) read_rows(held.M[0] + i, here, lane_m, 0, i);
    read_columns(held.N[0], here + BLOCK_M * PHASE_BYTES, lane_n, 0, 0, COLS);
    for (int phases = (stop - begin + BLOCK_K - 1) / BLOCK_K; phases > 0; --phases, left -= BLOCK_K) {
        unsigned next = here + STAGE_BYTES == end ? stages : here + STAGE_BYTES;
        if (whole && left >= BLOCK_K)
            run_phase<false>(sums, held, from_m, from_n, M, N, 0, 0, 0, here, next, filling, lane_m, lane_n);
        else
            run_phase<true>(
                sums, held, from_m, from_n, M, N, m - top, n - across, left, here, next, filling, lane_m, lane_n);
        here = next;
        filling = filling + STAGE_BYTES == end ? stages : filling + STAGE_BYTES;
    }
    wait_groups<0>();
    __syncthreads();  // all tiles have been used: their memory takes the sums
    if (top + warp_row >= m || across + warp_column >= n) return;

    int lane = threadIdx.x % 32, row = top + warp_row, column = across + warp_column;
    unsigned char* staged = memory + warp * 16 * PITCH;
    Result* target = P + blockIdx.z * (long long)m * ldp + row * ldp + column;
    #pragma unroll
    for (int i = 0; i < MATS; ++i) {
        __syncwarp();
        #pragma unroll
        for (int j = 0; j < COLS; ++j)
            #pragma unroll
            for (int half = 0; half < 2; ++half) {
                int slot = lane / 4 + half * 8;
                Sum made[2];
                #pragma unroll
                for (int e = 0; e < 2; ++e) {
                    int at = column_of(j, lane % 4 * 2 + e), r = row_of(i, slot);
                    bool inside = row + r < m && column + at < n;
                    Sum held = ACCUMULATE && inside ? widen(target[r * ldp + at]) : (Sum)0;
                    Sum bias = bias_of(epilogue, column + at, column + at < n);
                    made[e] = finish(sums[i][j][half * 2 + e], held, bias, epilogue);
                }
                Result* to = reinterpret_cast<Result*>(staged + slot * PITCH);
                if (TURNED_N) {
                    to[column_of(j, lane % 4 * 2)] = narrow(made[0]);
                    to[column_of(j, lane % 4 * 2 + 1)] = narrow(made[1]);
                } else
                    put_pair(to + column_of(j, lane % 4 * 2), made[0], made[1]);
            }
        __syncwarp();
        store_rows(staged, i, target, ldp, m - row, n - column);
    }
}
