// tensor_cores: one producer thread streams tiles by TMA, warpgroups multiply them by wgmma, blocks walk tiles of P.
//
// Layout: a stage holds a BLOCK_M x 64 tile of M and a 64 x BLOCK_N tile of N in 128-byte rows, swizzled by the copy.
//   An operand whose k lies side by side comes as one box {64 k, rows}; one whose rows or columns lie side by side comes
//   as boxes {64, 64 k}, and wgmma reads it transposed. Consumer warpgroup g owns rows 64 g .. 64 g + 63 of the tile.
// Row classes: rows of M that do not start on 16 bytes cannot be copied, but every CLASSES-th one starts equally far from
//   such a boundary. A tile then takes rows of one class: its map begins up to 7 elements early (the skew), N begins as
//   many rows early, which the copy fills with 0, and the consumers put 0 over what lies before their rows.
// Clusters: CLUSTER blocks take tiles above one another and the same tile of N: each brings a share of it to all of them.
// Edges: the copy fills with 0 outside M and N, so pads only meet pads; P is stored through a guard.
// Barrier: full[s] completes when both tiles of stage s have arrived; empty[s] when every consumer that reads what this
//   block sends, its own and its neighbours', has used them.
// Stores: sums pass through a staging of 64 x 64 boxes. Where rows of P start on 16 bytes the copy engine takes the boxes
//   (BOXED) while the next tile is multiplied. Else, for many waves, consumers leave a finished tile in the staging (staged
//   completes) and go on, and three carrier warps write it out in whole rows, whatever P's stride (CARRIED; carried
//   completes, and the staging may be used again); in the last wave, or for few waves, each warp writes its own rows.
//   With TURNED the operands have changed places, and boxes are turned on their way into the staging.
//   With SPLIT, float32 sums of a part of k go to `partials`, and `gather` (gather.cu) adds them up. A P that keeps its
//   sums unrounded is one such part: with ACCUMULATE what it holds is added first.
// Epilogue: sums pass through `finish` (epilogue.cuh) in the registers of their consumer, or in `gather` where k is cut.
// Thin edges: with EDGES, `size` ends before a few last rows and columns of P, which the carriers make in the background
//   while nothing waits to be carried (thin_edges.cuh).

#define BLOCK_K 64
#define ROW_BYTES 128
#define PARTS (BLOCK_N / 64)  // 64 columns each
#define TILE_M_BYTES (BLOCK_M * ROW_BYTES)
#define TILE_N_BYTES (BLOCK_N * ROW_BYTES)
#define STAGE_BYTES (TILE_M_BYTES + TILE_N_BYTES)
#define ARRIVING_BYTES (BOX_M * ROW_BYTES + TILE_N_BYTES)
#define CONSUMERS (BLOCK_M / 64)
#define PRODUCER_REGISTERS (EDGES ? (CONSUMERS == 3 ? 80 : 104) : CARRIED ? 56 : 40)
#define CONSUMER_REGISTERS (CONSUMERS == 3 ? (EDGES ? 144 : 152) : EDGES ? 200 : CARRIED ? 224 : 232)
#define LAUNCH_REGISTERS (65536 / (128 * (CONSUMERS + 1)) / 8 * 8)  // a thread's, before they are given and taken
static_assert(PRODUCER_REGISTERS + CONSUMERS * CONSUMER_REGISTERS <= (CONSUMERS + 1) * LAUNCH_REGISTERS,
              "consumers would wait for ever for registers that nobody gives");
#define SUMS (BLOCK_N / 2)
#define CARRIERS 3
#define BOXES (CARRIED ? PARTS : PARTS < 2 ? 1 : 2)  // parts of 64 columns that a consumer stages at a time
#define BOX_BYTES (64 * ROW_BYTES)
#define TURNED_BYTES (BLOCK_N * ROW_BYTES)  // 64 columns of P, as rows of this kernel's tile become
#define STAGING_BYTES (SPLIT ? 0 : TURNED ? CONSUMERS * TURNED_BYTES : CONSUMERS * BOXES * BOX_BYTES)
#define EVERYONE ((1 << CLUSTER) - 1)
#define FINISHED (ALPHA || BIAS || ACTIVATION || (ACCUMULATE && !SPLIT))  // sums are not stored as they are

