// cut: k over the blocks of a cluster, which add up their sums of a tile inside the launch, and store P themselves. A block
// that is alone stores its own.
//
// Layout: a block's sums lie in its shared memory, HELD to a row, in the same place in every block.
// Order: each element is added up by one thread, in the order of the blocks' ranks: the same bits every time.
// Edges: rows and columns outside of P are neither added up nor stored; P's rows may start anywhere.
// Barrier: the cluster, before sums are read, and before anybody leaves.

#define HELD (BLOCK_N + 32 / (int)sizeof(Sum))  // what a warp puts down at a time lies in all banks
#define CUT_FITS (BLOCK_M * HELD * (int)sizeof(Sum) <= STAGES * STAGE_BYTES)  // whether sums lie where the stages were
#define MOST_CUT 8                                                            // blocks of a cluster

struct __align__(16) Several { Sum of[16 / sizeof(Sum)]; };

// P points at the tile: `height` x `width` of it are P's, from its column `column` on.
static __device__ __forceinline__ void add_up(
    const Sum* held, int parts, Result* P, long long ldp, int column, int height, int width, const Epilogue& epilogue)
{
    const int several = 16 / (int)sizeof(Sum);
    if (parts > 1)
        cluster_meet();
    else
        __syncthreads();
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
    if (parts > 1) cluster_meet();  // nobody leaves while another reads here
}
