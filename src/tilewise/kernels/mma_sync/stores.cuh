// stores: how sums leave the registers of `mma_sync` for P: 16 rows of a warp at a time; or, where the blocks of a cluster have
// a part of k each, all of a tile's in shared memory, where the blocks add up each other's in the order of their ranks.

#define HELD (BLOCK_N + 32 / (int)sizeof(Sum))  // sums of a row that is added up: what a warp puts down at a time lies in all banks
#define CUT_FITS (BLOCK_M * HELD * (int)sizeof(Sum) <= STAGES * STAGE_BYTES)  // whether they lie where the stages were
#define MOST_CUT 8                                                            // blocks of a cluster

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

struct __align__(16) Several { Sum of[16 / sizeof(Sum)]; };

// A tile's sums, which P points at: `height` x `width` of it are P's, from its column `column` on. Every element is added up by
// one thread, in the order of the blocks' ranks: the same bits every time.
static __device__ __forceinline__ void store_cut(
    const Sum (&sums)[MATS][COLS][4], int parts, int top, int left, Result* P, long long ldp, int column, int height, int width,
    const Epilogue& epilogue)
{
    const int several = 16 / (int)sizeof(Sum);
    Sum* held = reinterpret_cast<Sum*>(memory);
    int lane = threadIdx.x % 32;
    #pragma unroll
    for (int i = 0; i < MATS; ++i)
        #pragma unroll
        for (int j = 0; j < COLS; ++j)
            #pragma unroll
            for (int e = 0; e < 4; ++e)
                held[(top + row_of(i, lane / 4 + e / 2 * 8)) * HELD + left + column_of(j, lane % 4 * 2 + e % 2)] = sums[i][j][e];
    cluster_meet();
    int pieces = (min(BLOCK_N, width) + several - 1) / several;
    for (int i = cluster_rank() * THREADS + threadIdx.x; i < min(BLOCK_M, height) * pieces; i += parts * THREADS) {
        int r = i / pieces, c = i % pieces * several;
        const Several* at = reinterpret_cast<const Several*>(held + r * HELD + c);
        Several part[MOST_CUT];  // on their way together
        #pragma unroll
        for (int other = 0; other < MOST_CUT; ++other)
            if (other < parts) part[other] = *in_block(at, other);
        #pragma unroll
        for (int e = 0; e < several; ++e) {
            Sum sum = part[0].of[e];
            #pragma unroll
            for (int other = 1; other < MOST_CUT; ++other)
                if (other < parts) sum += part[other].of[e];
            if (c + e >= width) continue;
            Result* to = P + r * ldp + c + e;
            *to = narrow(finish(sum, ACCUMULATE ? widen(*to) : (Sum)0, bias_of(epilogue, column + c + e, true), epilogue));
        }
    }
    cluster_meet();  // nobody leaves while another reads here
}