struct Size { int m, k, n, splits; };
struct MapsOfM { TensorMap of[CLASSES]; };
struct Skews { int of[CLASSES]; };  // in elements

// One tile of P for this block, and the phases that this part of k takes. Row r of it is row (top + r) * CLASSES + at of P,
// as long as top + r < rows.
struct Work { int at, rows, top, left, from, to, split; };

// Tiles of P in an order that keeps neighbours in time neighbours in space: GROUP rows of cluster tiles, column by column.
// Each part of k is walked in turn, each class of rows within its own tiles.
static __device__ __forceinline__ bool find_work(int turn, Size size, const Skews& skews, Work& work) {
    const int tall = CLUSTER * BLOCK_M;
    int longer = size.m % CLASSES, few = size.m / CLASSES;  // so many classes have a row more than the others
    int tiles_few = (few + tall - 1) / tall, tiles_more = (few + tall) / tall;
    int tiles_m = longer * tiles_more + (CLASSES - longer) * tiles_few, tiles_n = (size.n + BLOCK_N - 1) / BLOCK_N;
    int index = blockIdx.x / CLUSTER + turn * (gridDim.x / CLUSTER);
    if (index >= tiles_m * tiles_n * size.splits) return false;
    work.split = SPLIT ? index / (tiles_m * tiles_n) : 0;
    int tile = index - work.split * tiles_m * tiles_n;
    int group = tile / (GROUP * tiles_n), first = group * GROUP;
    int height = min(GROUP, tiles_m - first);
    int within = tile - group * GROUP * tiles_n;
    int tile_m = first + within % height;
    if (CLASSES == 1) {
        work.at = 0;
        work.rows = size.m;
    } else if (tile_m < longer * tiles_more) {
        work.at = tile_m / tiles_more;
        work.rows = few + 1;
        tile_m -= work.at * tiles_more;
    } else {
        tile_m -= longer * tiles_more;
        work.at = longer + tile_m / tiles_few;
        work.rows = few;
        tile_m %= tiles_few;
    }
    work.top = tile_m * tall + (CLUSTER > 1 ? cluster_rank() * BLOCK_M : 0);
    work.left = within / height * BLOCK_N;
    int steps = (size.k + skews.of[work.at] + BLOCK_K - 1) / BLOCK_K;
    work.from = SPLIT ? (int)((long long)steps * work.split / size.splits) : 0;
    work.to = SPLIT ? (int)((long long)steps * (work.split + 1) / size.splits) : steps;
    return true;
}

static __device__ __forceinline__ void bring_n(char* to, const TensorMap* map, Barrier* full, int start, int left) {
    if (CLUSTER == 1) {
        if (N_ALONG_K)
            copy_box(to, map, full, start, left);
        else
            for (int part = 0; part < PARTS; ++part) copy_box(to + part * 8192, map, full, left + part * 64, start);
        return;
    }
    int rank = cluster_rank();
    if (N_ALONG_K) {
        int share = BLOCK_N / CLUSTER;
        copy_box_to(to + rank * share * ROW_BYTES, map, full, start, left + rank * share, EVERYONE);
    } else if (PARTS % CLUSTER == 0) {
        for (int part = rank * PARTS / CLUSTER; part < (rank + 1) * PARTS / CLUSTER; ++part)
            copy_box_to(to + part * 8192, map, full, left + part * 64, start, EVERYONE);
    } else {
        int share = BLOCK_K / CLUSTER;
        for (int part = 0; part < PARTS; ++part)
            copy_box_to(to + part * 8192 + rank * share * ROW_BYTES, map, full, left + part * 64, start + rank * share,
                        EVERYONE);
    }
}

