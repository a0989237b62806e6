// tensor_cores: one producer thread streams tiles by TMA, warpgroups multiply them by wgmma, blocks walk tiles of P.
//
// Layout: a stage holds a BLOCK_M x 64 tile of M and a 64 x BLOCK_N tile of N in 128-byte rows, swizzled by the copy.
//   An operand whose k lies side by side comes as one box {64 k, rows}; one whose rows or columns lie side by side comes
//   as boxes {64, 64 k}, and wgmma reads it transposed. Consumer warpgroup g owns rows 64 g .. 64 g + 63 of the tile.
// Edges: the copy fills with 0 outside M and N, so pads only meet pads; P is stored through a guard.
// Barrier: full[s] completes when both tiles of stage s have arrived; empty[s] when every consumer has used them.
// Stores: consumers leave a finished tile in the staging (staged completes) and go on; three carrier warps write it out in
//   whole rows, whatever P's stride (carried completes, and the staging may be used again).

#define BLOCK_K 64
#define ROW_BYTES 128
#define PARTS ((BLOCK_N + 63) / 64)  // 64 columns each; the last may be narrower
#define TILE_M_BYTES (BLOCK_M * ROW_BYTES)
#define TILE_N_BYTES (PARTS * 64 * ROW_BYTES)
#define STAGE_BYTES (TILE_M_BYTES + TILE_N_BYTES)
#define ARRIVING_BYTES (TILE_M_BYTES + (N_ALONG_K ? BLOCK_N : PARTS * 64) * ROW_BYTES)
#define CONSUMERS (BLOCK_M / 64)
#define PRODUCER_REGISTERS 40
#define CONSUMER_REGISTERS (CONSUMERS == 3 ? 152 : 232)
#define SUMS (BLOCK_N / 2)
#define PITCH (BLOCK_N / 2 + 4)  // words from row to row of the staging: 4 more than a row, which spreads the banks
#define CARRIERS 3

// Tiles of P in an order that keeps neighbours in time neighbours in space: GROUP rows of tiles, column by column.
static __device__ __forceinline__ void place(int tile, int tiles_m, int tiles_n, int& tile_m, int& tile_n) {
    int group = tile / (GROUP * tiles_n), first = group * GROUP;
    int height = min(GROUP, tiles_m - first);
    int within = tile - group * GROUP * tiles_n;
    tile_m = first + within % height;
    tile_n = within / height;
}

static __device__ __forceinline__ void produce(
    char* stages, Barrier* full, Barrier* empty, const TensorMap* map_m, const TensorMap* map_n, int m, int k, int n)
{
    int tiles_m = (m + BLOCK_M - 1) / BLOCK_M, tiles_n = (n + BLOCK_N - 1) / BLOCK_N;
    int stage = 0;
    unsigned parity = 1;  // a fresh barrier counts as just completed in the other parity: nothing to wait for
    for (int tile = blockIdx.x; tile < tiles_m * tiles_n; tile += gridDim.x) {
        int tile_m, tile_n;
        place(tile, tiles_m, tiles_n, tile_m, tile_n);
        for (int start = 0; start < k; start += BLOCK_K) {
            barrier_wait(&empty[stage], parity);
            barrier_expect(&full[stage], ARRIVING_BYTES);
            char* tile_of_m = stages + stage * STAGE_BYTES;
            char* tile_of_n = tile_of_m + TILE_M_BYTES;
            if (M_ALONG_K)
                copy_box(tile_of_m, map_m, &full[stage], start, tile_m * BLOCK_M);
            else
                for (int part = 0; part < BLOCK_M / 64; ++part)
                    copy_box(tile_of_m + part * 8192, map_m, &full[stage], tile_m * BLOCK_M + part * 64, start);
            if (N_ALONG_K)
                copy_box(tile_of_n, map_n, &full[stage], start, tile_n * BLOCK_N);
            else
                for (int part = 0; part < PARTS; ++part)
                    copy_box(tile_of_n + part * 8192, map_n, &full[stage], tile_n * BLOCK_N + part * 64, start);
            if (++stage == STAGES) {
                stage = 0;
                parity ^= 1;
            }
        }
    }
}

