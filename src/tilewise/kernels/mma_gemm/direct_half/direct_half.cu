// direct_half: BLOCK_M x BLOCK_N of P a block on tensor cores, from lines of any alignment, in one launch: for stacks and products
// with unaligned rows, where a separate realigning pass would take longer than the product.
//
// Layout: a phase holds 64 of k. An operand that is contiguous along k has a line of 64 k for each row (column), others a line of rows
//   (columns) for each k. Every thread loads the aligned 16-byte words that contain its eight elements, shifts them and stores them to
//   shared memory, swizzled so that `ldmatrix` has no bank conflicts. Blocks are numbered member by member, tile by tile.
// Edges: a word is loaded only if it contains elements of its own line; words across the ends of the operand are loaded by elements.
//   Elements beyond k are 0 in both operands; those outside P are not stored.
// Groups: with BY_ROWS, M's rows are consecutive groups, each with a matrix of N of its own; `walk` lists the tiles (walk_groups.cu). A
//   tile ends with its group, and rows behind the last group are 0.
// Barrier: one a phase, before its products: after it the phase before has been read, and its buffer takes the next one.
// Stores: sums are staged in shared memory and stored by 16 bytes between P's 16-byte boundaries, for any stride. Split-K over the
//   blocks of a cluster: cut.cuh.

// One operand of one member: WIDTH of its rows (columns) from `first` on, and this thread's words of the next phase.
template <int WIDTH, bool ALONG_K> struct Operand {
    static constexpr int LINES = ALONG_K ? WIDTH : BLOCK_K, PIECES = (ALONG_K ? BLOCK_K : WIDTH) / 8;
    static constexpr int COUNT = LINES * PIECES / THREADS;
    static_assert(COUNT * THREADS == LINES * PIECES && COUNT <= 10, "every thread loads as much as every other");

    const Element* matrix;
    const Element* begin;  // of the operand with all members
    const Element* end;
    long long lead;
    int first, extent, k;
    unsigned shifts;  // misalignment of each of the thread's lines in elements, 3 bits each: the same in every phase
    uint4 low[COUNT], high[COUNT];

    static __device__ __forceinline__ int line_of(int i) { return ((int)threadIdx.x + i * THREADS) / PIECES; }
    static __device__ __forceinline__ int piece_of(int i) { return ((int)threadIdx.x + i * THREADS) % PIECES; }
    static __device__ __forceinline__ int swizzle(int line) { return PIECES >= 8 ? line & 7 : line / (8 / PIECES) & PIECES - 1; }

    // Byte offset of a line's 16-byte chunk in the tile.
    static __device__ __forceinline__ int place(int line, int piece) {
        return line * PIECES * 16 + ((piece ^ swizzle(line)) << 4);
    }

    __device__ __forceinline__ void start() {
        shifts = 0;
        #pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const Element* line = matrix + ((ALONG_K ? first : 0) + line_of(i)) * lead;
            shifts |= elements_after_boundary(ALONG_K ? line : line + first) << 3 * i;  // a group may begin at any row
        }
    }

    // Whether words of this phase may reach outside the operand.
    __device__ __forceinline__ bool near_ends(int k0) const {
        int from = ALONG_K ? first : k0, last = (ALONG_K ? min(first + LINES, extent) : min(k0 + LINES, k)) - 1;
        return matrix + from * lead - 8 < begin || matrix + last * lead + (ALONG_K ? k : extent) + 8 > end;
    }

    __device__ __forceinline__ bool outside(const Element* word) const { return word < begin || word + 8 > end; }

    // Loads the words of a phase; 0 for those outside the operand.
    __device__ __forceinline__ void load(int k0) {
        const int length = ALONG_K ? k : extent;
        #pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            int line = (ALONG_K ? first : k0) + line_of(i), at = (ALONG_K ? k0 : first) + piece_of(i) * 8;
            int shift = shifts >> 3 * i & 7;
            bool there = line < (ALONG_K ? extent : k) && at < length;
            const Element* word = matrix + line * lead + at - shift;
            low[i] = high[i] = make_uint4(0, 0, 0, 0);
            if (there && !outside(word)) low[i] = __ldg(reinterpret_cast<const uint4*>(word));
            if (there && shift && at - shift + 8 < length && !outside(word + 8))
                high[i] = __ldg(reinterpret_cast<const uint4*>(word + 8));
        }
    }

    // Chunks from words across the operand's ends, element by element.
    __device__ __forceinline__ void load_elementwise(unsigned char* tile, int k0) const {
        #pragma unroll 1
        for (int i = 0; i < COUNT; ++i) {
            int line = (ALONG_K ? first : k0) + line_of(i), at = (ALONG_K ? k0 : first) + piece_of(i) * 8;
            const Element* from = matrix + line * lead + at;
            const Element* word = from - elements_after_boundary(from);
            if (line >= (ALONG_K ? extent : k) || !(outside(word) || outside(word + 8))) continue;
            Element* to = reinterpret_cast<Element*>(tile + place(line_of(i), piece_of(i)));
            #pragma unroll 1
            for (int e = 0; e < 8; ++e) to[e] = at + e < (ALONG_K ? k : extent) ? from[e] : (Element)0;
        }
    }

    __device__ __forceinline__ void put(unsigned char* tile, int k0) const {
        #pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            uint4 made = shifted_by(low[i], high[i], shifts >> 3 * i & 7);
            if (ALONG_K && k0 + BLOCK_K > k) made = first_of(made, k - k0 - piece_of(i) * 8);
            *reinterpret_cast<uint4*>(tile + place(line_of(i), piece_of(i))) = made;
        }
        if (near_ends(k0)) load_elementwise(tile, k0);
    }
};