static __device__ __forceinline__ void produce(
    char* stages, Barrier* full, Barrier* empty, const MapsOfM& maps_m, const TensorMap* map_n, Size size, const Skews& skews)
{
    int stage = 0;
    unsigned parity = 1;  // a fresh barrier counts as just completed in the other parity: nothing to wait for
    Work work;
    for (int turn = 0; find_work(turn, size, skews, work); ++turn) {
        const TensorMap* map_m = &maps_m.of[work.at];
        for (int step = work.from; step < work.to; ++step) {
            int start = step * BLOCK_K;
            barrier_wait(&empty[stage], parity);
            barrier_expect(&full[stage], ARRIVING_BYTES);
            char* tile_of_m = stages + stage * STAGE_BYTES;
            if (M_ALONG_K)
                copy_box(tile_of_m, map_m, &full[stage], start, work.top);
            else
                for (int part = 0; part < BLOCK_M / 64; ++part)
                    copy_box(tile_of_m + part * 8192, map_m, &full[stage], work.top + part * 64, start);
            bring_n(tile_of_m + TILE_M_BYTES, map_n, &full[stage], start - skews.of[work.at], work.left);
            if (++stage == STAGES) {
                stage = 0;
                parity ^= 1;
            }
        }
    }
}

// Parts `first` and on of a warp's 16 rows into the boxes, as the kernel's dtype, swizzled so that the banks are spread.
static __device__ __forceinline__ void stage_sums(const float (&sums)[SUMS], char* boxes, int first) {
    int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane / 4;
    #pragma unroll
    for (int j = first * 8; j < min(first + BOXES, PARTS) * 8; ++j) {
        char* at = boxes + (j / 8 - first) * BOX_BYTES + row * ROW_BYTES + (j % 8 ^ row % 8) * 16 + lane % 4 * 4;
        *reinterpret_cast<unsigned*>(at) = narrow_pair(sums[4 * j], sums[4 * j + 1]);
        *reinterpret_cast<unsigned*>(at + 8 * ROW_BYTES) = narrow_pair(sums[4 * j + 2], sums[4 * j + 3]);
    }
}

// The copy engine takes a consumer's 64 rows and leaves out what lies outside P.
static __device__ __forceinline__ void store_boxes(
    const float (&sums)[SUMS], char* boxes, const TensorMap* map_p, int group, int top, int left)
{
    bool leader = threadIdx.x % 128 == 0;
    #pragma unroll
    for (int first = 0; first < PARTS; first += BOXES) {
        if (leader) store_read();
        meet(1 + group, 128);
        stage_sums(sums, boxes, first);
        publish_shared();
        meet(1 + group, 128);
        if (leader) {
            for (int part = first; part < min(first + BOXES, PARTS); ++part)
                store_box(map_p, boxes + (part - first) * BOX_BYTES, left + part * 64, top);
            store_commit();
        }
    }
}

// Few rows of P are wide tiles' columns here: each warp's sums change rows and columns, eight by eight, in registers.
static __device__ __forceinline__ void store_turned(
    const float (&sums)[SUMS], char* boxes, const TensorMap* map_p, int group, int top, int left)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    bool leader = threadIdx.x % 128 == 0;
    if (leader) store_read();
    meet(1 + group, 128);
    #pragma unroll
    for (int i = 0; i < SUMS; i += 2) {
        int row = i / 4 * 8 + lane / 4, piece = warp * 2 + i / 2 % 2;
        char* at = boxes + row * ROW_BYTES + (piece ^ row % 8) * 16 + lane % 4 * 4;
        *reinterpret_cast<unsigned*>(at) = turned_pair(narrow_pair(sums[i], sums[i + 1]));
    }
    publish_shared();
    meet(1 + group, 128);
    if (leader) {
        store_box(map_p, boxes, top, left);
        store_commit();
    }
}

// Eight elements of a staged row, the i-th such piece.
static __device__ __forceinline__ const char* staged_piece(const char* boxes, int row, int i) {
    return boxes + i / 8 * BOX_BYTES + row * ROW_BYTES + (i % 8 ^ row % 8) * 16;
}

static __device__ __forceinline__ Element staged_element(const char* boxes, int row, int i) {
    return reinterpret_cast<const Element*>(staged_piece(boxes, row, i / 8))[i % 8];
}

