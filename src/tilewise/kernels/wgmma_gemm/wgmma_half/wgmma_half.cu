// wgmma_half: one producer thread streams tiles by TMA, warpgroups multiply them by wgmma, blocks walk tiles of P.
//
// Layout: a stage holds a BLOCK_M x 64 tile of M and a 64 x BLOCK_N tile of N in 128-byte rows, swizzled by the copy.
//   An operand whose k lies side by side comes as one box {64 k, rows}; one whose rows or columns lie side by side comes
//   as boxes {64, 64 k}, and wgmma reads it transposed. Consumer warpgroup g owns rows 64 g .. 64 g + 63 of the tile.
// Row classes: rows of M that do not start on 16 bytes cannot be copied, but every CLASSES-th one starts equally far from
//   such a boundary. A tile then takes rows of one class: its map begins up to 7 elements early (the misalignment), N begins as
//   many rows early, which the copy fills with 0, and the consumers put 0 over what lies before their rows.
// Lines of N that do not start on 16 bytes: see alignment_classes.cuh. Narrow tiles: of groups of rows, whose weights' columns seldom fill
//   whole tiles, the last tile of a row is multiplied by half where its left half has them all.
// Clusters: CLUSTER blocks have tiles above one another and the same tile of N: each multicasts a share of it. BESIDE such columns are
//   side by side, and blocks of a row share the tile of M likewise.
// Edges: copies fill with 0 outside M and N; stores of P are predicated.
// Barrier: full[s] completes when both tiles of stage s have arrived; empty[s] when every consumer in the cluster
//   that reads this block's copies has read them.
// Stores: see stores.cuh; where k is cut over a cluster, cut.cuh. Stacks: see batch.cuh. Groups of rows: see tile_scheduler.cuh; consumers whose 64 rows of a tile are another
//   group's leave them out, and nobody brings them.
// Serial split-K (SERIAL): a block makes all parts of a tile, each from zero, with the bits of parts that have blocks of their own.
// Symmetric: with SYMMETRIC, tiles are those of triangle.cuh, and one above the diagonal leaves once more, transposed. Bias and held
//   values are those of each place, so `finish` is applied as sums are staged.
// Epilogue: sums pass through `finish` (epilogue.cuh) in the registers of their consumer, or in `gather` where k is cut.
// Thin edges: with EDGES, `size` ends before a few last rows and columns of P, which the carriers make in the background
//   while nothing waits to be carried (thin_edges.cuh).

// `parts`: boxes across.
static __device__ __forceinline__ void load_n(
    char* to, const TensorMap* map, Barrier* full, int start, int left, Member of, int parts)
{
    if (FEW_ACROSS) {
        for (int part = 0; part < parts; ++part) load_box(to + part * 1024, map, full, part * 8, start, of);
        return;
    }
    if (CLUSTER == 1) {
        if (N_ALONG_K)
            load_box(to, map, full, start, left, of);
        else
            for (int part = 0; part < (NARROWED ? parts : PARTS); ++part)
                load_box(to + part * 8192, map, full, left + part * 64, start, of);
        return;
    }
    int rank = place_down(), column = ((1 << CLUSTER) - 1) << place_across() * CLUSTER;
    if (N_ALONG_K) {
        int share = BLOCK_N / CLUSTER;
        multicast_box(to + rank * share * ROW_BYTES, map, full, start, left + rank * share, of, column);
    } else if (PARTS % CLUSTER == 0) {
        for (int part = rank * PARTS / CLUSTER; part < (rank + 1) * PARTS / CLUSTER; ++part)
            multicast_box(to + part * 8192, map, full, left + part * 64, start, of, column);
    } else {
        int share = BLOCK_K / CLUSTER;
        for (int part = 0; part < PARTS; ++part)
            multicast_box(to + part * 8192 + rank * share * ROW_BYTES, map, full, left + part * 64, start + rank * share,
                         of, column);
    }
}

