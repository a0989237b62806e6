// k_across: tf32 products of an N whose k lies across its lines, with no pass over N: wgmma takes it from registers.
//
// wgmma wants what it reads from shared memory with k side by side, but what it takes from registers may come from anywhere.
//   So a tile of P is made turned: N transposed is the left operand, in registers, M the right one, in shared memory.
// Layout: a stage holds BLOCK_M rows of M, 128 bytes of k each, swizzled by the copy engine, and 32 lines of N, BLOCK_N
//   columns each and some to spare. Consumer warpgroup g owns columns 64 g .. 64 g + 63 of the tile.
// Row classes: with CLASSES 4, rows of M start anywhere too, and a tile takes rows of one class (wgmma_half.cu says more).
// Clusters: CLUSTER blocks take tiles above one another and the same tile of N: each brings a share of it to all of them.
//   With BESIDE the tiles lie side by side, and it is the tile of M that they share.
// Edges: the copy fills with 0 outside M and N, so pads only meet pads; P is stored through a guard. With ONTO it is added to.
// Barrier: full[s] completes when both tiles of stage s have arrived; empty[s] when every warp that reads what this block
//   sends, its own and its neighbours', has used them.

#define ROW_BYTES 128
#define TILE_M_BYTES (BLOCK_M * ROW_BYTES)
#define STAGE_BYTES ((TILE_M_BYTES + TILE_N_BYTES + 1023) / 1024 * 1024)

struct Size { int m, k, n, splits; };  // k is never split here
struct MapsOfM { TensorMap of[CLASSES]; };
struct Skews { int of_m[CLASSES], of_n[LINE_CLASSES]; };  // in elements

// One tile of P for this block, and its stages; k begins `early`. Row r of it is row (top + r) * CLASSES + at of P, as long as
// top + r < rows.
struct Work { int at, rows, top, left, early, steps; };

// Tiles of P in an order that keeps neighbours in time neighbours in space: GROUP rows of cluster tiles, column by column.
static __device__ __forceinline__ bool find_work(int turn, Size size, const Skews& skews, Work& work) {
    const int tall = (BESIDE ? 1 : CLUSTER) * BLOCK_M, wide = (BESIDE ? CLUSTER : 1) * BLOCK_N;
    RowClasses classes = row_classes(size.m, tall);
    int tiles_m = tiles_of(classes), tiles_n = (size.n + wide - 1) / wide;
    int index = blockIdx.x / CLUSTER + turn * (gridDim.x / CLUSTER);
    if (index >= tiles_m * tiles_n) return false;
    int group = index / (GROUP * tiles_n), first = group * GROUP;
    int height = min(GROUP, tiles_m - first);
    int within = index - group * GROUP * tiles_n;
    int tile_m = first + within % height;
    int rank = CLUSTER > 1 ? cluster_rank() : 0;
    find_class(classes, size.m, tile_m, work.at, work.rows);
    work.top = tile_m * tall + (BESIDE ? 0 : rank * BLOCK_M);
    work.left = within / height * wide + (BESIDE ? rank * BLOCK_N : 0);
    work.early = CLASSES > 1 ? skews.of_m[work.at] : 0;
    work.steps = (size.k + work.early + BLOCK_K - 1) / BLOCK_K;
    return true;
}

static __device__ __forceinline__ void produce(
    char* stages, Barrier* full, Barrier* empty, const MapsOfM& maps_m, const MapsOfN& maps_n, Size size, const Skews& skews)
{
    const int share = BLOCK_M / CLUSTER;
    int stage = 0, mine = CLUSTER > 1 ? cluster_rank() * share : 0;
    unsigned parity = 1;  // a fresh barrier counts as just completed in the other parity: nothing to wait for
    Work work;
    for (int turn = 0; find_work(turn, size, skews, work); ++turn) {
        const TensorMap* map_m = &maps_m.of[work.at];
        for (int step = 0; step < work.steps; ++step) {
            int k = step * BLOCK_K;
            barrier_wait(&empty[stage], parity);
            barrier_expect(&full[stage], TILE_M_BYTES + TILE_N_BYTES);
            char* to = stages + stage * STAGE_BYTES;
            if (CLUSTER > 1 && BESIDE)
                copy_box_to(to + mine * ROW_BYTES, map_m, &full[stage], k, work.top + mine, EVERYONE);
            else
                copy_box(to, map_m, &full[stage], k, work.top);
            bring_n(to + TILE_M_BYTES, maps_n, &full[stage], k, work.early, work.left);
            NEXT_STAGE(stage, parity, STAGES)
        }
    }
}

