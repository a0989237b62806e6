// bulk_lines: operands of any alignment. Producer warps copy lines unchanged to shared memory, by bulk copies where possible; consumer
// warps read mma.sync fragments from them word by word. Persistent blocks: copies of the next tile overlap the products of this one.
//
// Layout: a stage holds `depth` of k of a tile's rows of M, then of its columns of N, as producers.cuh copies them; lines are `pitch`
//   bytes apart. After the stages each warp has memory to stage its sums (stores.cuh).
// Edges: elements beyond k are masked in both operands; rows and columns outside are undefined, and only reach sums that are not stored.
// Split-K: where tiles are few, over the blocks of a cluster, `share` of k each, added up in order (stores.cuh); then a block has one
//   tile.
// Barrier: full[s] completes when all bytes of stage s have arrived, empty[s] when every consumer thread has read it.

#define CONSUMERS (WARPS_M * WARPS_N)
#define BARRIER_BYTES (2 * MOST_STAGES * 8)

// The problem of a launch, and the layout of its shared memory.
struct Product {
    int m, k, n, depth, stages, region_m, stage_bytes, pitch_p, staged_bytes, items, tiles, tiles_n, even, share, parts;
    long long step_m, step_n, step_p, lead_p;  // in bytes
};

// A tile of a member.
struct Item { int member, top, left; };

// This block's part of k.
struct Part { int from, to; };

static __device__ __forceinline__ Part part_of(const Product& p) {
    int from = (int)(blockIdx.x % p.parts) * p.share;
    return {from, min(p.k, from + p.share)};
}

static __device__ __forceinline__ Item item_of(int number, const Product& p) {
    int member = number / p.tiles, tile = number - member * p.tiles, down = tile / p.tiles_n;
    return {member, down * BLOCK_M, (tile - down * p.tiles_n) * BLOCK_N};
}

// The first byte of a tile's rows of M and of its columns of N, from `k` on.
static __device__ __forceinline__ const char* of_m(const Source& M, const Product& p, Item item, int k) {
    return M.matrix + item.member * p.step_m + (M_ALONG_K ? item.top * M.lead + k * SIZE : k * M.lead + item.top * SIZE);
}
static __device__ __forceinline__ const char* of_n(const Source& N, const Product& p, Item item, int k) {
    return N.matrix + item.member * p.step_n + (N_ALONG_K ? item.left * N.lead + k * SIZE : k * N.lead + item.left * SIZE);
}

static __device__ __forceinline__ void next_stage(int& stage, unsigned& parity, const Product& p) {
    if (++stage == p.stages) {
        stage = 0;
        parity ^= 1;
    }
}

static __device__ __forceinline__ void produce(
    char* stages, Barrier* full, Barrier* empty, const Source& M, const Source& N, const Product& p)
{
    int stage = 0, copier = (int)threadIdx.x - 32 * CONSUMERS;
    unsigned parity = 1;  // a fresh barrier counts as just completed in the other parity: nothing to wait for
    Part part = part_of(p);
    for (int number = blockIdx.x / p.parts; number < p.items; number += gridDim.x / p.parts) {
        Item item = item_of(number, p);
        int rows = min(BLOCK_M, p.m - item.top), columns = min(BLOCK_N, p.n - item.left);
        #pragma unroll 1
        for (int k = part.from; k < part.to; k += p.depth) {
            int deep = min(p.depth, part.to - k);
            barrier_wait(&empty[stage], parity);
            char* to = stages + stage * p.stage_bytes;
            unsigned sent = load_lines(to, of_m(M, p, item, k), M_ALONG_K ? rows : deep, (M_ALONG_K ? deep : rows) * SIZE, M,
                                        &full[stage], copier);
            sent += load_lines(to + p.region_m, of_n(N, p, item, k), N_ALONG_K ? columns : deep,
                                (N_ALONG_K ? deep : columns) * SIZE, N, &full[stage], copier);
            arrive_after_copies(&full[stage]);
            __syncwarp();  // elements copied one by one are visible
            for (int apart = 16; apart; apart /= 2) sent += __shfl_xor_sync(~0u, sent, apart);
            if (threadIdx.x % 32 == 0) barrier_expect(&full[stage], sent);
            next_stage(stage, parity, p);
        }
    }
}

