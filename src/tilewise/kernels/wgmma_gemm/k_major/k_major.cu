// k_major: products of elements that wgmma takes only contiguous along k: tf32, 8-bit integers, 8-bit floats.
//
// Layout: a stage holds BLOCK_M lines of M and BLOCK_N of N, 128 bytes of k each, swizzled by the copy engine. Operands that
//   in other layouts have been transposed before (transpose.cu). Consumer warpgroup g owns rows 64 g .. 64 g + 63 of the tile.
// Sums: a Sum is float or int. With PROMOTED (8-bit floats, whose sums have few bits inside the tensor cores) that many stages
//   are summed from zero and then added up on plain cores.
// Clusters: CLUSTER blocks have tiles above one another and the same tile of N: each multicasts a share of it. With BESIDE the tiles are
//   side by side, and share the tile of M.
// Edges: copies fill with 0 outside M and N; stores of P are predicated.
// Barrier: full[s] completes when both tiles of stage s have arrived; empty[s] when every consumer in the cluster
//   that reads this block's copies has read them.
// Stores: by boxes of the copy engine or by rows (k_major_stores.cuh).
//   Symmetric: with SYMMETRIC, tiles are those of triangle.cuh; one above the diagonal is stored once more, from registers.
//   With split-K (`splits`), P is that many matrices, which are added up afterwards.

#define TILE_M_BYTES (BLOCK_M * ROW_BYTES)
#define STAGE_BYTES ((BLOCK_M + BLOCK_N) * ROW_BYTES)

// Scales of rows and columns of P, with strides (0: one for all); null where there is none.
struct Scales { const float* of_m; const float* of_n; long long step_m, step_n; float factor; };

static __device__ __forceinline__ void produce(
    char* stages, Barrier* full, Barrier* empty, const TensorMap* map_m, const TensorMap* map_n, Size size)
{
    const int share = (BESIDE ? BLOCK_M : BLOCK_N) / CLUSTER;
    int stage = 0, mine = CLUSTER > 1 ? cluster_rank() * share : 0;
    unsigned parity = 1;  // a new barrier counts as completed in the other parity: no wait
    Work work;
    for (int turn = 0; find_work(turn, size, work); ++turn)
        for (int step = work.from; step < work.to; ++step) {
            barrier_wait(&empty[stage], parity);
            barrier_expect(&full[stage], STAGE_BYTES);
            char* to_m = stages + stage * STAGE_BYTES;
            char* to_n = to_m + TILE_M_BYTES;
            if (CLUSTER > 1 && BESIDE)
                copy_box_multicast(to_m + mine * ROW_BYTES, map_m, &full[stage], step * BLOCK_K, work.top + mine, ALL_RANKS);
            else
                copy_box(to_m, map_m, &full[stage], step * BLOCK_K, work.top);
            if (CLUSTER > 1 && !BESIDE)
                copy_box_multicast(to_n + mine * ROW_BYTES, map_n, &full[stage], step * BLOCK_K, work.left + mine, ALL_RANKS);
            else
                copy_box(to_n, map_n, &full[stage], step * BLOCK_K, work.left);
            NEXT_STAGE(stage, parity, STAGES)
        }
}

static __device__ __forceinline__ void scale_sums(Sum (&sums)[SUMS], const Scales& scales, Size size, int top, int left) {
    int lane = threadIdx.x % 32, row = top + threadIdx.x / 32 % 4 * 16 + lane / 4;
    float of_row[2];
    #pragma unroll
    for (int i = 0; i < 2; ++i)
        of_row[i] = scales.factor * (scales.of_m ? scales.of_m[min(row + 8 * i, size.m - 1) * scales.step_m] : 1.0f);
    #pragma unroll
    for (int i = 0; i < SUMS; ++i) {
        int column = min(left + i / 4 * 8 + lane % 4 * 2 + i % 2, size.n - 1);
        sums[i] *= of_row[i / 2 % 2] * (scales.of_n ? scales.of_n[column * scales.step_n] : 1.0f);
    }
}

// A stage's products of 64 rows, onto what the sums hold if `onto`.
static __device__ __forceinline__ void multiply_stage(Sum (&sums)[SUMS], const char* tile, int group, int onto) {
    unsigned long long m = tile_descriptor(tile + group * 64 * ROW_BYTES, 0, 1024);
    unsigned long long n = tile_descriptor(tile + TILE_M_BYTES, 0, 1024);
    #pragma unroll
    for (int i = 0; i < 8; i += 2) wgmma(sums, m + i, n + i, i | onto);
    wgmma_commit();
}