// A tile of M, or a share of it for every block of the cluster's row: some of its rows where k lies along them, else of k.
static __device__ __forceinline__ void load_m(char* to, const TensorMap* map, Barrier* full, int start, int top, Member of) {
    if (BESIDE == 1) {
        if (M_ALONG_K)
            load_box(to, map, full, start, top, of);
        else
            for (int part = 0; part < BLOCK_M / 64; ++part) load_box(to + part * 8192, map, full, top + part * 64, start, of);
        return;
    }
    int rank = place_across(), row = 0;
    for (int i = 0; i < BESIDE; ++i) row |= 1 << (place_down() + i * CLUSTER);
    if (M_ALONG_K) {
        int share = BLOCK_M / BESIDE;
        multicast_box(to + rank * share * ROW_BYTES, map, full, start, top + rank * share, of, row);
    } else {
        int share = BLOCK_K / BESIDE;
        for (int part = 0; part < BLOCK_M / 64; ++part)
            multicast_box(to + part * 8192 + rank * share * ROW_BYTES, map, full, top + part * 64, start + rank * share, of, row);
    }
}

static __device__ __forceinline__ void produce(
    char* stages, Barrier* full, Barrier* empty, char* staging, const MapsOfM& maps_m, const MapsOfN& maps_n, Size size,
    const Misalignments& misalignments)
{
    int stage = 0;
    unsigned parity = 1;  // a new barrier counts as completed in the other parity: no wait
    Work work;
    for (int turn = 0; fetch_work(turn, staging, size, misalignments, work); ++turn) {
        int busy = BY_ROWS ? min(CONSUMERS, (work.rows - work.top + 63) / 64) : CONSUMERS;  // consumers with rows of their own
        const TensorMap* map_m = &maps_m.of[work.at];
        int strips = FEW_ACROSS ? (size.n + 7) / 8 : 0, parts = NARROWED && is_narrow(work, size) ? (PARTS + 1) / 2 : PARTS;
        Member of_m = member_of_m(work.member, size.stack), of_n = member_of_n(work.member, size.stack);
#if ROLLED
        #pragma unroll 1
#endif
        for (int step = work.from; step < work.to; ++step) {
            int start = work.origin + step * BLOCK_K;
            barrier_wait(&empty[stage], parity);
            barrier_expect(&full[stage], BY_ROWS      ? busy * 64 * ROW_BYTES + (NARROWED ? parts * 8192 : TILE_N_BYTES)
                                         : FEW_ACROSS ? TILE_M_BYTES + strips * 1024
                                                      : ARRIVING_BYTES);
            char* tile_of_m = stages + stage * STAGE_BYTES;
            Phase phase = phase_of(step, start, work, size, misalignments);
            if (BY_ROWS)
                for (int part = 0; part < busy; ++part)
                    load_box(tile_of_m + part * 8192, map_m, &full[stage], phase.of_m, work.top + part * 64, of_m);
            else
                load_m(tile_of_m, map_m, &full[stage], phase.of_m, work.top, of_m);
            load_n(tile_of_m + TILE_M_BYTES, &maps_n.of[phase.at], &full[stage], phase.of_n, work.left,
                    N_BY_CLASSES ? Member{0, 0} : of_n, FEW_ACROSS ? strips : parts);
            NEXT_STAGE(stage, parity, STAGES)
        }
    }
}

// One thread of the warpgroup arrives for each block that multicasts to this one, those of its row and its column: the stage has been
// read.
static __device__ __forceinline__ void release(Barrier* empty) {
    int of = threadIdx.x % 128;
    if (TOGETHER == 1) {
        if (of == 0) barrier_arrive(empty);
    } else if (of < TOGETHER && (CLUSTER == 1 || BESIDE == 1 || of % CLUSTER == place_down() || of / CLUSTER == place_across()))
        barrier_arrive_at(empty, of);
}