// Rows `first`, first + step, … of the staging to rows of any 2-byte addresses, `width` elements each. Between the 16-byte
// boundaries of P a lane stores eight elements, shifted out of two pieces; what is left at either end goes one by one.
static __device__ __forceinline__ void store_staged(
    const char* boxes, int first, int step, int end, Element* to, long long ldp, int width)
{
    const int lanes = BOXES > 2 ? 32 : BOXES * 8;  // to a row; a warp takes several rows at a time if they are short
    int i = threadIdx.x % 32 % lanes;
    for (int row = first + threadIdx.x % 32 / lanes * step; row < end; row += 32 / lanes * step) {
        const char* group = boxes + row / 64 * (BOXES * BOX_BYTES);
        int within = row % 64;
        Element* line = to + row * ldp;
        int head = (8 - elements_after_boundary(line)) % 8, at = head + i * 8, tail = head + (width - head) / 8 * 8;
        if (at + 8 <= width) {
            uint4 low = *reinterpret_cast<const uint4*>(staged_piece(group, within, i));
            uint4 high = *reinterpret_cast<const uint4*>(staged_piece(group, within, min(i + 1, BOXES * 8 - 1)));
            *reinterpret_cast<uint4*>(line + at) = shifted_by(low, high, head);
        }
        if (i < head && i < width) line[i] = staged_element(group, within, i);
        if (width > head && tail + i < width) line[tail + i] = staged_element(group, within, tail + i);
    }
}

// Each warp takes its own 16 rows out: nobody waits for anybody. P points at the tile.
static __device__ __forceinline__ void store_rows(
    const float (&sums)[SUMS], char* boxes, Element* P, long long ldp, int height, int width)
{
    int mine = threadIdx.x / 32 % 4 * 16;
    #pragma unroll
    for (int first = 0; first < PARTS; first += BOXES) {
        __syncwarp();
        stage_sums(sums, boxes, first);
        __syncwarp();
        int wide = min(min(BOXES, PARTS - first) * 64, width - first * 64);
        if (wide > 0) store_staged(boxes, mine, 1, min(mine + 16, height), P + first * 64, ldp, wide);
    }
}

// full, empty, then `staged` and `carried`.
static __device__ __forceinline__ Barrier* barriers_after(char* staging) {
    return reinterpret_cast<Barrier*>(staging + STAGING_BYTES);
}

// Three warps carry finished tiles out while the consumers are already at the next one; the last tile is not theirs.
// What they may do besides needs registers, so nothing is kept but the turn.
struct Carrier {
    char* staging; Element* P; const Size& size; const Skews& skews; long long ldp;
    int turn, turns;

    __device__ __forceinline__ Barrier* staged() const { return barriers_after(staging) + 2 * STAGES; }

    __device__ __forceinline__ void start() {
        Work after;
        for (turn = turns = 0; find_work(turns + 1, size, skews, after);) ++turns;
    }

    __device__ __forceinline__ void carry() {
        Work work;
        Size here = size;
        asm volatile("" : "+r"(here.m), "+r"(here.n));  // or its quotients would be kept in registers all the while
        find_work(turn, here, skews, work);
        Element* to = P + (work.top * (long long)CLASSES + work.at) * ldp + work.left;
        barrier_wait(staged(), turn & 1);
        store_staged(staging, threadIdx.x / 32 - 1, CARRIERS, min(BLOCK_M, work.rows - work.top), to, CLASSES * ldp,
                     min(BLOCK_N, size.n - work.left));
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(staged() + 1);
        ++turn;
    }

    __device__ __forceinline__ void operator()() {  // without waiting
        if (turn < turns && barrier_passed(staged(), turn & 1)) carry();
    }
};

struct NothingElse { __device__ __forceinline__ void operator()() {} };

// Sums of a part of k, as they are; two side by side are 8 bytes on an 8-byte boundary, for `lead` is even.
static __device__ __forceinline__ void store_partial(
    const float (&sums)[SUMS], float* partial, long long lead, Size size, int top, int left)
{
    int row = top + threadIdx.x % 32 / 4, column = left + threadIdx.x % 4 * 2;
    float* line = partial + row * lead + column;
    #pragma unroll
    for (int i = 0; i < SUMS; i += 16) {
        float2 held[8];  // loads that wait for memory together
        #pragma unroll
        for (int j = 0; j < 8; ++j) {
            int below = j % 2 * 8, right = (i + 2 * j) / 4 * 8;
            bool inside = row + below < size.m && column + right < lead;
            held[j] = ACCUMULATE && inside ? *reinterpret_cast<float2*>(line + below * lead + right) : make_float2(0, 0);
        }
        #pragma unroll
        for (int j = 0; j < 8; ++j) {
            int below = j % 2 * 8, right = (i + 2 * j) / 4 * 8;
            float2 pair = make_float2(sums[i + 2 * j], sums[i + 2 * j + 1]);
            if (ACCUMULATE) pair = make_float2(pair.x + held[j].x, pair.y + held[j].y);
            if (row + below < size.m && column + right < lead)
                *reinterpret_cast<float2*>(line + below * lead + right) = pair;
        }
    }
}

