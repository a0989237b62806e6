// strip_sums: reduces a tile's sums over groups of threads, then over the blocks of a cluster, in order, and stores P.
//
// Layout: `parts` has TM x TN sums of each group, at the same address in every block: row-major, or column-major where P is
//   (`transposed`).

#define MOST_BLOCKS 8  // of a cluster

static __device__ __forceinline__ Partial of_groups(const Partial* parts, int cell) {
    Partial sum = parts[cell];
    #pragma unroll
    for (int group = 1; group < GROUPS; ++group) sum = add(sum, parts[group * (TM * TN) + cell]);
    return sum;
}

static __device__ __forceinline__ void store_tile(
    Partial* parts, int blocks, int rank, bool transposed, Result* P, int row0, int col0, int m, int n, long long p_row, long long p_col,
    bool accumulate)
{
    auto store = [=](int cell, Partial sum) {
        int row = row0 + (transposed ? cell % TM : cell / TN), col = col0 + (transposed ? cell / TM : cell % TN);
        if (row < m && col < n) STORE(P[row * p_row + col * p_col], sum);
    };
    __syncthreads();
    if (blocks == 1) {
        for (int cell = threadIdx.x; cell < TM * TN; cell += THREADS) store(cell, of_groups(parts, cell));
        return;
    }
    if (GROUPS > 1)
        for (int cell = threadIdx.x; cell < TM * TN; cell += THREADS) parts[cell] = of_groups(parts, cell);
    cluster_sync();
    add_up<Partial, MOST_BLOCKS, 1>(
        blocks, rank * THREADS + (int)threadIdx.x, TM * TN, blocks * THREADS, [](int) { return true; },
        [=](int cell, int other) { return *shared_of_block(parts + cell, other); }, [](Partial x, Partial y) { return add(x, y); }, store);
    cluster_sync();  // a block must not exit while another reads its shared memory
}
