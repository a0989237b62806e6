// walk: the tile scheduler of persistent blocks, alone or in clusters.
//
// A kernel defines BLOCK_M, BLOCK_N, CLUSTER, GROUP and BLOCK_K (k of a stage). The tiles of a cluster are above one another, with
// BESIDE side by side.

#define ALL_RANKS ((1 << CLUSTER) - 1)

struct Size { int m, k, n, splits; };

// This block's tile of P, and the stages of its part of k.
struct Work { int top, left, from, to, split; bool mirrored; };

// Tiles in bands of GROUP rows of cluster tiles, column by column within a band, for reuse in L2.
static __device__ __forceinline__ bool find_work(int turn, Size size, Work& work) {
#if SYMMETRIC
    int number = blockIdx.x / CLUSTER + turn * (gridDim.x / CLUSTER), rank = CLUSTER > 1 ? cluster_rank() : 0;
    if (number >= upper_tiles(size.m)) return false;
    UpperTile tile = upper_tile(number, size.m);
    work = {tile.top + (BESIDE ? 0 : rank * BLOCK_M), tile.left + (BESIDE ? rank * BLOCK_N : 0), 0,
            (size.k + BLOCK_K - 1) / BLOCK_K, 0, tile.mirrored};
    return true;
#else  // SYMMETRIC
    const int tall = (BESIDE ? 1 : CLUSTER) * BLOCK_M, wide = (BESIDE ? CLUSTER : 1) * BLOCK_N;
    int tiles_m = (size.m + tall - 1) / tall, tiles_n = (size.n + wide - 1) / wide;
    int index = blockIdx.x / CLUSTER + turn * (gridDim.x / CLUSTER);
    if (index >= tiles_m * tiles_n * size.splits) return false;
    work.split = index / (tiles_m * tiles_n);
    int tile = index - work.split * tiles_m * tiles_n;
    int group = tile / (GROUP * tiles_n), first = group * GROUP;
    int height = min(GROUP, tiles_m - first);
    int within = tile - group * GROUP * tiles_n;
    int rank = CLUSTER > 1 ? cluster_rank() : 0;
    work.top = (first + within % height) * tall + (BESIDE ? 0 : rank * BLOCK_M);
    work.left = within / height * wide + (BESIDE ? rank * BLOCK_N : 0);
    int steps = (size.k + BLOCK_K - 1) / BLOCK_K;
    work.from = (int)((long long)steps * work.split / size.splits);
    work.to = (int)((long long)steps * (work.split + 1) / size.splits);
    return true;
#endif  // SYMMETRIC
}

// One thread of the warpgroup arrives for each block of the cluster: the stage has been read.
static __device__ __forceinline__ void release(Barrier* empty) {
    if (CLUSTER == 1) {
        if (threadIdx.x % 128 == 0) barrier_arrive(empty);
    } else if (threadIdx.x % 128 < CLUSTER)
        barrier_arrive_at(empty, threadIdx.x % 128);
}