// Sums become what is stored; what P holds is added first when the product is accumulated.
static __device__ __forceinline__ void finish_sums(
    float (&sums)[SUMS], const Element* P, const Epilogue& epilogue, int m, int n, long long ldp, int top, int left)
{
    int lane = threadIdx.x % 32, row = top + lane / 4, column = left + lane % 4 * 2;
    #pragma unroll
    for (int i = 0; i < SUMS; i += 2) {  // two side by side
        int below = i / 2 % 2 * 8, right = i / 4 * 8;
        #pragma unroll
        for (int e = 0; e < 2; ++e) {
            bool inside = column + right + e < n;
            const Element* at = P + (row + below) * ldp + column + right + e;
            float held = ACCUMULATE && !SPLIT && row + below < m && inside ? widen(*at) : 0.0f;
            sums[i + e] = finish(sums[i + e], held, bias_of(epilogue, column + right + e, inside), epilogue);
        }
        asm volatile("" ::: "memory");  // no loads for later sums before this: registers are few
    }
}

// One thread of the warpgroup for each block of the cluster says that the stage has been used.
static __device__ __forceinline__ void release(Barrier* empty) {
    if (CLUSTER == 1) {
        if (threadIdx.x % 128 == 0) barrier_arrive(empty);
    } else if (threadIdx.x % 128 < CLUSTER)
        barrier_arrive_at(empty, threadIdx.x % 128);
}

// The first `skew` elements of each of a consumer's rows belong to the row before: 0 instead.
static __device__ __forceinline__ void cover_skew(char* tile_of_m, int skew, int group) {
    int row = threadIdx.x % 128;
    if (row < 64) {
        Element* first = reinterpret_cast<Element*>(tile_of_m + row * ROW_BYTES + row % 8 * 16);  // chunk 0, swizzled
        for (int i = 0; i < skew; ++i) first[i] = 0;
    }
    publish_shared();
    meet(1 + group, 128);
}

static __device__ __forceinline__ void consume(
    char* stages, Barrier* full, Barrier* empty, char* staging, Barrier* staged, Barrier* carried, int group,
    const TensorMap* map_p, Element* P, float* partials, Size size, const Skews& skews, long long ldp,
    const Epilogue& epilogue)
{
    char* boxes = staging + group * (TURNED ? TURNED_BYTES : BOXES * BOX_BYTES);
    int stage = 0, before = 0;
    unsigned parity = 0, empty_staging = 1;  // a fresh barrier counts as completed in the other parity
    Work work;
    for (int turn = 0; find_work(turn, size, skews, work); ++turn) {
        float sums[SUMS];
        #pragma unroll
        for (int i = 0; i < SUMS; ++i) sums[i] = 0.0f;

        for (int step = work.from; step < work.to; ++step) {
            barrier_wait(&full[stage], parity);
            char* tile_of_m = stages + stage * STAGE_BYTES + group * 8192;
            const char* tile_of_n = stages + stage * STAGE_BYTES + TILE_M_BYTES;
            unsigned long long of_m = tile_descriptor(tile_of_m, 8192, 1024);
            unsigned long long of_n = tile_descriptor(tile_of_n, 8192, 1024);
            if (SKEWED && step == 0 && skews.of[work.at]) cover_skew(tile_of_m, skews.of[work.at], group);
            wgmma_fence();
            #pragma unroll
            for (int i = 0; i < BLOCK_K / 16; ++i)
                wgmma(sums, of_m + i * (M_ALONG_K ? 2 : 128), of_n + i * (N_ALONG_K ? 2 : 128));
            wgmma_commit();
            wgmma_wait<1>();  // the step before is done: its stage may be filled again
            if (step > work.from) release(&empty[before]);
            before = stage;
            if (++stage == STAGES) {
                stage = 0;
                parity ^= 1;
            }
        }
        wgmma_wait<0>();
        if (work.to > work.from) release(&empty[before]);
        int top = work.top + group * 64, rows = top + threadIdx.x / 32 % 4 * 16;  // of this group, and of this warp
        Element* first = P + work.at * ldp;
        Element* tile = first + top * (CLASSES * ldp) + work.left;
        if (FINISHED) finish_sums(sums, first, epilogue, work.rows, size.n, CLASSES * ldp, rows, work.left);
        if (SPLIT)
            store_partial(sums, partials + (long long)work.split * size.m * ldp, ldp, size, rows, work.left);
        else if (TURNED)
            store_turned(sums, boxes, map_p, group, top, work.left);
        else if (BOXED)
            store_boxes(sums, boxes, map_p, group, top, work.left);
        else if (CARRIED) {
            Work after;
            barrier_wait(carried, empty_staging);
            empty_staging ^= 1;
            if (find_work(turn + 1, size, skews, after)) {
                stage_sums(sums, boxes, 0);
                __syncwarp();
                if (threadIdx.x % 32 == 0) barrier_arrive(staged);
            } else
                store_rows(sums, boxes, tile, CLASSES * ldp, work.rows - top, size.n - work.left);
        } else
            store_rows(sums, boxes, tile, CLASSES * ldp, work.rows - top, size.n - work.left);
    }
    if ((BOXED || TURNED) && threadIdx.x % 128 == 0) store_done();
}

