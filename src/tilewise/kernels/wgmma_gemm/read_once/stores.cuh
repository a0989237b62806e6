// stores: stages the sums of `read_once` in shared memory as rows of P, reduces them over the blocks of a cluster by rank, and stores
// them, by fours where P is aligned to 16 bytes.

// A tile in memory: P points at its first element, and has `height` rows and `width` columns from there.
struct Target { float* P; long long ldp; int height, width, onto; };

// Four neighbouring elements.
static __device__ __forceinline__ void store_four(const Target& tile, int r, int c, float4 sum) {
    float* to = tile.P + r * tile.ldp + c;
    float made[4] = {sum.x, sum.y, sum.z, sum.w};
    #pragma unroll
    for (int e = 0; e < 4; ++e)
        if (tile.onto && c + e < tile.width) made[e] += to[e];
    if (c + 4 <= tile.width && reinterpret_cast<unsigned long long>(to) % 16 == 0) {
        *reinterpret_cast<float4*>(to) = make_float4(made[0], made[1], made[2], made[3]);
        return;
    }
    #pragma unroll
    for (int e = 0; e < 4; ++e)
        if (c + e < tile.width) to[e] = made[e];
}

// This block's share of a tile of `rows` x `quads` fours, `pitch` floats a row: the sums of MOST blocks or less, in order, AT_ONCE
// fours of a thread on their way at once.
template <int MOST, int AT_ONCE> static __device__ __forceinline__ void add_up_share(
    const float* held, int blocks, int quads, int pitch, const Target& tile)
{
    const int threads = 128 * CONSUMERS;
    int end = tile.height * quads, step = blocks * threads, first = threadIdx.x;
    if (MOST > 1) first += cluster_rank() * threads;
    add_up_fours<MOST, AT_ONCE>(held, blocks, quads, pitch, first, end, step, tile.width,
                                [&](int r, int c, float4 sum) { store_four(tile, r, c, sum); });
}

// Sums to shared memory, as rows of P.
static __device__ __forceinline__ void hold(const float (&sums)[SUMS], float* held, int transposed) {
    int lane = threadIdx.x % 32, line = line_of_thread();
    int by_line = transposed ? 1 : WIDTH + 4, by_few = transposed ? LONG + 4 : 1;
    #pragma unroll
    for (int i = 0; i < SUMS; ++i)
        held[(line + i / 2 % 2 * LINES_ON) * by_line + (i / 4 * 8 + lane % 4 * 2 + i % 2) * by_few] = sums[i];
}