typedef Operand<BLOCK_M, M_ALONG_K> OperandM;
typedef Operand<BLOCK_N, N_ALONG_K> OperandN;

// This warp's products over `deep` of k.
static __device__ __forceinline__ void multiply_phase(
    Sum (&sums)[MATS][COLS][4], const unsigned char* tile_m, const unsigned char* tile_n, int row, int column, int deep)
{
    int lane = threadIdx.x % 32, low = lane % 8, mid = lane / 8 % 2, high = lane / 16;
    auto shared = [](const unsigned char* at) { return (unsigned)__cvta_generic_to_shared(at); };
    #pragma unroll
    for (int step = 0; step < BLOCK_K / 16; ++step) {
        if (step * 16 >= deep) break;
        unsigned of_m[MATS][4], of_n[COLS][2];
        #pragma unroll
        for (int i = 0; i < MATS; ++i) {
            int across = row + i * 16 + mid * 8, along = step * 16 + high * 8;
            read_matrices<!M_ALONG_K>(
                shared(tile_m + (M_ALONG_K ? OperandM::place(across + low, along / 8) : OperandM::place(along + low, across / 8))),
                of_m[i][0], of_m[i][1], of_m[i][2], of_m[i][3]);
        }
        #pragma unroll
        for (int j = 0; j < COLS; j += 2) {
            int across = column + j * 8 + high * 8, along = step * 16 + mid * 8;
            read_matrices<!N_ALONG_K>(
                shared(tile_n + (N_ALONG_K ? OperandN::place(across + low, along / 8) : OperandN::place(along + low, across / 8))),
                of_n[j][0], of_n[j][1], of_n[j + 1][0], of_n[j + 1][1]);
        }
        #pragma unroll
        for (int i = 0; i < MATS; ++i)
            #pragma unroll
            for (int j = 0; j < COLS; ++j) multiply(sums[i][j], of_m[i], of_n[j]);
    }
}

// `height` staged rows of `width` elements to P, which points at the tile.
static __device__ __forceinline__ void store_tile(Element* P, long long ldp, int height, int width) {
    const int lanes = BLOCK_N / 8 < 8 ? 8 : BLOCK_N / 8;  // to a row; as many as elements at its ends, at least
    int i = threadIdx.x % lanes;
    for (int row = threadIdx.x / lanes; row < height; row += THREADS / lanes)
        store_pieces(P + row * ldp, reinterpret_cast<const Element*>(memory + row * PITCH), i, width);
}