// `ldp` is the lead of P, or of each of the partials.
extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(128 * (CONSUMERS + 1), 1) tensor_cores(
    const __grid_constant__ MapsOfM maps_m, const __grid_constant__ TensorMap map_n,
    const __grid_constant__ TensorMap map_p, Element* P, float* partials, Size size, const __grid_constant__ Skews skews,
    const __grid_constant__ ThinEdges edges, long long ldp, const __grid_constant__ Epilogue epilogue)
{
    extern __shared__ char memory[];
    char* stages = memory + (1024 - shared_address(memory) % 1024) % 1024;
    char* staging = stages + STAGES * STAGE_BYTES;
    Barrier* full = barriers_after(staging);
    Barrier* empty = full + STAGES;
    Barrier* staged = empty + STAGES;
    Barrier* carried = staged + 1;
    float (*shares)[32] = reinterpret_cast<float (*)[32]>(carried + 1);
    if (threadIdx.x == 0) {
        for (int at = 0; at < CLASSES; ++at) prefetch_map(&maps_m.of[at]);
        prefetch_map(&map_n);
        if (BOXED || TURNED) prefetch_map(&map_p);
        for (int s = 0; s < STAGES; ++s) {
            barrier_init(&full[s], 1);
            barrier_init(&empty[s], CONSUMERS * CLUSTER);
        }
        barrier_init(staged, 4 * CONSUMERS);
        barrier_init(carried, CARRIERS);
        barrier_init_done();
    }
    __syncthreads();
    if (CLUSTER > 1) cluster_meet();
    int group = threadIdx.x / 128;
    if (group == 0) {
        registers_give<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) {
            wait_for_kernel_before();
            produce(stages, full, empty, maps_m, &map_n, size, skews);
        } else if (CARRIED && threadIdx.x >= 32) {
            Carrier carrier = {staging, P, size, skews, ldp};
            carrier.start();
            if (EDGES) wait_for_kernel_before();
            if (EDGES) make_thin_edges<Carrier&>(edges, shares, P, size.m, size.n, ldp, epilogue, carrier);
            while (carrier.turn < carrier.turns) carrier.carry();
        } else if (EDGES && threadIdx.x >= 32) {
            wait_for_kernel_before();
            make_thin_edges(edges, shares, P, size.m, size.n, ldp, epilogue, NothingElse());
        }
    } else {
        registers_take<CONSUMER_REGISTERS>();
        consume(stages, full, empty, staging, staged, carried, group - 1, &map_p, P, partials, size, skews, ldp, epilogue);
    }
    // nobody leaves while a neighbour may still send it a tile or a word
    __syncwarp();
    if (CLUSTER > 1) cluster_meet();
}
