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

// This block's share of the tile, as `add_up` has it: the sums of MOST blocks or less, AT_ONCE pieces of a thread on their way at
// once.
template <int MOST, int AT_ONCE> static __device__ __forceinline__ void add_up_share(
    const Sum* held, int parts, Result* P, long long ldp, int column, int height, int width, const Epilogue& epilogue)
{
    const int several = 16 / (int)sizeof(Sum), pieces = BLOCK_N / several;
    int end = min(BLOCK_M, height) * pieces, step = parts * THREADS;
    for (int i = (MOST > 1 ? cluster_rank() * THREADS : 0) + (int)threadIdx.x; i < end; i += AT_ONCE * step) {
        Several part[AT_ONCE][MOST];
        #pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
            int at = i + j * step, r = at / pieces, c = at % pieces * several;
            const Several* from = reinterpret_cast<const Several*>(held + r * HELD + c);
            #pragma unroll
            for (int other = 0; other < MOST; ++other)
                if (at < end && c < width && other < parts) part[j][other] = MOST == 1 ? *from : *in_block(from, other);
        }
        #pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
            int at = i + j * step, r = at / pieces, c = at % pieces * several;
            if (at >= end) continue;
            #pragma unroll
            for (int e = 0; e < several; ++e) {
                if (c + e >= width) continue;
                Sum sum = part[j][0].of[e];
                #pragma unroll
                for (int other = 1; other < MOST; ++other)
                    if (other < parts) sum += part[j][other].of[e];
                Result* to = P + r * ldp + c + e;
                Sum bias = bias_of(epilogue, column + c + e, true);
                *to = narrow(finish(sum, ACCUMULATE ? widen(*to) : (Sum)0, bias, epilogue));
            }
        }
    }
}

// P points at the tile: `height` x `width` of it are P's, from its column `column` on.
static __device__ __forceinline__ void add_up(
    const Sum* held, int parts, Result* P, long long ldp, int column, int height, int width, const Epilogue& epilogue)
{
    if (parts > 1)
        cluster_meet();
    else
        __syncthreads();
    if (parts == 1)
        add_up_share<1, 2>(held, parts, P, ldp, column, height, width, epilogue);
    else if (parts <= 4)
        add_up_share<4, 2>(held, parts, P, ldp, column, height, width, epilogue);
    else
        add_up_share<MOST_CUT, 1>(held, parts, P, ldp, column, height, width, epilogue);
    if (parts > 1) cluster_meet();  // nobody leaves while another reads here
}