// The extent of all members of M, or N, in elements relative to the pointer.
struct Reach { long long low, high; };

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) direct_half(
    const Element* __restrict__ M, const Element* __restrict__ N, Element* P, Epilogue epilogue, int m, int k, int n,
    long long ldm, long long ldn, long long ldp, Reach of_m, Reach of_n, int tiles, int tiles_n,
    long long step_M, long long step_N, long long step_P, const int* walk)
{
    wait_on_dependent_grids();
    launch_dependent_grids();
    const bool whole = BY_ROWS || !CUT_FITS;  // no split-K
    int parts = whole ? 1 : cluster_blocks();
#if BY_ROWS
    int tile = blockIdx.x / tiles_n, left = blockIdx.x % tiles_n * BLOCK_N;
    if (tile >= walk[0]) return;
    int member = walk[4 * (1 + tile)], top = walk[4 * (1 + tile) + 1];
    m = walk[4 * (1 + tile) + 2];
    if (member < 0) member = k = 0;
#else
    int block = blockIdx.x / parts, member = block / tiles, tile = block - member * tiles;
    int top = tile / tiles_n * BLOCK_M, left = tile % tiles_n * BLOCK_N;
#endif
    int warp = threadIdx.x / 32, row = warp / WARPS_N * WARP_M, column = warp % WARPS_N * WARP_N;
    bool busy = top + row < m && left + column < n;
    int from = 0;  // this block's part of k
    if (!whole) {
        int phases = (k + BLOCK_K - 1) / BLOCK_K, rank = cluster_rank();
        from = phases * rank / parts * BLOCK_K;
        k = min(k, phases * (rank + 1) / parts * BLOCK_K);
    }
    OperandM from_m = {M + member * step_M, M + of_m.low, M + of_m.high, ldm, top, m, k};
    OperandN from_n = {N + member * step_N, N + of_n.low, N + of_n.high, ldn, left, n, k};
    from_m.start();
    from_n.start();

    Sum sums[MATS][COLS][4];
    #pragma unroll
    for (int i = 0; i < MATS * COLS * 4; ++i) sums[i / (COLS * 4)][i / 4 % COLS][i % 4] = 0;
    if (from < k) {
        from_m.load(from);
        from_n.load(from);
    }
    unsigned char* stage = memory;
    for (int k0 = from; k0 < k; k0 += BLOCK_K) {
        from_m.put(stage, k0);
        from_n.put(stage + BLOCK_M * 128, k0);
        __syncthreads();
        if (k0 + BLOCK_K < k) {
            from_m.load(k0 + BLOCK_K);
            from_n.load(k0 + BLOCK_K);
        }
        if (busy) multiply_phase(sums, stage, stage + BLOCK_M * 128, row, column, k - k0);
        stage = stage == memory ? memory + STAGE_BYTES : memory;
    }
    __syncthreads();  // all phases have been read: their buffers take the sums

    Element* target = P + member * step_P + top * ldp + left;
    int lane = threadIdx.x % 32;
    if (!whole && cluster_blocks() > 1) {
        Sum* held = reinterpret_cast<Sum*>(memory);
        #pragma unroll
        for (int i = 0; i < MATS * COLS * 4; ++i) {
            int r = row + i / (COLS * 4) * 16 + i / 2 % 2 * 8 + lane / 4, c = column + i / 4 % COLS * 8 + lane % 4 * 2 + i % 2;
            held[r * HELD + c] = sums[i / (COLS * 4)][i / 4 % COLS][i % 4];
        }
        add_up_tile(held, cluster_blocks(), target, ldp, left, m - top, n - left, epilogue);
        return;
    }
    #pragma unroll
    for (int i = 0; i < MATS * COLS * 2; ++i) {
        int r = row + i / (COLS * 2) * 16 + i % 2 * 8 + lane / 4, c = column + i / 2 % COLS * 8 + lane % 4 * 2;
        Sum made[2];
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            bool inside = top + r < m && left + c + e < n;
            Sum held = ACCUMULATE && inside ? widen(target[r * ldp + c + e]) : (Sum)0;
            Sum bias = bias_of(epilogue, left + c + e, left + c + e < n);
            made[e] = finish(sums[i / (COLS * 2)][i / 2 % COLS][i % 2 * 2 + e], held, bias, epilogue);
        }
        put_pair(reinterpret_cast<Element*>(memory + r * PITCH) + c, made[0], made[1]);
    }
    __syncthreads();
    store_tile(target, ldp, min(BLOCK_M, m - top), min(BLOCK_N, n - left));
}
