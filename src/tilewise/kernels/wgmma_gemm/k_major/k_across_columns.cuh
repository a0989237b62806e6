// k_across_columns: how lines of N come to a tile of `k_across`, and how its sums leave for P.
//
// Lines of N: see register_lines.cuh; a line of its tile is a column of P's.
// Rows of P: consumers stage 16 of them at a time, and write them in pieces that start and end on the 128-byte lines of memory,
//   or leave them to the copy engine where they start and end on 16 bytes (BOXED). Two stagings take turns.
// Barrier: consumers meet when a staging is filled, and with BOXED before, when it has been read.

#define BLOCK_K 32
#define CONSUMERS (BLOCK_N / 64)
#define SUMS (BLOCK_M / 2)  // of a thread
#define LINE_CLASSES (APART ? 4 : 1)
#define TILE_N_BYTES (BLOCK_K * PITCH)
#define STAGED_ROWS 16  // of P at a time
#define STAGING_BYTES (2 * STAGED_ROWS * BLOCK_N * 4)
#define ALL_RANKS ((1 << CLUSTER) - 1)

struct MapsOfN { TensorMap of[LINE_CLASSES]; };

// Lines of N from k on, `early` lines before.
static __device__ __forceinline__ void load_n(char* to, const MapsOfN& maps, Barrier* full, int k, int early, int left) {
    const bool shared = CLUSTER > 1 && !BESIDE;
    const int parts = APART ? 4 : shared ? CLUSTER : 1, share = shared ? parts / CLUSTER : parts;
    int first = shared ? cluster_rank() * share : 0;
    #pragma unroll
    for (int part = first; part < first + share; ++part) {
        int behind = part - early;  // with APART, of a class: four lines are one
        const TensorMap* map = &maps.of[APART ? behind & 3 : 0];
        char* box = to + (APART ? part * BOX_BYTES : part * (TILE_N_BYTES / parts));
        int line = APART ? k / 4 + (behind >> 2) : k - early + part * (BLOCK_K / parts);
        if (shared)
            copy_box_multicast(box, map, full, left, line, ALL_RANKS);
        else
            copy_box(box, map, full, left, line);
    }
}

// Where a word of a staged row lies: neither sums of a warp nor words side by side meet a bank twice. With BOXED four boxes of
// 32 columns lie one after the other, swizzled as the copy engine reads them.
static __device__ __forceinline__ int staged_at(int row, int column) {
    if (BOXED) return (column / 32 * STAGED_ROWS + row) * 32 + (column % 32 ^ row % 8 * 4);
    return row * BLOCK_N + (column ^ row / 2 % 4 * (APART ? 1 : 8));
}

// The first of the rows of a tile of P that are staged now, as its sums are.
static __device__ __forceinline__ void stage_rows(const float (&sums)[SUMS], float* staged, int first) {
    int lane = threadIdx.x % 32, column = line_of_thread();
    #pragma unroll
    for (int i = 0; i < STAGED_ROWS / 2; ++i)
        staged[staged_at(i / 4 * 8 + lane % 4 * 2 + i % 2, column + i / 2 % 2 * LINES_ON)] = sums[first / 2 + i];
}

// A tile of P, rows first, by pieces that start and end on the 128-byte lines of memory. `P` is at the tile's first element, of
// which `rows` and `columns` are left. `filled` says which staging is next.
static __device__ __forceinline__ void store_transposed(
    const float (&sums)[SUMS], float* staging, int& filled, float* P, long long ldp, int rows, int columns)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32 - 4;
    #pragma unroll
    for (int first = 0; first < BLOCK_M; first += STAGED_ROWS) {
        if (first >= rows) break;
        float* staged = staging + filled * STAGED_ROWS * BLOCK_N;
        filled ^= 1;
        stage_rows(sums, staged, first);
        barrier_sync(1, 128 * CONSUMERS);
        #pragma unroll 1
        for (int row = warp; row < min(STAGED_ROWS, rows - first); row += 4 * CONSUMERS) {
            float* line = P + (first + row) * ldp;
            int misalignment = (int)(reinterpret_cast<unsigned long long>(line) / 4 % 32);
            #pragma unroll
            for (int piece = 0; piece <= BLOCK_N / 32; ++piece) {
                int at = piece * 32 - misalignment + lane;
                if (at < 0 || at >= min(columns, BLOCK_N)) continue;
                float sum = staged[staged_at(row, at)];
                line[at] = ONTO ? line[at] + sum : sum;
            }
        }
    }
}

// The same where the copy engine can store P, while the next tile is multiplied.
static __device__ __forceinline__ void store_boxes(
    const float (&sums)[SUMS], float* staging, int& filled, const TensorMap* map_p, int top, int left, int rows)
{
    bool leader = threadIdx.x == 128;
    #pragma unroll
    for (int first = 0; first < BLOCK_M; first += STAGED_ROWS) {
        if (first >= rows) break;
        float* staged = staging + filled * STAGED_ROWS * BLOCK_N;
        filled ^= 1;
        if (leader) store_wait_read<1>();  // the other staging may still be on its way
        barrier_sync(1, 128 * CONSUMERS);
        stage_rows(sums, staged, first);
        fence_async_shared();
        barrier_sync(1, 128 * CONSUMERS);
        if (leader) {
            for (int box = 0; box < BLOCK_N / 32; ++box)
                store_box(map_p, staged + box * 32 * STAGED_ROWS, left + box * 32, top + first);
            store_commit();
        }
    }
}
