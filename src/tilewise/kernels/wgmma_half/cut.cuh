// cut: k over the blocks of a cluster (CUT), which add up their sums in order and store P's elements themselves: one launch.
//
// Layout: behind its last phase a block's stages hold its sums, PITCH floats a row of P, in the same place in every block. With
//   TURNED_CUT the operands have changed places, and sums are put down turned: rows are P's rows either way.
// Order: each element is the sum of the blocks' in the order of their ranks, whoever adds it up: the same bits every time.
// Edges: rows and columns outside of P are neither added up nor stored; P's rows may start anywhere.
// Barrier: the consumers of a block, before sums are written over stages; the cluster, before they are read, and before anybody
//   leaves.

#define DOWN (TURNED_CUT ? BLOCK_N : BLOCK_M)    // rows of P of a tile,
#define ACROSS (TURNED_CUT ? BLOCK_M : BLOCK_N)  // and columns
#define PITCH (ACROSS + (TURNED_CUT ? 4 : 8))    // keeps rows on 16 bytes, and what a warp writes at a time on all banks
#define MOST_CUT 8                               // blocks of a cluster
#if CUT
static_assert(DOWN * PITCH * 4 <= STAGES * STAGE_BYTES, "the sums of a tile lie where its stages were");
#endif

// Four elements of P: the blocks' sums, in order.
static __device__ __forceinline__ float4 added_up(const float* held, int parts) {
    float4 part[MOST_CUT];  // on their way together
    #pragma unroll
    for (int other = 0; other < MOST_CUT; ++other)
        if (other < parts) part[other] = load_from_block(held, other);
    float4 sum = part[0];
    #pragma unroll
    for (int other = 1; other < MOST_CUT; ++other)
        if (other < parts)
            sum = make_float4(sum.x + part[other].x, sum.y + part[other].y, sum.z + part[other].z, sum.w + part[other].w);
    return sum;
}

// P points at the tile, whose first column is `column` of P; it has `height` x `width` elements.
static __device__ __forceinline__ void store_cut(
    const float (&sums)[SUMS], float* held, int parts, int group, Element* P, long long ldp, int column, int height, int width,
    const Epilogue& epilogue)
{
    const int threads = 128 * CONSUMERS;
    int lane = threadIdx.x % 32, row = group * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4;
    meet(1 + CONSUMERS, threads);
    #pragma unroll
    for (int i = 0; i < SUMS; i += 2) {
        int r = row + i / 2 % 2 * 8, c = i / 4 * 8 + lane % 4 * 2;
        if (TURNED_CUT) {
            held[c * PITCH + r] = sums[i];
            held[(c + 1) * PITCH + r] = sums[i + 1];
        } else
            *reinterpret_cast<float2*>(held + r * PITCH + c) = make_float2(sums[i], sums[i + 1]);
    }
    if (parts > 1)
        cluster_meet();
    else
        meet(1 + CONSUMERS, threads);
    int rank = parts > 1 ? cluster_rank() : 0, quads = (min(ACROSS, width) + 3) / 4;
    for (int i = rank * threads + (int)threadIdx.x - 128; i < min(DOWN, height) * quads; i += parts * threads) {
        int r = i / quads, c = i % quads * 4;
        float4 sum = added_up(held + r * PITCH + c, parts);
        Element* to = P + r * ldp + c;
        float made[4] = {sum.x, sum.y, sum.z, sum.w};
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            bool inside = c + e < width;
            made[e] = finish(made[e], ACCUMULATE && inside ? widen(to[e]) : 0.0f, bias_of(epilogue, column + c + e, inside),
                             epilogue);
        }
        unsigned low = narrow_pair(made[0], made[1]), high = narrow_pair(made[2], made[3]);
        if (c + 4 <= width && elements_after_boundary(to) % 4 == 0) {
            *reinterpret_cast<unsigned long long*>(to) = (unsigned long long)high << 32 | low;
            continue;
        }
        #pragma unroll
        for (int e = 0; e < 4; ++e)
            if (c + e < width) to[e] = (Element)((e < 2 ? low : high) >> e % 2 * 16);
    }
}
