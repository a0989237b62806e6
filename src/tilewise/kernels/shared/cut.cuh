// cut: split-K over the blocks of a cluster: they add up their float32 sums of a tile inside the launch, and store P.
//
// Layout: a block's sums lie in its shared memory, HELD to a row, in the same place in every block.
// Order: each element is added up by one thread, in the order of the blocks' ranks: the same bits every time.
// Edges: rows and columns outside of P are neither added up nor stored; P's rows may start anywhere.
// Barrier: the cluster, before sums are read, and before a block exits.

#define HELD (BLOCK_N + 32 / (int)sizeof(Sum))  // a warp's stores hit all banks
#define CUT_FITS (BLOCK_M * HELD * (int)sizeof(Sum) <= STAGES * STAGE_BYTES)  // whether the sums fit the memory of the stages
#define MOST_CUT 8                                                            // blocks of a cluster

// Four neighbouring sums of row `r` of the tile, from column `c` on.
static __device__ __forceinline__ void store_four(
    Result* P, long long ldp, int column, int width, const Epilogue& epilogue, int r, int c, float4 sum)
{
    float made[4] = {sum.x, sum.y, sum.z, sum.w};
    #pragma unroll
    for (int e = 0; e < 4; ++e) {
        if (c + e >= width) continue;
        Result* to = P + r * ldp + c + e;
        Sum bias = bias_of(epilogue, column + c + e, true);
        *to = narrow(finish(made[e], ACCUMULATE ? widen(*to) : (Sum)0, bias, epilogue));
    }
}

// P points at the tile, of which `height` x `width` are inside P; `column` is its first column.
static __device__ __forceinline__ void add_up_tile(
    const Sum* held, int parts, Result* P, long long ldp, int column, int height, int width, const Epilogue& epilogue)
{
    const int quads = BLOCK_N / 4;
    int first = cluster_rank() * THREADS + (int)threadIdx.x, end = min(BLOCK_M, height) * quads, step = parts * THREADS;
    auto wanted = [=](int at) { return at % quads * 4 < width; };
    auto from = [=](int at, int other) {
        return *shared_of_block(reinterpret_cast<const float4*>(held + at / quads * HELD + at % quads * 4), other);
    };
    auto store = [&](int at, float4 sum) {
        store_four(P, ldp, column, width, epilogue, at / quads, at % quads * 4, sum);
    };
    cluster_sync();
    if (parts <= 4)
        add_up<float4, 4, 2>(parts, first, end, step, wanted, from, add_fours, store);
    else
        add_up<float4, MOST_CUT, 1>(parts, first, end, step, wanted, from, add_fours, store);
    cluster_sync();  // a block must not exit while another reads its shared memory
}
