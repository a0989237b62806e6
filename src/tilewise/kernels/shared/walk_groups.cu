// walk_groups: lists the tiles of consecutive groups of rows, from the groups' ends in memory.
//
// Layout: walk[0] is the number of tiles, of up to `tall` rows each; walk[1] is 0, a counter for the tile scheduler; from walk + 4 on
//   each tile has (group, first row, end of the group, 0). Rows behind the last group have tiles of group -1, with no products.
// Edges: ends are clamped: a group begins at the end of the one before, and ends inside the matrix.
// Barrier: two block-wide scans over the groups, with a barrier between warps' scans and the block's. More groups than threads come
//   in rounds that carry the next row and tile.

struct Largest { static __device__ __forceinline__ int of(int x, int y) { return max(x, y); } };
struct Sum { static __device__ __forceinline__ int of(int x, int y) { return x + y; } };

// Inclusive scan of every thread's number by `Of`: within a warp by shuffles, then over the warps before.
template <class Of> static __device__ __forceinline__ int up_to_here(int x, int* of_warps) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    #pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        int before = __shfl_sync(~0u, x, lane - step);
        if (lane >= step) x = Of::of(before, x);
    }
    if (lane == 31) of_warps[warp] = x;
    __syncthreads();
    for (int w = 0; w < warp; ++w) x = Of::of(of_warps[w], x);
    return x;
}

extern "C" __global__ void __launch_bounds__(1024) walk_groups(
    const Offset* offsets, int* walk, int groups, int rows, int tall)
{
    __shared__ int ends[1024], tiles[1024], carried[2], of_warps[2][32];
    launch_dependent_grids();
    int me = threadIdx.x, many = blockDim.x;
    if (me < 2) carried[me] = 0;  // next row, next tile
    __syncthreads();
    for (int base = 0; base <= groups; base += many) {
        int group = base + me, row = carried[0], tile = carried[1];
        long long given = group < groups ? (long long)offsets[group] : rows;
        int end = (int)max((long long)row, min(given, (long long)rows));
        ends[me] = end = up_to_here<Largest>(end, of_warps[0]);
        __syncthreads();
        int start = me ? ends[me - 1] : row;
        tiles[me] = up_to_here<Sum>(group <= groups ? (end - start + tall - 1) / tall : 0, of_warps[1]);
        __syncthreads();
        int made = tiles[many - 1];
        for (int at = me; at < made; at += many) {
            int low = 0, high = many - 1;  // the first group whose tiles go beyond this one
            while (low < high) {
                int middle = (low + high) / 2;
                if (tiles[middle] > at) high = middle; else low = middle + 1;
            }
            int first = low ? ends[low - 1] : row, within = at - (low ? tiles[low - 1] : 0);
            int* piece = walk + 4 * (1ll + tile + at);
            piece[0] = base + low < groups ? base + low : -1;
            piece[1] = first + within * tall;
            piece[2] = ends[low];
            piece[3] = 0;
        }
        __syncthreads();
        if (me == 0) {
            carried[0] = ends[many - 1];
            carried[1] = tile + made;
        }
        __syncthreads();
    }
    if (me == 0) walk[0] = carried[1], walk[1] = 0;
}