// Clears the first `misalignment` elements of each of a consumer's rows, which belong to the row before.
static __device__ __forceinline__ void clear_misaligned(char* tile_of_m, int misalignment, int group) {
    int row = threadIdx.x % 128;
    if (row < 64) {
        Element* first = reinterpret_cast<Element*>(tile_of_m + row * ROW_BYTES + row % 8 * 16);  // chunk 0, swizzled
        for (int i = 0; i < misalignment; ++i) first[i] = 0;
    }
    fence_async_shared();
    barrier_sync(1 + group, 128);
}

// Clears rows of k beyond the first `count` of a stage, which belong to the next group, in both operands. Every consumer clears all of N,
// because it does not wait for the others.
static __device__ __forceinline__ void cover_rest(char* tile_of_m, char* tile_of_n, int count, int group) {
    const int words = ROW_BYTES / 16;
    for (int i = count * words + threadIdx.x % 128; i < BLOCK_K * words; i += 128) {
        if (!N_BY_CLASSES) reinterpret_cast<uint4*>(tile_of_m)[i] = make_uint4(0, 0, 0, 0);  // where k lies along it, it has zeros
        #pragma unroll
        for (int part = 0; part < PARTS; ++part)
            reinterpret_cast<uint4*>(tile_of_n + part * 8192)[i] = make_uint4(0, 0, 0, 0);
    }
    fence_async_shared();
    barrier_sync(1 + group, 128);
}

// The phases of a tile, one after the other; NARROW: of one whose columns are in its left half.
template <bool NARROW>
static __device__ __forceinline__ void multiply_phases(
    float (&sums)[SUMS], char* stages, Barrier* full, Barrier* empty, int group, const Work& work, const Size& size,
    const Misalignments& misalignments, int& stage, int& before, unsigned& parity)
{
#if ROLLED
    #pragma unroll 1
#endif
    for (int step = work.from; step < work.to; ++step) {
        if (N_BY_CLASSES && step > 0 && begins_class(step, misalignments)) {
            wgmma_wait<0>();
            move_sums(sums, misalignments);
        }
        barrier_wait(&full[stage], parity);
        char* tile_of_m = stages + stage * STAGE_BYTES + group * 8192;
        char* tile_of_n = stages + stage * STAGE_BYTES + TILE_M_BYTES;
        unsigned long long of_m = tile_descriptor(tile_of_m, 8192, 1024);
        unsigned long long of_n = FEW_ACROSS ? strip_descriptor(tile_of_n) : tile_descriptor(tile_of_n, 8192, 1024);
        if (MISALIGNED && step == 0 && misalignments.of[work.at]) clear_misaligned(tile_of_m, misalignments.of[work.at], group);
        if (BY_K && (step + 1) * BLOCK_K > work.depth) cover_rest(tile_of_m, tile_of_n, work.depth - step * BLOCK_K, group);
        if (N_BY_CLASSES) {
            int lines = phase_of(step, 0, work, size, misalignments).lines;
            if (lines < BLOCK_K) cover_rest(tile_of_m, tile_of_n, lines, group);
        }
        wgmma_fence();
        #pragma unroll
        for (int i = 0; i < BLOCK_K / 16; ++i)
            wgmma_of<NARROW>(sums, of_m + i * (M_ALONG_K ? 2 : 128), of_n + i * (N_ALONG_K ? 2 : FEW_ACROSS ? 16 : 128));
        wgmma_commit();
        wgmma_wait<1>();  // the step before is done: its stage may be filled again
        if (step > work.from) release(&empty[before]);
        before = stage;
        NEXT_STAGE(stage, parity, STAGES)
    }
}

