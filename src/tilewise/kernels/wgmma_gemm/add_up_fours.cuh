// add_up_fours: the sums of a cluster's blocks, in the order of their ranks, by fours: the same bits whoever adds them up.
// As `shared/add_up.cuh`, by this generator's own loads (ld.shared::cluster): written by it, the kernels take up to 10 % longer.
//
// Layout: `held` lies in the same place in every block, `pitch` floats a row of the tile, `quads` fours of them.
// Barrier: the caller's: the cluster has met before sums are read, and meets again before a block leaves.

// Fours `first`, `first + step` ... below `end`, of those left of `width`: the sum of MOST blocks or less of each is handed to
// `store(row, column, sum)`. AT_ONCE of them are on their way at once.
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
