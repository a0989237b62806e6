// stage: the layout of a stage and of the staging memory of `wgmma_half`, register counts, and the tile scheduler.

#define BLOCK_K 64
#define ROW_BYTES 128
#define PARTS (BLOCK_N / 64)  // 64 columns each
#define FEW_ACROSS (CUT && !N_ALONG_K && BLOCK_N < 64)  // few lines of k across, eight side by side to a box
#define TILE_M_BYTES (BLOCK_M * ROW_BYTES)
#define TILE_N_BYTES (BLOCK_N * ROW_BYTES)
#define STAGE_BYTES (TILE_M_BYTES + TILE_N_BYTES)
#define ARRIVING_BYTES (TILE_M_BYTES + TILE_N_BYTES)
#define CONSUMERS (BLOCK_M / 64)
#define MAPS_OF_N (N_BY_CLASSES ? 8 : 1)  // lines of N that start on no 16 bytes come by classes: see alignment_classes.cuh
#define TILE_COLS (N_BY_CLASSES ? BLOCK_N - 8 : BLOCK_N)  // columns of P that a tile makes
#define PRODUCER_REGISTERS (RESIDENT > 1 ? 40 : EDGES ? 104 : CARRIED || STACKED ? 56 : 40)
#define min_of(x, y) ((x) < (y) ? (x) : (y))
#define CONSUMER_REGISTERS (RESIDENT > 1 ? min_of(216, ((CONSUMERS + 1) * LAUNCH_REGISTERS - 40) / CONSUMERS / 8 * 8) : CONSUMERS == 3 ? 152 : EDGES ? 200 : CARRIED || STACKED ? 224 : 232)
#define LAUNCH_REGISTERS (65536 / RESIDENT / (128 * (CONSUMERS + 1)) / 8 * 8)  // of a thread at launch, before setmaxnreg
static_assert(PRODUCER_REGISTERS + CONSUMERS * CONSUMER_REGISTERS <= (CONSUMERS + 1) * LAUNCH_REGISTERS,
              "setmaxnreg of the consumers would wait forever");
#define SUMS (BLOCK_N / 2)
#define CARRIERS 3
#define BOXES (CARRIED ? PARTS : PARTS < 2 ? 1 : 2)  // parts of 64 columns that a consumer stages at a time
#define BOX_BYTES (64 * ROW_BYTES)
#define TRANSPOSED_BYTES (BLOCK_N * ROW_BYTES)  // 64 columns of P, as rows of this kernel's tile become
#define STAGING_BYTES (SPLIT || CUT ? 0 : TRANSPOSED ? CONSUMERS * TRANSPOSED_BYTES : CONSUMERS * BOXES * BOX_BYTES)
#if CUT
#define CLUSTERED  // as large as the launch says
#else
#define CLUSTERED __cluster_dims__(CLUSTER * BESIDE, 1, 1)
#endif
// A cluster is CLUSTER blocks one above the other, column by column, BESIDE of them.
#define TOGETHER (CLUSTER * BESIDE)
static __device__ __forceinline__ int place_down() { return CLUSTER == 1 ? 0 : cluster_rank() % CLUSTER; }
static __device__ __forceinline__ int place_across() { return BESIDE == 1 ? 0 : cluster_rank() / CLUSTER; }
#define FINISHED (ALPHA || BIAS || ACTIVATION || (ACCUMULATE && !SPLIT))  // sums are not stored as they are

// full, empty, then `staged` and `carried`, then what tile_scheduler.cuh has.
#define BARRIERS (2 * STAGES + 2)
static __device__ __forceinline__ Barrier* barriers_after(char* staging) {
    return reinterpret_cast<Barrier*>(staging + STAGING_BYTES);
}

struct Size { int m, k, n, splits; Stack stack; };
struct MapsOfM { TensorMap of[CLASSES]; };
struct MapsOfN { TensorMap of[MAPS_OF_N]; };
struct Misalignments {
    int of[CLASSES];  // in elements
#if N_BY_CLASSES
    int classes, run, inner, outer, residue[MAPS_OF_N];  // see alignment_classes.cuh
#endif
};

// One tile of P for this block, and the phases that this part of k takes. Row r of it is row (top + r) * CLASSES + at of P,
// as long as top + r < rows.
// Its part of k begins `origin` elements behind the operands' own.
struct Work { int at, rows, top, left, from, to, split, origin, depth; Member member; bool mirrored; };

// Whether all of a tile's columns inside P are in its left half.
static __device__ __forceinline__ bool is_narrow(const Work& work, const Size& size) {
    return size.n - work.left + (BLOCK_N - TILE_COLS) <= BLOCK_N / 2;
}

// Phases of a tile that `depth` elements of k take.
static __device__ __forceinline__ int steps_of(int depth, const Misalignments& misalignments) {
#if N_BY_CLASSES
    return misalignments.classes * (misalignments.run / BLOCK_K);
#else
    return (depth + BLOCK_K - 1) / BLOCK_K;
#endif
}

