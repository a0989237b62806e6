// k_across: tf32 products of an N that is contiguous across k, without transposing it first: wgmma takes it from registers.
//
// wgmma's tf32 operands in shared memory must be contiguous along k; its left operand may be in registers. So the transposed tile of P is
//   computed: Nᵀ is the left operand, in registers, M the right one, in shared memory.
// Layout: a stage holds BLOCK_M rows of M, 128 bytes of k each, swizzled by the copy engine, and 32 lines of N, BLOCK_N
//   columns each and some to spare. Consumer warpgroup g owns columns 64 g .. 64 g + 63 of the tile.
// Row classes: with CLASSES 4, rows of M start anywhere too, and a tile takes rows of one class (wgmma_half.cu says more).
// Clusters: CLUSTER blocks have tiles above one another and the same tile of N: each multicasts a share of it. With BESIDE the tiles are
//   side by side, and share the tile of M.
// Edges: copies fill with 0 outside M and N; stores of P are predicated. With ONTO they accumulate.
// Barrier: full[s] completes when both tiles of stage s have arrived; empty[s] when every warp of the cluster that
//   reads this block's copies has read them.

#define ROW_BYTES 128
#define TILE_M_BYTES (BLOCK_M * ROW_BYTES)
#define STAGE_BYTES ((TILE_M_BYTES + TILE_N_BYTES + 1023) / 1024 * 1024)

struct Size { int m, k, n, splits; };  // k is not split
struct MapsOfM { TensorMap of[CLASSES]; };
struct Misalignments { int of_m[CLASSES], of_n[LINE_CLASSES]; };  // in elements

// One tile of P for this block, and its stages; k begins `early`. Row r of it is row (top + r) * CLASSES + at of P, as long as
// top + r < rows.
struct Work { int at, rows, top, left, early, steps; };

// Tiles in bands of GROUP rows of cluster tiles, column by column within a band, for reuse in L2.
static __device__ __forceinline__ bool find_work(int turn, Size size, const Misalignments& misalignments, Work& work) {
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
    work.early = CLASSES > 1 ? misalignments.of_m[work.at] : 0;
    work.steps = (size.k + work.early + BLOCK_K - 1) / BLOCK_K;
    return true;
}

static __device__ __forceinline__ void produce(
    char* stages, Barrier* full, Barrier* empty, const MapsOfM& maps_m, const MapsOfN& maps_n, Size size, const Misalignments& misalignments)
{
    const int share = BLOCK_M / CLUSTER;
    int stage = 0, mine = CLUSTER > 1 ? cluster_rank() * share : 0;
    unsigned parity = 1;  // a new barrier counts as completed in the other parity: no wait
    Work work;
    for (int turn = 0; find_work(turn, size, misalignments, work); ++turn) {
        const TensorMap* map_m = &maps_m.of[work.at];
        for (int step = 0; step < work.steps; ++step) {
            int k = step * BLOCK_K;
            barrier_wait(&empty[stage], parity);
            barrier_expect(&full[stage], TILE_M_BYTES + TILE_N_BYTES);
            char* to = stages + stage * STAGE_BYTES;
            if (CLUSTER > 1 && BESIDE)
                copy_box_multicast(to + mine * ROW_BYTES, map_m, &full[stage], k, work.top + mine, ALL_RANKS);
            else
                copy_box(to, map_m, &full[stage], k, work.top);
            load_n(to + TILE_M_BYTES, maps_n, &full[stage], k, work.early, work.left);
            NEXT_STAGE(stage, parity, STAGES)
        }
    }
}

// One lane of each warp arrives for each block of the cluster: the stage has been read.
static __device__ __forceinline__ void release(Barrier* empty) {
    if (threadIdx.x % 32 < CLUSTER) barrier_arrive_at(empty, threadIdx.x % 32);
}

// A stage's products of 64 columns, onto the sums.
static __device__ __forceinline__ void multiply_stage(float (&sums)[SUMS], const unsigned (&words)[16], const char* tile_of_m) {
    unsigned long long m = tile_descriptor(tile_of_m, 0, 1024);
    #pragma unroll
    for (int i = 0; i < 4; ++i) wgmma(sums, words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3], m + 2 * i);
    wgmma_commit();
}

// Clears the first `misalignment` elements of each row of a tile of M, which belong to the row before.
static __device__ __forceinline__ void clear_misaligned(char* tile_of_m, int misalignment) {
    for (int row = threadIdx.x - 128; row < BLOCK_M; row += 128 * CONSUMERS) {
        float* first = reinterpret_cast<float*>(tile_of_m + row * ROW_BYTES + row % 8 * 16);  // chunk 0, swizzled
        for (int i = 0; i < misalignment; ++i) first[i] = 0.0f;
    }
    fence_async_shared();
    barrier_sync(1, 128 * CONSUMERS);
}

static __device__ __forceinline__ void consume(
    char* stages, Barrier* full, Barrier* empty, float* staging, const TensorMap* map_p, float* P, Size size,
    const Misalignments& misalignments, long long ldp)
{
    int stage = 0, before = 0, filled = 0;
    unsigned parity = 0;
    Work work;
    for (int turn = 0; find_work(turn, size, misalignments, work); ++turn) {
        float sums[SUMS];
        clear(sums);
        const char* lines = first_word(stages + TILE_M_BYTES, misalignments.of_n, work.early);
        unsigned words[2][16];  // one half is being multiplied while the other is loaded
        for (int step = 0; step < work.steps;)
            #pragma unroll
            for (int half = 0; half < 2; ++half)
                if (step < work.steps) {
                    barrier_wait(&full[stage], parity);
                    char* tile_of_m = stages + stage * STAGE_BYTES;
                    if (CLASSES > 1 && step == 0 && work.early) clear_misaligned(tile_of_m, work.early);
                    load_words(words[half], lines + stage * STAGE_BYTES);
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
        fence_operand(sums);
        int rows = work.rows - work.top;
        float* tile = P + ((long long)work.top * CLASSES + work.at) * ldp + work.left;
        if (BOXED)
            store_boxes(sums, staging, filled, map_p, work.top, work.left, rows);
        else
            store_transposed(sums, staging, filled, tile, CLASSES * ldp, rows, size.n - work.left);
    }
    if (BOXED && threadIdx.x == 128) store_wait_all();
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(128 * (CONSUMERS + 1), 1) k_across(
    const __grid_constant__ MapsOfM maps_m, const __grid_constant__ MapsOfN maps_n,
    const __grid_constant__ TensorMap map_p, float* P, Size size,
    const __grid_constant__ Misalignments misalignments, long long ldp)
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
    if (CLUSTER > 1) cluster_sync();
    launch_dependent_grids();
    if (threadIdx.x < 128) {
        setmaxnreg_dec<56>();
        if (threadIdx.x == 0) {
            wait_on_dependent_grids();
            produce(stages, full, empty, maps_m, maps_n, size, misalignments);
        }
    } else {
        setmaxnreg_inc<224>();
        wait_on_dependent_grids();
        consume(stages, full, empty, reinterpret_cast<float*>(staging), &map_p, P, size, misalignments, ldp);
    }
    // no block exits while another may still write to its shared memory
    __syncwarp();
    if (CLUSTER > 1) cluster_sync();
}