// One lane of each warp for each block of the cluster says that the stage has been used.
static __device__ __forceinline__ void release(Barrier* empty) {
    if (CLUSTER == 1) {
        if (threadIdx.x % 32 == 0) barrier_arrive(empty);
    } else if (threadIdx.x % 32 < CLUSTER)
        barrier_arrive_at(empty, threadIdx.x % 32);
}

// A stage's products of 64 columns, onto the sums.
static __device__ __forceinline__ void multiply_stage(float (&sums)[SUMS], const unsigned (&words)[16], const char* tile_of_m) {
    unsigned long long m = tile_descriptor(tile_of_m, 0, 1024);
    #pragma unroll
    for (int i = 0; i < 4; ++i) wgmma(sums, words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3], m + 2 * i);
    wgmma_commit();
}

// The first `skew` elements of each row of a tile of M belong to the row before: 0 instead.
static __device__ __forceinline__ void cover_skew(char* tile_of_m, int skew) {
    for (int row = threadIdx.x - 128; row < BLOCK_M; row += 128 * CONSUMERS) {
        float* first = reinterpret_cast<float*>(tile_of_m + row * ROW_BYTES + row % 8 * 16);  // chunk 0, swizzled
        for (int i = 0; i < skew; ++i) first[i] = 0.0f;
    }
    publish_shared();
    meet(1, 128 * CONSUMERS);
}

static __device__ __forceinline__ void consume(
    char* stages, Barrier* full, Barrier* empty, float* staging, const TensorMap* map_p, float* P, Size size,
    const Skews& skews, long long ldp)
{
    int stage = 0, before = 0, filled = 0;
    unsigned parity = 0;
    Work work;
    for (int turn = 0; find_work(turn, size, skews, work); ++turn) {
        float sums[SUMS];
        clear(sums);
        const char* lines = first_of_lines(stages + TILE_M_BYTES, skews.of_n, work.early);
        unsigned words[2][16];  // one half is being multiplied while the other is loaded
        for (int step = 0; step < work.steps;)
            #pragma unroll
            for (int half = 0; half < 2; ++half)
                if (step < work.steps) {
                    barrier_wait(&full[stage], parity);
                    char* tile_of_m = stages + stage * STAGE_BYTES;
                    if (CLASSES > 1 && step == 0 && work.early) cover_skew(tile_of_m, work.early);
                    load_lines(words[half], lines + stage * STAGE_BYTES);
                    wgmma_fence();
                    multiply_stage(sums, words[half], tile_of_m);
                    wgmma_wait<1>();  // the step before is done: its stage may be filled again
                    if (step) release(&empty[before]);
                    before = stage;
                    NEXT_STAGE(stage, parity, STAGES)
                    ++step;
                }
        wgmma_wait<0>();
        release(&empty[before]);
        settle(sums);
        int rows = work.rows - work.top;
        float* tile = P + ((long long)work.top * CLASSES + work.at) * ldp + work.left;
        if (BOXED)
            store_boxes(sums, staging, filled, map_p, work.top, work.left, rows);
        else
            store_turned(sums, staging, filled, tile, CLASSES * ldp, rows, size.n - work.left);
    }
    if (BOXED && threadIdx.x == 128) store_done();
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(128 * (CONSUMERS + 1), 1) k_across(
    const __grid_constant__ MapsOfM maps_m, const __grid_constant__ MapsOfN maps_n,
    const __grid_constant__ TensorMap map_p, float* P, Size size,
    const __grid_constant__ Skews skews, long long ldp)
{
    extern __shared__ char memory[];
    char* stages = memory + (1024 - shared_address(memory) % 1024) % 1024;
    char* staging = stages + STAGES * STAGE_BYTES;
    Barrier* full = reinterpret_cast<Barrier*>(staging + STAGING_BYTES);
    Barrier* empty = full + STAGES;
    if (threadIdx.x == 0) {
        for (int at = 0; at < CLASSES; ++at) prefetch_map(&maps_m.of[at]);
        for (int at = 0; at < LINE_CLASSES; ++at) prefetch_map(&maps_n.of[at]);
        if (BOXED) prefetch_map(&map_p);
        init_stages(full, empty, STAGES, 1, 4 * CONSUMERS * CLUSTER);
        barrier_init_done();
    }
    __syncthreads();
    if (CLUSTER > 1) cluster_meet();
    let_next_kernel_start();
    if (threadIdx.x < 128) {
        registers_give<56>();
        if (threadIdx.x == 0) {
            wait_for_kernel_before();
            produce(stages, full, empty, maps_m, maps_n, size, skews);
        }
    } else {
        registers_take<224>();
        wait_for_kernel_before();
        consume(stages, full, empty, reinterpret_cast<float*>(staging), &map_p, P, size, skews, ldp);
    }
    // nobody leaves while a neighbour may still send it a tile or a word
    __syncwarp();
    if (CLUSTER > 1) cluster_meet();
}
