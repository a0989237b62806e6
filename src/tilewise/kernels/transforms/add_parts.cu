// add_parts: P is the sum of `parts` matrices, each made from its own part of k, always added in the same order.
//
// Layout: part s starts s * m * lead sums after the first. SHARES threads make one element of P: each adds up every
//   SHARES-th part, and the first of them adds up their sums. Barrier: one, before that.

#define CELLS (256 / SHARES)

extern "C" __global__ void __launch_bounds__(256) add_parts(
    const Sum* __restrict__ sums, Result* P, Epilogue epilogue, int m, int n, int parts, long long lead, long long ldp)
{
    wait_for_the_one_before();
    let_the_next_start();
    __shared__ Sum shares[SHARES][CELLS];
    int share = threadIdx.x / CELLS;
    long long cell = (long long)blockIdx.x * CELLS + threadIdx.x % CELLS;
    bool inside = cell < (long long)m * n;
    int row = (int)(cell / n), column = (int)(cell % n);
    Sum sum = 0;
    if (inside) {
        const Sum* from = sums + row * lead + column;
        #pragma unroll 8
        for (int s = share; s < parts; s += SHARES) sum += from[s * (m * lead)];
    }
    shares[share][threadIdx.x % CELLS] = sum;
    __syncthreads();
    if (share || !inside) return;
    #pragma unroll
    for (int other = 1; other < SHARES; ++other) sum += shares[other][threadIdx.x];
    Result* to = P + row * ldp + column;
    *to = narrow(finish(sum, ACCUMULATE ? widen(*to) : (Sum)0, bias_of(epilogue, column, true), epilogue));
}
