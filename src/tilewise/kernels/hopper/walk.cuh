// walk: which tile of P a block makes next, for kernels whose blocks are persistent and may come in clusters.
//
// A kernel defines BLOCK_M, BLOCK_N, CLUSTER, GROUP and BLOCK_K, how much of k a stage holds.

#define EVERYONE ((1 << CLUSTER) - 1)

struct Size { int m, k, n, splits; };

// One tile of P for this block, and the stages that this part of k takes.
struct Work { int top, left, from, to, split; };

// Tiles of P in an order that keeps neighbours in time neighbours in space: GROUP rows of cluster tiles, column by column.
static __device__ __forceinline__ bool find_work(int turn, Size size, Work& work) {
    const int tall = CLUSTER * BLOCK_M;
    int tiles_m = (size.m + tall - 1) / tall, tiles_n = (size.n + BLOCK_N - 1) / BLOCK_N;
    int index = blockIdx.x / CLUSTER + turn * (gridDim.x / CLUSTER);
    if (index >= tiles_m * tiles_n * size.splits) return false;
    work.split = index / (tiles_m * tiles_n);
    int tile = index - work.split * tiles_m * tiles_n;
    int group = tile / (GROUP * tiles_n), first = group * GROUP;
    int height = min(GROUP, tiles_m - first);
    int within = tile - group * GROUP * tiles_n;
    work.top = (first + within % height) * tall + (CLUSTER > 1 ? cluster_rank() * BLOCK_M : 0);
    work.left = within / height * BLOCK_N;
    int steps = (size.k + BLOCK_K - 1) / BLOCK_K;
    work.from = (int)((long long)steps * work.split / size.splits);
    work.to = (int)((long long)steps * (work.split + 1) / size.splits);
    return true;
}

// One thread of the warpgroup for each block of the cluster says that the stage has been used.
static __device__ __forceinline__ void release(Barrier* empty) {
    if (CLUSTER == 1) {
        if (threadIdx.x % 128 == 0) barrier_arrive(empty);
    } else if (threadIdx.x % 128 < CLUSTER)
        barrier_arrive_at(empty, threadIdx.x % 128);
}
