// stores: reduces the sums of `half_dots` over slices of k, then over the blocks of a cluster by rank, and stores P.

// The sums in shared memory: rows of `pitch` floats, 2^log_quads fours each. A row is one of the few lines, and its columns are lines of
// the long operand; the other way round where P has few columns.
struct Held { int rows, log_quads, pitch; };

static __device__ __forceinline__ Held held_as(const Lines& p, int height) {
    if (p.swapped) return {height, WIDTH == 8 ? 1 : WIDTH == 16 ? 2 : 3, WIDTH + 4};
    return {p.few, 29 - __clz(height), height + 4};
}

static __device__ __forceinline__ int whole_of(const Lines& p, int height) {
    return p.swapped ? height * (WIDTH + 4) : WIDTH * (height + 4);
}

static __device__ __forceinline__ Sum* cell_of(Sum* made, const Lines& p, int pitch, int few, int line) {
    return made + (p.swapped ? line * pitch + few : few * pitch + line);
}

static __device__ __forceinline__ int four_of(const Held& as, int i) {
    return (i >> as.log_quads) * as.pitch + (i & (1 << as.log_quads) - 1) * 4;
}

// The sums of `slices` at `made`, `whole` apart, into the first of them.
static __device__ __forceinline__ void add_slices(Sum* made, const Held& as, int slices, int whole) {
    if (slices == 1) return;
    #pragma unroll 2
    for (int i = threadIdx.x; i < as.rows << as.log_quads; i += THREADS) {
        float4* at = reinterpret_cast<float4*>(made + four_of(as, i));
        float4 sum = *at;
        #pragma unroll 4
        for (int other = 1; other < slices; ++other) sum = add_fours(sum, at[other * (whole / 4)]);
        *at = sum;
    }
}

// A block's lines of the long operand: `origin`, `origin + classes`, ...
struct Target { int origin, classes; };

static __device__ __forceinline__ void store_four(
    const Lines& p, const Epilogue& epilogue, const Target& to, int row, int at, float4 sum)
{
    float four[4] = {sum.x, sum.y, sum.z, sum.w};
    int few = p.swapped ? at : row, line = to.origin + (p.swapped ? row : at) * to.classes;
    int next_few = p.swapped ? 1 : 0, next_line = p.swapped ? 0 : to.classes;
    Element* cell = p.P + few * p.p_few + line * p.p_long;
    long long apart = p.swapped ? p.p_few : to.classes * p.p_long;
    bool all = few + 3 * next_few < p.few && line + 3 * next_line < p.length;
    Sum made[4];
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
        int of_few = few + e * next_few, of_line = line + e * next_line;
        bool there = all || (of_few < p.few && of_line < p.length);
        Sum held = ACCUMULATE && there ? widen(cell[e * apart]) : (Sum)0;
        made[e] = finish(four[e], held, bias_of(epilogue, p.swapped ? of_few : of_line, there), epilogue);
        if (!all && there) cell[e * apart] = narrow(made[e]);
    }
    if (!all) return;
    if (apart == 1 && reinterpret_cast<unsigned long long>(cell) % 4 == 0) {
        put_pair(cell, made[0], made[1]);
        put_pair(cell + 2, made[2], made[3]);
    } else {
        #pragma unroll
        for (int e = 0; e < 4; ++e) cell[e * apart] = narrow(made[e]);
    }
}

// Reduces and stores this block's share of the cluster's sums (MOST blocks at most); a thread loads AT_ONCE fours before it uses them.
template <int MOST, int AT_ONCE> static __device__ __forceinline__ void store_share(
    const Sum* made, const Held& as, const Lines& p, const Epilogue& epilogue, const Target& to, int parts, int rank)
{
    add_up<float4, MOST, AT_ONCE>(
        parts, rank * THREADS + (int)threadIdx.x, as.rows << as.log_quads, parts * THREADS, [](int) { return true; },
        [=](int at, int other) {
            const float4* from = reinterpret_cast<const float4*>(made + four_of(as, at));
            return MOST == 1 ? *from : *shared_of_block(from, other);
        },
        add_fours,
        [&](int at, float4 sum) {
            store_four(p, epilogue, to, at >> as.log_quads, (at & (1 << as.log_quads) - 1) * 4, sum);
        });
}

static __device__ __forceinline__ void store(
    const Sum* made, const Held& as, const Lines& p, const Epilogue& epilogue, const Target& to)
{
    int parts = cluster_blocks(), rank = cluster_rank();
    if (parts == 1) {
        __syncthreads();
        store_share<1, 2>(made, as, p, epilogue, to, 1, 0);
        return;
    }
    cluster_sync();
    if (parts <= 4)
        store_share<4, 1>(made, as, p, epilogue, to, parts, rank);
    else
        store_share<MOST_CUT, 1>(made, as, p, epilogue, to, parts, rank);
    cluster_sync();  // a block must not exit while another reads its shared memory
}
