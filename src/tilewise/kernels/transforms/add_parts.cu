// add_parts: P is the sum of `parts` matrices, each made from its own part of k, always added in the same order.
//
// Layout: part s starts s * m * lead sums after the first. SHARES threads make WIDE neighbours of a row of P (two where rows of
//   sums lie on pairs): each adds up every SHARES-th part, and the first of them adds up their sums. Barrier: one, before that.
// Edges: a last column without a neighbour is made alone.

#define CELLS (256 / SHARES)

struct __align__(WIDE * sizeof(Sum)) Cells { Sum of[WIDE]; };

static __device__ __forceinline__ void onto(Cells& sum, const Cells& more) {
    #pragma unroll
    for (int e = 0; e < WIDE; ++e) sum.of[e] += more.of[e];
}

extern "C" __global__ void __launch_bounds__(256) add_parts(
    const Sum* __restrict__ sums, Result* P, Epilogue epilogue, int m, int n, int parts, long long lead, long long ldp,
    int accumulate)
{
    wait_on_dependent_grids();
    if (WIDE == 1) launch_dependent_grids();
    __shared__ Cells shares[SHARES][CELLS];
    int across = (n + WIDE - 1) / WIDE, share = threadIdx.x / CELLS;
    long long cell = (long long)blockIdx.x * CELLS + threadIdx.x % CELLS;
    bool inside = cell < (long long)m * across;
    int row = (int)(cell / across), column = (int)(cell % across) * WIDE;
    Cells sum;
    #pragma unroll
    for (int e = 0; e < WIDE; ++e) sum.of[e] = (Sum)-0.0;  // of which adding leaves every number as it is, -0 too
    if (inside) {
        const Sum* from = sums + row * lead + column;
        #pragma unroll (8 / WIDE)
        for (int s = share; s < parts; s += SHARES) onto(sum, *reinterpret_cast<const Cells*>(from + s * (m * lead)));
    }
    shares[share][threadIdx.x % CELLS] = sum;
    __syncthreads();
    if (share || !inside) return;
    #pragma unroll
    for (int other = 1; other < SHARES; ++other) onto(sum, shares[other][threadIdx.x]);
    Result* to = P + row * ldp + column;
    #pragma unroll
    for (int e = 0; e < WIDE; ++e)
        if (column + e < n)
            to[e] = narrow(finish(sum.of[e], accumulate ? widen(to[e]) : (Sum)-0.0, bias_of(epilogue, column + e, true), epilogue));
}