static __device__ __forceinline__ void consume(
    char* stages, Barrier* full, Barrier* empty, char* staging, int group, const TensorMap* map_p, Result* P, Size size,
    long long ldp, bool onto, const Scales& scales)
{
    int stage = 0, before = 0;
    unsigned parity = 0;
    Work work;
    for (int turn = 0; find_work(turn, size, work); ++turn) {
        Sum sums[SUMS];
        clear(sums);
#if PROMOTED
        Sum parts[SUMS];
        #pragma unroll
        for (int i = 0; i < SUMS; ++i) parts[i] = 0;
        for (int step = work.from; step < work.to;) {
            #pragma unroll
            for (int i = 0; i < PROMOTED && step < work.to; ++i, ++step) {
                barrier_wait(&full[stage], parity);
                wgmma_fence();
                multiply_stage(parts, stages + stage * STAGE_BYTES, group, i);
                if (i) {
                    wgmma_wait<1>();
                    release(&empty[before]);
                }
                before = stage;
                NEXT_STAGE(stage, parity, STAGES)
            }
            wgmma_wait<0>();
            release(&empty[before]);
            fence_operand(parts);
            #pragma unroll
            for (int i = 0; i < SUMS; ++i) sums[i] += parts[i];
        }
#else
        for (int step = work.from; step < work.to; ++step) {
            barrier_wait(&full[stage], parity);
            wgmma_fence();
            multiply_stage(sums, stages + stage * STAGE_BYTES, group, 1);
            wgmma_wait<1>();  // the step before is done: its stage may be filled again
            if (step > work.from) release(&empty[before]);
            before = stage;
            NEXT_STAGE(stage, parity, STAGES)
        }
        wgmma_wait<0>();
        if (work.to > work.from) release(&empty[before]);
        fence_operand(sums);
#endif
        int top = work.top + group * 64;
        if (SCALED) scale_sums(sums, scales, size, top, work.left);
        if (BOXED)
            store_boxes(sums, staging + group * BOXES * BOX_BYTES, map_p, group, top, work.left);
        else {
            Sum* own = reinterpret_cast<Sum*>(staging) + (threadIdx.x / 32 - 4) * 8 * HELD;
            store_rows(sums, own, P + (long long)work.split * size.m * ldp, ldp, size, top, work.left, onto);
        }
        if (SYMMETRIC && work.mirrored) store_columns(sums, P, ldp, size.m, top, work.left, onto);
    }
    if (BOXED && threadIdx.x % 128 == 0) store_wait_all();
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(128 * (CONSUMERS + 1), 1) k_major(
    const __grid_constant__ TensorMap map_m, const __grid_constant__ TensorMap map_n,
    const __grid_constant__ TensorMap map_p, Result* P, Size size, long long ldp, int onto,
    const __grid_constant__ Scales scales)
{
    extern __shared__ char memory[];
    char* stages = memory + (1024 - shared_address(memory) % 1024) % 1024;
    char* staging = stages + STAGES * STAGE_BYTES;
    Barrier* full = reinterpret_cast<Barrier*>(staging + STAGING_BYTES);
    Barrier* empty = full + STAGES;
    if (threadIdx.x == 0) {
        prefetch_map(&map_m);
        prefetch_map(&map_n);
        if (BOXED) prefetch_map(&map_p);
        init_stages(full, empty, STAGES, 1, CONSUMERS * CLUSTER);
        barrier_init_done();
    }
    __syncthreads();
    if (CLUSTER > 1) cluster_sync();
    launch_dependent_grids();
    int group = threadIdx.x / 128;
    if (group == 0) {
        setmaxnreg_dec<40>();
        if (threadIdx.x == 0) {
            wait_on_dependent_grids();
            produce(stages, full, empty, &map_m, &map_n, size);
        }
    } else {
        setmaxnreg_inc<232>();
        wait_on_dependent_grids();
        consume(stages, full, empty, staging, group - 1, &map_p, P, size, ldp, onto, scales);
    }
    // no block exits while another may still write to its shared memory
    __syncwarp();
    if (CLUSTER > 1) cluster_sync();
}
