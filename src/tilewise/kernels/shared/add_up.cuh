// add_up: partial sums (of the blocks of a cluster, for example) reduced cell by cell, each cell by one thread in the order of the
// parts: the same bits in every run.
//
// Barrier: the caller's: parts are written before they are read, and no block exits while another reads its shared memory.

// Of cells `first`, `first + step` ... below `end` those for which `wanted` holds: `from(cell, part)` of `parts` (MOST at most) are
// reduced by `join`, and `store(cell, sum)` gets the result. A thread loads AT_ONCE cells before it uses them.
template <typename Value, int MOST, int AT_ONCE, typename Wanted, typename From, typename Join, typename Store>
static __device__ __forceinline__ void add_up(
    int parts, int first, int end, int step, Wanted wanted, From from, Join join, Store store)
{
    for (int i = first; i < end; i += AT_ONCE * step) {
        if (AT_ONCE == 1 && !wanted(i)) continue;
        Value part[AT_ONCE][MOST];
        #pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
            bool there = AT_ONCE == 1 || (i + j * step < end && wanted(i + j * step));
            #pragma unroll
            for (int other = 0; other < MOST; ++other)
                if (there && other < parts) part[j][other] = from(i + j * step, other);
        }
        #pragma unroll
        for (int j = 0; j < AT_ONCE; ++j) {
            if (AT_ONCE > 1 && (i + j * step >= end || !wanted(i + j * step))) continue;
            Value sum = part[j][0];
            #pragma unroll
            for (int other = 1; other < MOST; ++other)
                if (other < parts) sum = join(sum, part[j][other]);
            store(i + j * step, sum);
        }
    }
}

static __device__ __forceinline__ float4 add_fours(float4 x, float4 y) {
    return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}