// The consumers' sums into the staging, as the kernel's dtype: row r of the tile starts PITCH words after row r - 1.
static __device__ __forceinline__ void stage_sums(const float (&sums)[SUMS], unsigned* staging, int top) {
    int lane = threadIdx.x % 32;
    unsigned* mine = staging + (top + lane / 4) * PITCH + lane % 4;
    #pragma unroll
    for (int j = 0; j < BLOCK_N / 8; ++j) {
        mine[4 * j] = narrow_pair(sums[4 * j], sums[4 * j + 1]);
        mine[8 * PITCH + 4 * j] = narrow_pair(sums[4 * j + 2], sums[4 * j + 3]);
    }
}

// One row of the staging to any 2-byte address: pairs go to the 4-byte words they fall into, single ends alone.
static __device__ __forceinline__ void store_row(const unsigned* staged, Element* row, int width) {
    int lane = threadIdx.x % 32;
    if (P_ALIGNED && width == BLOCK_N) {
        #pragma unroll
        for (int column = lane * 8; column < BLOCK_N; column += 256)
            *reinterpret_cast<uint4*>(row + column) = *reinterpret_cast<const uint4*>(staged + column / 2);
        return;
    }
    const Element* elements = reinterpret_cast<const Element*>(staged);
    int odd = (int)(reinterpret_cast<unsigned long long>(row) / 2 % 2);
    if (odd && lane == 0) row[0] = elements[0];
    #pragma unroll
    for (int part = 0; part < PARTS; ++part) {
        int first = part * 64 + 2 * lane + odd;
        if (first + 1 < width)
            *reinterpret_cast<unsigned*>(row + first) = elements[first] | (unsigned)elements[first + 1] << 16;
        else if (first < width)
            row[first] = elements[first];
    }
}

// Three warps that copy nothing in carry finished tiles out, while the consumers are already at the next one.
static __device__ __forceinline__ void carry_out(
    const unsigned* staging, Barrier* staged, Barrier* carried, Element* P, int m, int n, long long ldp)
{
    int tiles_m = (m + BLOCK_M - 1) / BLOCK_M, tiles_n = (n + BLOCK_N - 1) / BLOCK_N;
    unsigned parity = 0;
    for (int tile = blockIdx.x; tile < tiles_m * tiles_n; tile += gridDim.x, parity ^= 1) {
        int tile_m, tile_n;
        place(tile, tiles_m, tiles_n, tile_m, tile_n);
        int top = tile_m * BLOCK_M, left = tile_n * BLOCK_N;
        int height = min(BLOCK_M, m - top), width = min(BLOCK_N, n - left);
        barrier_wait(staged, parity);
        for (int r = threadIdx.x / 32 - 1; r < height; r += CARRIERS)
            store_row(staging + r * PITCH, P + (top + r) * ldp + left, width);
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(carried);
    }
}

// What P holds is added first when the product is accumulated.
static __device__ __forceinline__ void add_onto(
    float (&sums)[SUMS], const Result* P, int m, int n, long long ldp, int top, int left)
{
    int lane = threadIdx.x % 32;
    #pragma unroll
    for (int i = 0; i < SUMS; ++i) {
        int row = top + lane / 4 + i / 2 % 2 * 8, column = left + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (row < m && column < n) sums[i] += widen(P[row * ldp + column]);
    }
}

// Sums that stay sums come and go straight between P and the registers: four lanes share 32 bytes of a row.
static __device__ __forceinline__ void exchange_sums(
    float (&sums)[SUMS], Result* P, int m, int n, long long ldp, int top, int left)
{
    int lane = threadIdx.x % 32;
    #pragma unroll
    for (int turn = ACCUMULATE ? 0 : 1; turn < 2; ++turn)  // first all loads, which then wait for memory together
        #pragma unroll
        for (int i = 0; i < SUMS; i += 2) {
            int row = top + lane / 4 + i / 2 % 2 * 8, column = left + i / 4 * 8 + lane % 4 * 2;
            float* cells = reinterpret_cast<float*>(P) + row * ldp + column;
            float2* pair = reinterpret_cast<float2*>(cells);
            if (row >= m || column >= n) continue;
            bool both = column + 1 < n;
            if (turn == 0) {
                float2 before = P_ALIGNED && both ? *pair : make_float2(cells[0], both ? cells[1] : 0.0f);
                sums[i] += before.x;
                sums[i + 1] += before.y;
            } else if (P_ALIGNED && both) {
                *pair = make_float2(sums[i], sums[i + 1]);
            } else {
                cells[0] = sums[i];
                if (both) cells[1] = sums[i + 1];
            }
        }
}

