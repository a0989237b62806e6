// mma_small: a block makes a TM x TN tile of P on tensor cores, for products too small to fill a card with large tiles.
// Elements come in one by one by asynchronous copies, so any strides will do, KC of k a phase, STAGES phases in shared
// memory. WARPS_K groups of warps share a phase's k, the blocks of a cluster all of k: each group sends its sums to the
// blocks that store them, a share of the tile's cells each, which add them up in order.
//
// Layout: a stage holds TM lines of M, then TN lines of N, each KC of k side by side whatever way the operand lies, PITCH
//   apart: fragments of a warp, and copies along k or across it, lie in different banks.
// Edges: what lies outside M and N is filled with 0; P is stored through a guard.
// Barrier: one a phase. Behind it the tiles of this phase are there for all, and those of the phase before are used up,
//   so that copies over them begin. Sums have memory of their own: the cluster meets once, when all have been sent.

// P and what of it lies from the tile on.
struct Target {
    Element* P;
    long long row_step, col_step;
    int rows, cols, accumulate;

    __device__ __forceinline__ void store(int row, int col, Element sum) const {
        if (row >= rows || col >= cols) return;
        Element* to = P + row * row_step + col * col_step;
        *to = accumulate ? *to + sum : sum;
    }
};

// The first cell of the tile that a block of the cluster stores.
static __device__ __forceinline__ int first_of(int rank, int blocks) { return (rank * CELLS + blocks - 1) / blocks; }

// Sums of all groups of all blocks, sent to who stores them: a part for each group, in order of k.
static __device__ __forceinline__ void store_together(
    const Sums& sums, const Target& target, int rank, int blocks, bool turned)
{
    bool alone = WARPS_K == 1 && blocks == 1;  // then sums only pass through, so that P is written in whole lines
    Element* parts = reinterpret_cast<Element*>(memory) + (alone ? 0 : STAGES * STAGE);
    if (alone) __syncthreads();  // all tiles have been used
    int part = CELLS / blocks + 1, groups = blocks * WARPS_K;
    int mine = (rank * WARPS_K + threadIdx.x / GROUP) * part;
    if (blocks > 1) cluster_wait();  // all of them have begun
    sums.each_cell([&](int row, int col, Element sum) {
        int cell = turned ? col * TM + row : row * TN + col, owner = cell * blocks / CELLS;
        *(Element*)in_block(parts + mine + cell - first_of(owner, blocks), owner) = sum;
    });
    if (blocks > 1) cluster_meet();
    else __syncthreads();
    int first = first_of(rank, blocks), count = first_of(rank + 1, blocks) - first;
    for (int i = threadIdx.x; i < count; i += THREADS) {
        Element sum = parts[i];
        #pragma unroll 4
        for (int group = 1; group < groups; ++group) sum += parts[group * part + i];
        int cell = first + i;
        target.store(turned ? cell % TM : cell / TN, turned ? cell / TM : cell % TN, sum);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) mma_small(
    const Element* __restrict__ M, const Element* __restrict__ N, Element* P, int m, int k, int n,
    long long m_row, long long m_col, long long n_row, long long n_col, long long p_row, long long p_col,
    int how_m, int how_n, int accumulate, int tiles_n, int piece, long long step_M, long long step_N, long long step_P)
{
    wait_for_the_one_before();
    let_the_next_start();
    int blocks = cluster_blocks(), rank = cluster_rank(), tile = blockIdx.x / blocks;
    int top = tile / tiles_n * TM, across = tile % tiles_n * TN;
    if (blocks > 1) cluster_arrive();
    int begin = min(rank * piece, k), left = min(piece, k - begin), phases = (left + KC - 1) / KC;
    Operand<TM> of_m(M + blockIdx.y * step_M + top * m_row + begin * m_col, m_row, m_col, m - top, how_m);
    Operand<TN> of_n(N + blockIdx.y * step_N + across * n_col + begin * n_row, n_col, n_row, n - across, how_n);
    Element* stages = reinterpret_cast<Element*>(memory);

    Sums sums;
    sums.clear();

    #pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < phases) {
            of_m.fetch(stages + s * STAGE, left);
            of_n.fetch(stages + s * STAGE + TM * PITCH, left);
            left -= KC;
        }
        close_group();
    }
    for (int phase = 0, here = 0, filling = STAGES - 1; phase < phases; ++phase) {
        wait_groups<STAGES - 2>();
        __syncthreads();
        if (left > 0) {
            of_m.fetch(stages + filling * STAGE, left);
            of_n.fetch(stages + filling * STAGE + TM * PITCH, left);
            left -= KC;
        }
        close_group();
        sums.take(stages + here * STAGE, stages + here * STAGE + TM * PITCH);
        here = here + 1 == STAGES ? 0 : here + 1;
        filling = filling + 1 == STAGES ? 0 : filling + 1;
    }
    Target target = {P + blockIdx.y * step_P + top * p_row + across * p_col, p_row, p_col, m - top, n - across, accumulate};
    store_together(sums, target, rank, blocks, p_row < p_col);
}