// The same of groups of rows: tiles are found in a table.
static __device__ __forceinline__ bool find_rows(int index, Size size, const Misalignments& misalignments, Work& work) {
    const int* walk = static_cast<const int*>(size.stack.groups);
    int tiles_m = walk[0], tiles_n = (size.n + TILE_COLS - 1) / TILE_COLS;
    if (index >= tiles_m * tiles_n) return false;
    int group = index / (GROUP * tiles_n), first = group * GROUP, height = min(GROUP, tiles_m - first);
    int within = index - group * GROUP * tiles_n;
    int4 piece = reinterpret_cast<const int4*>(walk)[1 + first + within % height];
    work = {0, piece.z, piece.y, within / height * TILE_COLS, 0, 0, 0, 0, size.k, {max(0, piece.x), 0}};
    work.to = piece.x < 0 ? 0 : steps_of(size.k, misalignments);
    return true;
}

// The same where k is cut inside the launch: a block has one part of one tile, its neighbours the others. P has one column of
// tiles, but for those of 64 columns. (Few divisions: a block's start is most of its time.)
static __device__ __forceinline__ bool find_part(int turn, const Size& size, Work& work) {
    if (turn > 0) return false;
    int parts = size.splits, steps = (size.k + BLOCK_K - 1) / BLOCK_K;
    int rank = parts > 1 ? cluster_rank() : 0, tile = parts > 1 ? (int)blockIdx.x / parts : (int)blockIdx.x;
    int left = 0;
    if (BLOCK_N >= 64) {
        int across = (size.n + BLOCK_N - 1) / BLOCK_N;
        left = tile % across * BLOCK_N;
        tile /= across;
    }
    work = {0, size.m, tile * BLOCK_M, left, 0, steps, rank, 0, size.k, {0, 0}};
    if (parts > 1) {
        work.from = steps * rank / parts;
        work.to = steps * (rank + 1) / parts;
    }
    return true;
}

// Tiles in bands of GROUP rows of cluster tiles, column by column within a band, for reuse in L2. Tiles are numbered by member of the
// stack, then part of k, then class of rows.
static __device__ __forceinline__ bool find_work(int turn, Size size, const Misalignments& misalignments, Work& work) {
    if (CUT) return find_part(turn, size, work);
#if SYMMETRIC
    int tiles = upper_tiles(size.m), number = blockIdx.x / TOGETHER + turn * (gridDim.x / TOGETHER);
    if (number >= tiles * (STACKED ? size.stack.members : 1)) return false;
    UpperTile upper = upper_tile(STACKED ? number % tiles : number, size.m);
    work = {0, size.m, upper.top + place_down() * BLOCK_M, upper.left + place_across() * BLOCK_N, 0, 0, 0, 0, size.k,
            member_at(STACKED ? number / tiles : 0, size.stack), upper.mirrored};
    work.to = steps_of(size.k, misalignments);
    return true;
#else  // SYMMETRIC
    const int tall = CLUSTER * BLOCK_M, wide = BESIDE * TILE_COLS;
    RowClasses classes = row_classes(size.m, tall);
    int tiles_m = tiles_of(classes), tiles_n = (size.n + wide - 1) / wide;
    int index = blockIdx.x / TOGETHER + turn * (gridDim.x / TOGETHER), parts = SERIAL ? 1 : size.splits;
    if (index >= tiles_m * tiles_n * parts * (STACKED ? size.stack.members : 1)) return false;
    work.member = member_at(STACKED ? index / (tiles_m * tiles_n * parts) : 0, size.stack);
    if (STACKED) index %= tiles_m * tiles_n * parts;
    work.split = SPLIT ? index / (tiles_m * tiles_n) : 0;
    int tile = index - work.split * tiles_m * tiles_n;
    int group = tile / (GROUP * tiles_n), first = group * GROUP;
    int height = min(GROUP, tiles_m - first);
    int within = tile - group * GROUP * tiles_n;
    int tile_m = first + within % height;
    find_class(classes, size.m, tile_m, work.at, work.rows);
    work.top = tile_m * tall + place_down() * BLOCK_M;
    work.left = within / height * wide + place_across() * TILE_COLS;
    work.origin = BY_K ? group_start(work.member.inner, size.stack, size.k) : 0;
    work.depth = BY_K ? max(0, group_start(work.member.inner + 1, size.stack, size.k) - work.origin) : size.k;
    int steps = steps_of(work.depth + misalignments.of[work.at], misalignments);
    work.from = SPLIT ? (int)((long long)steps * work.split / size.splits) : 0;
    work.to = SPLIT ? (int)((long long)steps * (work.split + 1) / size.splits) : steps;
    return true;
#endif  // SYMMETRIC
}
