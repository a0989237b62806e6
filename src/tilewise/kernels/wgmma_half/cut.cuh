// cut: k over the blocks of a cluster (CUT), which add up their sums in order and store P's elements themselves: one launch. The
// operands have changed places: few rows of P are a tile's columns.
//
// Layout: behind its last phase a block's stages hold its sums, turned, PITCH floats a row of P, in the same place in every block.
// Order: each element is the sum of the blocks' in the order of their ranks, whoever adds it up: the same bits every time.
// Edges: rows and columns outside of P are neither added up nor stored; P's rows may start anywhere.
// Barrier: the consumers of a block, before sums are written over stages; the cluster, before they are read, and before anybody
//   leaves.

#define PITCH (BLOCK_M + 4)  // keeps rows on 16 bytes, and what a warp writes at a time on all banks
#define MOST_CUT 8           // blocks of a cluster
#if CUT
static_assert(BLOCK_N * PITCH * 4 <= STAGES * STAGE_BYTES, "the sums of a tile lie where its stages were");
#endif

// Where a tile's elements go: P points at its first one, which is in column `column` of P; it has `height` x `width` of them.
struct CutTile { Element* P; long long ldp; int column, height, width; };

// Four elements side by side.
static __device__ __forceinline__ void store_four(const CutTile& tile, int r, int c, float4 sum, const Epilogue& epilogue) {
    Element* to = tile.P + r * tile.ldp + c;
    float made[4] = {sum.x, sum.y, sum.z, sum.w};
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
        bool inside = c + e < tile.width;
        Sum bias = bias_of(epilogue, tile.column + c + e, inside);
        made[e] = finish(made[e], ACCUMULATE && inside ? widen(to[e]) : 0.0f, bias, epilogue);
    }
    unsigned low = narrow_pair(made[0], made[1]), high = narrow_pair(made[2], made[3]);
    if (c + 4 <= tile.width && elements_after_boundary(to) % 4 == 0) {
        *reinterpret_cast<unsigned long long*>(to) = (unsigned long long)high << 32 | low;
        return;
    }
    #pragma unroll
    for (int e = 0; e < 4; ++e)
        if (c + e < tile.width) to[e] = (Element)((e < 2 ? low : high) >> e % 2 * 16);
}

// This block's share of the tile: the sums of MOST blocks or less, in order, AT_ONCE pieces of a thread on their way at once.
template <int MOST, int AT_ONCE> static __device__ __forceinline__ void add_up_share(
    const float* held, int parts, const CutTile& tile, const Epilogue& epilogue)
{
    const int threads = 128 * CONSUMERS, quads = BLOCK_M / 4;
    int end = min(BLOCK_N, tile.height) * quads, step = parts * threads, first = (int)threadIdx.x - 128;
    if (MOST > 1) first += cluster_rank() * threads;
    add_up_fours<MOST, AT_ONCE>(held, parts, quads, PITCH, first, end, step, tile.width,
                                [&](int r, int c, float4 sum) { store_four(tile, r, c, sum, epilogue); });
}

static __device__ __forceinline__ void store_cut(
    const float (&sums)[SUMS], float* held, int parts, int group, const CutTile& tile, const Epilogue& epilogue)
{
    const int threads = 128 * CONSUMERS;
    int lane = threadIdx.x % 32, row = group * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4;
    meet(1 + CONSUMERS, threads);
    #pragma unroll
    for (int i = 0; i < SUMS; i += 2) {
        int r = row + i / 2 % 2 * 8, c = i / 4 * 8 + lane % 4 * 2;
        held[c * PITCH + r] = sums[i];
        held[(c + 1) * PITCH + r] = sums[i + 1];
    }
    if (parts > 1)
        cluster_meet();
    else
        meet(1 + CONSUMERS, threads);
    if (parts == 1)
        add_up_share<1, 4>(held, parts, tile, epilogue);
    else if (parts == 2)
        add_up_share<2, 4>(held, parts, tile, epilogue);
    else if (parts <= 4)
        add_up_share<4, 2>(held, parts, tile, epilogue);
    else
        add_up_share<MOST_CUT, 1>(held, parts, tile, epilogue);
}