static __device__ __forceinline__ void consume(
    char* stages, char* staged, Barrier* full, Barrier* empty, const Source& M, const Source& N, char* P, const Product& p)
{
    int warp = threadIdx.x / 32, row = warp / WARPS_N * WARP_M, column = warp % WARPS_N * WARP_N, stage = 0;
    unsigned parity = 0;
    Part part = part_of(p);
    for (int number = blockIdx.x / p.parts; number < p.items; number += gridDim.x / p.parts) {
        Item item = item_of(number, p);
        int height = min(WARP_M, p.m - item.top - row), width = min(WARP_N, p.n - item.left - column);
        int lines_m = behind_boundary(of_m(M, p, item, 0)) + row * (M_ALONG_K ? M.pitch : SIZE);
        int lines_n = p.region_m + behind_boundary(of_n(N, p, item, 0)) + column * (N_ALONG_K ? N.pitch : SIZE);
        Sums sums;
        #pragma unroll
        for (int i = 0; i < (int)(sizeof(Sums) / sizeof(float)); ++i) (&sums[0][0][0])[i] = 0.0f;
        #pragma unroll 1
        for (int k = part.from; k < part.to; k += p.depth) {
            const char* from = stages + stage * p.stage_bytes;
            int deep = min(p.depth, part.to - k);
            barrier_wait(&full[stage], parity);
            if (height > 0 && width > 0) {
                if (SIZE == 4 || p.even)
                    multiply_stage<true>(sums, from + lines_m, from + lines_n, M.pitch, N.pitch, deep);
                else
                    multiply_stage<false>(sums, from + lines_m, from + lines_n, M.pitch, N.pitch, deep);
            }
            barrier_arrive(&empty[stage]);  // by every thread: racecheck does not infer a warp's reads from one thread's arrival
            next_stage(stage, parity, p);
        }
        char* target = P + item.member * p.step_p + item.top * p.lead_p + item.left * SIZE;
        int across = min(BLOCK_N, p.n - item.left);
        if (p.parts > 1) {
            hold_sums(sums, stages, row, column);
            add_up_and_store(stages, p.parts, target, p.lead_p, min(BLOCK_M, p.m - item.top), across);
            return;
        }
        if (height > 0)
            store_sums(sums, staged, p.staged_bytes, target + row * p.lead_p, p.lead_p, p.pitch_p, column, height, across);
    }
}

extern "C" __global__ void __launch_bounds__(32 * CONSUMERS + COPIERS, RESIDENT) bulk_lines(
    const char* M, const char* N, char* P, const __grid_constant__ Product p, Reach reach_m, Reach reach_n, long long lead_m,
    long long lead_n, int pitch_m, int pitch_n)
{
    extern __shared__ char memory[];
    char* shared = memory + (128 - shared_address(memory) % 128) % 128;
    Barrier* full = reinterpret_cast<Barrier*>(shared);
    Barrier* empty = full + MOST_STAGES;
    char* stages = shared + BARRIER_BYTES;
    char* staged = stages + p.stages * p.stage_bytes;
    if (threadIdx.x == 0) {
        for (int s = 0; s < p.stages; ++s) {
            barrier_init(&full[s], COPIERS + PRODUCERS);
            barrier_init(&empty[s], 32 * CONSUMERS);
        }
        barrier_init_done();
    }
    __syncthreads();
    wait_on_dependent_grids();
    launch_dependent_grids();
    Source of_M = {M + reach_m.low * SIZE, M + reach_m.high * SIZE, M, lead_m * SIZE, pitch_m};
    Source of_N = {N + reach_n.low * SIZE, N + reach_n.high * SIZE, N, lead_n * SIZE, pitch_n};
    if (threadIdx.x >= 32 * CONSUMERS)
        produce(stages, full, empty, of_M, of_N, p);
    else
        consume(stages, staged, full, empty, of_M, of_N, P, p);
    if (p.parts > 1) {
        if (threadIdx.x >= 32 * CONSUMERS) cluster_sync();  // the consumers' barrier before the reduction
        cluster_sync();                                     // no block exits while another reads its shared memory
    }
}