static __device__ __forceinline__ void consume(
    char* stages, Barrier* full, Barrier* empty, unsigned* staging, Barrier* staged, Barrier* carried, int group,
    Result* P, int m, int k, int n, long long ldp)
{
    int tiles_m = (m + BLOCK_M - 1) / BLOCK_M, tiles_n = (n + BLOCK_N - 1) / BLOCK_N;
    int steps = (k + BLOCK_K - 1) / BLOCK_K;
    int stage = 0, before = 0;
    unsigned parity = 0, empty_staging = 1;  // a fresh barrier counts as completed in the other parity
    bool leader = threadIdx.x % 128 == 0;
    for (int tile = blockIdx.x; tile < tiles_m * tiles_n; tile += gridDim.x) {
        int tile_m, tile_n;
        place(tile, tiles_m, tiles_n, tile_m, tile_n);
        float sums[SUMS];
        #pragma unroll
        for (int i = 0; i < SUMS; ++i) sums[i] = 0.0f;

        for (int step = 0; step < steps; ++step) {
            barrier_wait(&full[stage], parity);
            const char* tile_of_m = stages + stage * STAGE_BYTES + group * 8192;
            const char* tile_of_n = stages + stage * STAGE_BYTES + TILE_M_BYTES;
            unsigned long long of_m = tile_descriptor(tile_of_m, 8192, 1024);
            unsigned long long of_n = tile_descriptor(tile_of_n, 8192, 1024);
            wgmma_fence();
            #pragma unroll
            for (int i = 0; i < BLOCK_K / 16; ++i)
                wgmma(sums, of_m + i * (M_ALONG_K ? 2 : 128), of_n + i * (N_ALONG_K ? 2 : 128));
            wgmma_commit();
            wgmma_wait<1>();  // the step before is done: its stage may be filled again
            if (step > 0 && leader) barrier_arrive(&empty[before]);
            before = stage;
            if (++stage == STAGES) {
                stage = 0;
                parity ^= 1;
            }
        }
        wgmma_wait<0>();
        if (leader) barrier_arrive(&empty[before]);
        int top = group * 64 + threadIdx.x / 32 % 4 * 16;  // of this warp's 16 rows, within the tile
        if (UNROUNDED) {
            exchange_sums(sums, P, m, n, ldp, tile_m * BLOCK_M + top, tile_n * BLOCK_N);
            continue;
        }
        if (ACCUMULATE) add_onto(sums, P, m, n, ldp, tile_m * BLOCK_M + top, tile_n * BLOCK_N);
        barrier_wait(carried, empty_staging);
        empty_staging ^= 1;
        stage_sums(sums, staging, top);
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(staged);
    }
}

extern "C" __global__ void __launch_bounds__(128 * (CONSUMERS + 1), 1) tensor_cores(
    const __grid_constant__ TensorMap map_m, const __grid_constant__ TensorMap map_n, Result* P,
    int m, int k, int n, long long ldp)
{
    extern __shared__ char memory[];
    char* stages = memory + (1024 - shared_address(memory) % 1024) % 1024;
    unsigned* staging = reinterpret_cast<unsigned*>(stages + STAGES * STAGE_BYTES);
    Barrier* full = reinterpret_cast<Barrier*>(staging + BLOCK_M * PITCH);
    Barrier* empty = full + STAGES;
    Barrier* staged = empty + STAGES;
    Barrier* carried = staged + 1;
    if (threadIdx.x == 0) {
        prefetch_map(&map_m);
        prefetch_map(&map_n);
        for (int s = 0; s < STAGES; ++s) {
            barrier_init(&full[s], 1);
            barrier_init(&empty[s], CONSUMERS);
        }
        barrier_init(staged, 4 * CONSUMERS);
        barrier_init(carried, CARRIERS);
        barrier_init_done();
    }
    __syncthreads();
    int group = threadIdx.x / 128;
    if (group == 0) {
        registers_give<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0)
            produce(stages, full, empty, &map_m, &map_n, m, k, n);
        else if (threadIdx.x >= 32 && !UNROUNDED)
            carry_out(staging, staged, carried, reinterpret_cast<Element*>(P), m, n, ldp);
    } else {
        registers_take<CONSUMER_REGISTERS>();
        consume(stages, full, empty, staging, staged, carried, group - 1, P, m, k, n, ldp);
    }
}
