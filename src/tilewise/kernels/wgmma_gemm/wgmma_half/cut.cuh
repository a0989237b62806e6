// cut: k over the blocks of a cluster (CUT), which add up their sums in order and store P's elements themselves: one launch.
// A tile's columns are P's few columns, or with FEW_ROWS its few rows: then operands have changed places.
//
// Layout: behind its last phase a block's stages hold its sums, PITCH floats a row of P, in the same place in every block.
// Order: each element is summed over the blocks by rank: the same bits in every run.
// Edges: rows and columns outside of P are neither added up nor stored; P's rows may start anywhere.
// Barrier: the consumers of a block, before sums are written over stages; the cluster, before they are read, and before a block
//   exits.

#define CUT_ROWS (FEW_ROWS ? BLOCK_N : BLOCK_M)  // of P, that a tile has
#define CUT_COLS (FEW_ROWS ? BLOCK_M : BLOCK_N)
#define PITCH (CUT_COLS + (FEW_ROWS ? 4 : 8))  // rows aligned to 16 bytes, no bank conflicts
#define MOST_CUT 8           // blocks of a cluster
#if CUT
static_assert(CUT_ROWS * PITCH * 4 <= STAGES * STAGE_BYTES, "the sums of a tile lie where its stages were");
#endif

// The target of a tile: P points at its first element, in column `column` of P; `height` x `width` elements are inside P.
struct CutTile { Element* P; long long ldp; int column, height, width; };

// Four neighbouring elements.
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

// Reduces and stores this block's share of the tile. One small loop for any number of blocks, because it runs once, from a cold
// instruction cache.
static __device__ __forceinline__ void add_up_share(
    const float* held, int parts, const CutTile& tile, const Epilogue& epilogue)
{
    const int threads = 128 * CONSUMERS, quads = CUT_COLS / 4;
    int end = min(CUT_ROWS, tile.height) * quads, first = (int)threadIdx.x - 128;
    if (parts > 1) first += cluster_rank() * threads;
    #pragma unroll 1
    for (int i = first; i < end; i += parts * threads) {
        int r = i / quads, c = i % quads * 4;
        const float* from = held + r * PITCH + c;
        if (c >= tile.width) continue;
        float4 part[MOST_CUT];
        #pragma unroll
        for (int other = 0; other < MOST_CUT; ++other)
            if (other < parts) part[other] = load_from_block(from, other);
        float4 sum = part[0];
        #pragma unroll
        for (int other = 1; other < MOST_CUT; ++other)
            if (other < parts)
                sum = make_float4(sum.x + part[other].x, sum.y + part[other].y, sum.z + part[other].z, sum.w + part[other].w);
        store_four(tile, r, c, sum, epilogue);
    }
}

static __device__ __forceinline__ void store_cut(
    const float (&sums)[SUMS], float* held, int parts, int group, const CutTile& tile, const Epilogue& epilogue)
{
    const int threads = 128 * CONSUMERS;
    int lane = threadIdx.x % 32, row = group * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4;
    barrier_sync(1 + CONSUMERS, threads);
    #pragma unroll
    for (int i = 0; i < SUMS; i += 2) {
        int r = row + i / 2 % 2 * 8, c = i / 4 * 8 + lane % 4 * 2;
        if (FEW_ROWS) {
            held[c * PITCH + r] = sums[i];
            held[(c + 1) * PITCH + r] = sums[i + 1];
        } else
            *reinterpret_cast<float2*>(held + r * PITCH + c) = make_float2(sums[i], sums[i + 1]);
    }
    if (parts > 1)
        cluster_sync();
    else
        barrier_sync(1 + CONSUMERS, threads);
    add_up_share(held, parts, tile, epilogue);
}