static __device__ __forceinline__ void consume(
    char* stages, Barrier* full, Barrier* empty, char* staging, Barrier* staged, Barrier* carried, int group,
    const TensorMap* map_p, Element* P, float* partials, Size size, const Misalignments& misalignments, long long ldp,
    const Epilogue& epilogue)
{
    char* boxes = staging + group * (TRANSPOSED ? TRANSPOSED_BYTES : BOXES * BOX_BYTES);
    int stage = 0, before = 0;
    unsigned parity = 0, empty_staging = 1;  // a new barrier counts as completed in the other parity
    Work work;
    for (int turn = 0; next_work(turn, staging, size, misalignments, work); ++turn) {
        if (BY_ROWS && work.top + group * 64 >= work.rows) {  // this consumer has no rows of the group: it only releases the stages
            for (int step = work.from; step < work.to; ++step) {
                barrier_wait(&full[stage], parity);
                release(&empty[stage]);
                NEXT_STAGE(stage, parity, STAGES)
            }
            if (CARRIED) {
                barrier_wait(carried, empty_staging);
                empty_staging ^= 1;
                if (threadIdx.x % 32 == 0) barrier_arrive(staged);
            }
            continue;
        }
        float sums[SUMS];
        #pragma unroll
        for (int i = 0; i < SUMS; ++i) {
            sums[i] = 0.0f;
            if (CUT || NARROWED || (BY_ROWS && CARRIED)) fence_operand(sums[i]);  // zeros behind the fence would serialise wgmma (C7515)
        }

#if SERIAL
        #pragma unroll 1
        for (int at = 0; at < size.splits; ++at) {
            Work part = work;
            part.from = (int)((long long)work.to * at / size.splits);
            part.to = (int)((long long)work.to * (at + 1) / size.splits);
            float of_part[SUMS];
            #pragma unroll
            for (int i = 0; i < SUMS; ++i) {
                of_part[i] = 0.0f;
                fence_operand(of_part[i]);
            }
            multiply_phases<false>(of_part, stages, full, empty, group, part, size, misalignments, stage, before, parity);
            wgmma_wait<0>();
            if (part.to > part.from) release(&empty[before]);
            #pragma unroll
            for (int i = 0; i < SUMS; ++i) sums[i] = at ? sums[i] + of_part[i] : of_part[i];
        }
#else
        if (NARROWED && is_narrow(work, size))
            multiply_phases<NARROWED>(sums, stages, full, empty, group, work, size, misalignments, stage, before, parity);
        else
            multiply_phases<false>(sums, stages, full, empty, group, work, size, misalignments, stage, before, parity);
        wgmma_wait<0>();
        if (work.to > work.from) release(&empty[before]);
#endif
        int top = work.top + group * 64, rows = top + threadIdx.x / 32 % 4 * 16;  // of this group, and of this warp
        long long apart = offset_in_p(work.member, size.stack);
        Element* first = P + apart + work.at * ldp;
        Element* tile = first + top * (CLASSES * ldp) + work.left;
        if (FINISHED && !CUT && !SYMMETRIC) finish_sums(sums, first, epilogue, work.rows, size.n, CLASSES * ldp, rows, work.left);
        if (CUT) {
            int down = size.m - work.top, across = size.n - work.left;
            CutTile cell = FEW_ROWS ? CutTile{P + apart + work.left * ldp + work.top, ldp, work.top, across, down}
                                    : CutTile{P + apart + work.top * ldp + work.left, ldp, work.left, down, across};
            store_cut(sums, reinterpret_cast<float*>(stages), size.splits, group, cell, epilogue);
        } else if (SPLIT)
            store_partial(sums, partials + apart + (long long)work.split * size.m * ldp, ldp, size, rows, work.left);
        else if (TRANSPOSED)
            store_transposed(sums, boxes, map_p, group, top, work.left, work.member);
        else if (BOXED && BY_ROWS && top + 64 > work.rows) {  // the rows behind these belong to another group
            if (threadIdx.x % 128 == 0) store_wait_read();
            barrier_sync(1 + group, 128);
            store_rows(AsTheyAre{sums}, boxes, tile, ldp, work.rows - top, size.n - work.left);
        } else if (SYMMETRIC) {
            Finished made = {sums, first, epilogue, size.m, ldp, rows, work.left};
            if (BOXED) {
                store_boxes<false>(made, boxes, map_p, group, top, work.left, work.member);
                if (work.mirrored) store_boxes<true>(made, boxes, map_p, group, top, work.left, work.member);
            } else {
                store_rows(made, boxes, tile, ldp, size.m - top, min(BLOCK_N, size.m - work.left));
                if (work.mirrored) store_columns(made, boxes, group, first, ldp, size.m, top, work.left);
            }
        } else if (BOXED)
            store_boxes<false>(AsTheyAre{sums}, boxes, map_p, group, top, work.left, work.member);
        else if (CARRIED) {
            Work after;
            barrier_wait(carried, empty_staging);
            empty_staging ^= 1;
            if (BY_ROWS || find_work(turn + 1, size, misalignments, after)) {
                stage_sums(AsTheyAre{sums}, boxes, 0);
                __syncwarp();
                if (threadIdx.x % 32 == 0) barrier_arrive(staged);
            } else
                store_rows(AsTheyAre{sums}, boxes, tile, CLASSES * ldp, work.rows - top, min(TILE_COLS, size.n - work.left));
        } else
            store_rows(AsTheyAre{sums}, boxes, tile, CLASSES * ldp, work.rows - top, min(TILE_COLS, size.n - work.left));
    }
    if ((BOXED || TRANSPOSED) && threadIdx.x % 128 == 0) store_wait_all();
}

