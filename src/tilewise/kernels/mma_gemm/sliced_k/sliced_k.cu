// sliced_k: a warp computes a TM x TN tile of P over a slice of k by itself: no barrier and no shared data until its sums are
// complete. SLICES warps of a block and the blocks of a cluster take the slices of a tile, whose sums are added up in order.
// So few tiles fill a card, and no phase waits for the slowest warp of a block. A block's tiles are 1 << wide_bits side by side.
//
// Layout: any strides below 2 GB. A warp's main loop is in `plain_cores.cuh` or `tensor_cores.cuh`.
// Edges: outside M and N the last line is read again, and its results are not stored; beyond k is 0.
// Barrier: one when the sums of the block's tiles are complete, and two of the cluster.

#define SIDE (16 / SIZE)                // elements of 16 bytes
struct __align__(16) Several { Element of[SIDE]; };

// The part of P that a tile covers.
struct Target {
    Element* P;
    long long row_step, col_step;
    int rows, cols, accumulate;

    __device__ __forceinline__ void store(int row, int col, Element sum) const {
        Element* to = P + row * row_step + col * col_step;
        *to = accumulate ? *to + sum : sum;
    }
};

static __device__ __forceinline__ void onto(Several& sum, const Several& more) {
    #pragma unroll
    for (int e = 0; e < SIDE; ++e) sum.of[e] += more.of[e];
}

// Adds up a tile's sums over the slices of the block, into those of the first slice.
static __device__ __forceinline__ void add_slices(Element* parts, int slices, int mine, int warps) {
    const int ACROSS = TN / SIDE;
    #pragma unroll 2
    for (int unit = mine * 32 + threadIdx.x % 32; unit < TM * ACROSS; unit += warps * 32) {
        Several* at = (Several*)(parts + unit / ACROSS * PITCH + unit % ACROSS * SIDE);
        Several sum = *at;
        #pragma unroll 4
        for (int slice = 1; slice < slices; ++slice) onto(sum, *(const Several*)((unsigned char*)at + slice * WARP_BYTES));
        *at = sum;
    }
}

// Partial sum `part`: of a slice of this block, or of a block of the cluster.
template <bool ALONE, typename Value> static __device__ __forceinline__ Value part_of(const Element* at, int part) {
    return *(const Value*)(ALONE ? (const Element*)((const unsigned char*)at + part * WARP_BYTES) : shared_of_block(at, part));
}

static __device__ __forceinline__ void onto(Element& sum, const Element& more) { sum += more; }

// Adds up the parts of up to AT_ONCE places, `apart` elements apart, in order; their loads are in flight together.
template <bool ALONE, typename Value, int AT_ONCE>
static __device__ __forceinline__ void added(Value (&sums)[AT_ONCE], const Element* at, int apart, int places, int count) {
    #pragma unroll
    for (int u = 0; u < AT_ONCE; ++u)
        if (u < places) sums[u] = part_of<ALONE, Value>(at + u * apart, 0);
    #pragma unroll 2
    for (int part = 1; part < count; ++part)
        #pragma unroll
        for (int u = 0; u < AT_ONCE; ++u)
            if (u < places) onto(sums[u], part_of<ALONE, Value>(at + u * apart, part));
}

// Warp `mine` of `warps` stores its share of a tile of which P has `rows` x `cols`.
template <bool ALONE>
static __device__ __forceinline__ void store_tile(
    const Element* parts, int count, const Target& target, bool transposed, int mine, int warps)
{
    int lane = threadIdx.x % 32;
    if (transposed) {  // P is column-major: neighbouring lanes take rows, 16 bytes of each
        const int AT_ONCE = TM / 32;
        for (int col = mine * SIDE; col < min(TN, target.cols); col += warps * SIDE) {
            Several sums[AT_ONCE];
            added<ALONE>(sums, parts + lane * PITCH + col, 32 * PITCH, AT_ONCE, count);
            #pragma unroll
            for (int u = 0; u < AT_ONCE; ++u)
                #pragma unroll
                for (int e = 0; e < SIDE; ++e)
                    if (lane + u * 32 < target.rows && col + e < target.cols) target.store(lane + u * 32, col + e, sums[u].of[e]);
        }
        return;
    }
    const int WIDE = TN % 32 ? 16 : 32, LINES = 32 / WIDE, AT_ONCE = 4;  // a warp stores so many cells of so many rows
    int apart = warps * LINES, rows = min(TM, target.rows);
    #pragma unroll
    for (int left = 0; left < TN; left += WIDE) {
        int col = left + lane % WIDE;
        if (col >= target.cols) break;
        for (int row = mine * LINES + lane / WIDE; row < rows; row += AT_ONCE * apart) {
            Element sums[AT_ONCE];
            int places = row + 3 * apart < rows ? 4 : row + 2 * apart < rows ? 3 : row + apart < rows ? 2 : 1;
            added<ALONE>(sums, parts + row * PITCH + col, apart * PITCH, places, count);
            #pragma unroll
            for (int u = 0; u < AT_ONCE; ++u)
                if (u < places) target.store(row + u * apart, col, sums[u]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(MOST_THREADS, RESIDENT) sliced_k(
    const Element* __restrict__ M, const Element* __restrict__ N, Element* P, int m, int k, int n,
    int m_line, int m_k, int n_line, int n_k, long long p_row, long long p_col, int how_m, int how_n, int accumulate,
    int groups_n, unsigned per_row, int slice_bits, int block_bits, int wide_bits, int piece,
    long long step_M, long long step_N, long long step_P)
{
    // make_tile waits for the kernel before, before its first read
    int blocks = 1 << block_bits, rank = blockIdx.x & blocks - 1, warp = threadIdx.x / 32, slices = 1 << slice_bits;
    int group = blockIdx.x >> block_bits, slice = warp & slices - 1, team = warp >> slice_bits;
    int down = (int)((unsigned long long)group * per_row >> 32), across = group - down * groups_n;
    if (across >= groups_n) ++down, across -= groups_n;  // per_row is rounded down
    down = down * (blockDim.x / 32 >> slice_bits + wide_bits) + (team >> wide_bits);
    across = (across << wide_bits) + (team & (1 << wide_bits) - 1);
    int top = down * TM, left = across * TN, from = min((rank * slices + slice) * piece, k), till = min(from + piece, k);
    Element* own = (Element*)(memory + warp * WARP_BYTES);
    bool here = top < m && left < n;
    if (here) {
        Operand of_m = {(const unsigned char*)(M + blockIdx.y * step_M), m_line, m_k, top, m - 1, how_m};
        Operand of_n = {(const unsigned char*)(N + blockIdx.y * step_N), n_line, n_k, left, n - 1, how_n};
        make_tile(of_m, of_n, from, till, own, min(TN, n - left));
    } else sync_grids();
    Target target = {P + blockIdx.y * step_P + top * p_row + left * p_col, p_row, p_col, m - top, n - left, accumulate};
    bool transposed = p_row < p_col, alone = blocks == 1;
    Element* parts = (Element*)(memory + (warp - slice) * WARP_BYTES);
    if (alone) {
        if (slices == 1) __syncwarp();
        else __syncthreads();
        if (here) store_tile<true>(parts, slices, target, transposed, slice, slices);
        return;
    }
    if (slices > 1) {
        __syncthreads();
        if (here) add_slices(parts, slices, slice, slices);
    }
    cluster_sync();
    if (here) store_tile<false>(parts, blocks, target, transposed, rank * slices + slice, blocks * slices);
    cluster_sync();  // a block must not exit while another reads its shared memory
}
