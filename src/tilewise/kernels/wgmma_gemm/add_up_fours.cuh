// add_up_fours: reduces the sums of a cluster's blocks by rank, in fours: the same bits in every run. Like `shared/add_up.cuh`, but by
// ld.shared::cluster; with that file the kernels take up to 10 % longer.
//
// Layout: `held` is at the same address in every block; a row of the tile has `pitch` floats, `quads` fours of them sums.
// Barrier: the caller's: the cluster, before sums are read and before a block exits.

// For fours `first`, `first + step` ... below `end` with a column below `width`: `store(row, column, sum)` of the `blocks` sums (MOST at
// most). A thread loads AT_ONCE fours before it uses them.
template <int MOST, int AT_ONCE, typename Store> static __device__ __forceinline__ void add_up_fours(
    const float* held, int blocks, int quads, int pitch, int first, int end, int step, int width, Store store)
{
    for (int i = first; i < end; i += AT_ONCE * step) {
        float4 part[AT_ONCE][MOST];
        #pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
            int at = i + j * step, r = at / quads, c = at % quads * 4;
            bool there = at < end && c < width;
            #pragma unroll
            for (int other = 0; other < MOST; ++other)
                if (there && other < blocks) {
                    const float* from = held + r * pitch + c;
                    part[j][other] = MOST == 1 ? *reinterpret_cast<const float4*>(from) : load_from_block(from, other);
                }
        }
        #pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
            int at = i + j * step, r = at / quads, c = at % quads * 4;
            if (at >= end || c >= width) continue;
            float4 sum = part[j][0];
            #pragma unroll
            for (int other = 1; other < MOST; ++other)
                if (other < blocks)
                    sum = make_float4(sum.x + part[j][other].x, sum.y + part[j][other].y, sum.z + part[j][other].z,
                                      sum.w + part[j][other].w);
            store(r, c, sum);
        }
    }
}
