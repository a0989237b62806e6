// k_across_columns: which columns of a tile a thread of `k_across` has: how their lines of N come to it, and how its sums leave
// for P.
//
// Lines of N: with APART they start anywhere. Every fourth one starts equally far from a 16-byte boundary, so a map for each
//   of the four classes brings them from the boundary before on; a thread's k is always of one class, so the distance (its
//   misalignment) is part of where it reads. Else they start on 16 bytes, or all equally far behind.
// Banks: the four lines that a warp reads at once lie in different banks: with APART, where the misalignments do, because it reads every
//   fourth column; else because lines are 136 words apart.
// Rows of P: consumers stage 16 of them at a time, and write them in pieces that start and end on the 128-byte lines of memory,
//   or leave them to the copy engine where they start and end on 16 bytes (BOXED). Two stagings take turns.
// Barrier: consumers meet when a staging is filled, and with BOXED before, when it has been read.

#define BLOCK_K 32
#define CONSUMERS (BLOCK_N / 64)
#define SUMS (BLOCK_M / 2)  // of a thread
#define PITCH (4 * (BLOCK_N + (APART ? 4 : 8)))  // bytes from line to line of a box of N
#define BOX_BYTES (8 * PITCH)  // the lines of a class, with APART
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

// The column of a tile that this thread's first sums are of, and how many columns on the second are.
static __device__ __forceinline__ int column_of_thread() {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, group = threadIdx.x / 128 - 1;
    return group * 64 + (APART ? lane / 4 * 4 + warp : warp * 16 + lane / 4);
}
#define COLUMNS_ON (APART ? 32 : 8)

// Where the first word lies that this thread needs of a stage of N, whose lines came `early`.
static __device__ __forceinline__ const char* first_of_lines(const char* tile_of_n, const int* misalignments, int early) {
    int line = threadIdx.x % 4, misalignment = misalignments[APART ? (line - early) & 3 : 0];
    return tile_of_n + line * (APART ? BOX_BYTES : PITCH) + (column_of_thread() + misalignment) * 4;
}

// A thread's share of a stage of N, as wgmma takes it: four words for each 8 of k. `lines` is where its first word lies.
static __device__ __forceinline__ void load_lines(unsigned (&words)[16], const char* lines) {
    #pragma unroll
    for (int i = 0; i < 16; ++i) {
        int fours = i / 2, on = i % 2;  // of k, and of columns
        words[i] = *reinterpret_cast<const unsigned*>(lines + fours * (APART ? 1 : 4) * PITCH + on * COLUMNS_ON * 4);
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
    int lane = threadIdx.x % 32, column = column_of_thread();
    #pragma unroll
    for (int i = 0; i < STAGED_ROWS / 2; ++i)
        staged[staged_at(i / 4 * 8 + lane % 4 * 2 + i % 2, column + i / 2 % 2 * COLUMNS_ON)] = sums[first / 2 + i];
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