// `ldp` is the lead of P, or of each of the partials.
extern "C" __global__ void CLUSTERED __launch_bounds__(128 * (CONSUMERS + 1), RESIDENT) wgmma_half(
    const __grid_constant__ MapsOfM maps_m, const __grid_constant__ MapsOfN maps_n,
    const __grid_constant__ TensorMap map_p, Element* P, float* partials, Size size, const __grid_constant__ Misalignments misalignments,
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
        for (int at = 0; at < MAPS_OF_N; ++at) prefetch_map(&maps_n.of[at]);
        if (BOXED || TRANSPOSED) prefetch_map(&map_p);
        init_stages(full, empty, STAGES, 1, CONSUMERS * (CLUSTER + BESIDE - 1));
        barrier_init(staged, 4 * CONSUMERS);
        barrier_init(carried, CARRIERS);
        for (int s = 0; BY_ROWS && s < SLOTS; ++s) {
            barrier_init(&queue_after(staging).published[s], 1);
            barrier_init(&queue_after(staging).taken[s], READERS);
        }
        barrier_init_done();
    }
    __syncthreads();
    if (TOGETHER > 1) cluster_sync();
    launch_dependent_grids();
    int group = threadIdx.x / 128;
    if (group == 0) {
        setmaxnreg_dec<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) {
            wait_on_dependent_grids();
            produce(stages, full, empty, staging, maps_m, maps_n, size, misalignments);
        } else if (CARRIED && threadIdx.x >= 32) {
            if (BY_ROWS) wait_on_dependent_grids();
            Carrier carrier = {staging, P, size, misalignments, ldp};
            carrier.start();
            if (EDGES) {
                wait_on_dependent_grids();
                make_thin_edges<Carrier&>(edges, shares, P, size.m, size.n, ldp, epilogue, carrier);
            }
            while (carrier.turn < carrier.turns) carrier.carry();
        }
    } else {
        setmaxnreg_inc<CONSUMER_REGISTERS>();
        wait_on_dependent_grids();
        consume(stages, full, empty, staging, staged, carried, group - 1, &map_p, P, partials, size, misalignments, ldp, epilogue);
    }
    __syncwarp();
    if (CUT && size.splits > 1 && group == 0) cluster_sync();  // the consumers' barrier before the reduction
    // no block exits while another may still write to its shared memory, or read its sums
    if (TOGETHER > 1 || (CUT && size.splits > 1)) cluster_sync();
}
