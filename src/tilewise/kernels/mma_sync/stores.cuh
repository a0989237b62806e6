// stores: how sums leave the registers of `mma_sync` for P, 16 rows of a warp at a time; or for the blocks of a cluster.

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

// A tile's sums to where the blocks of a cluster add them up (cut.cuh). `top` and `left` are the warp's.
static __device__ __forceinline__ void hold_sums(const Sum (&sums)[MATS][COLS][4], int top, int left) {
    Sum* held = reinterpret_cast<Sum*>(memory);
    int lane = threadIdx.x % 32;
    #pragma unroll
    for (int i = 0; i < MATS; ++i)
        #pragma unroll
        for (int j = 0; j < COLS; ++j)
            #pragma unroll
            for (int e = 0; e < 4; ++e)
                held[(top + row_of(i, lane / 4 + e / 2 * 8)) * HELD + left + column_of(j, lane % 4 * 2 + e % 2)] = sums[i][j][e];
}
