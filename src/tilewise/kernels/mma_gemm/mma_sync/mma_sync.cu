// mma_sync: tiles are copied asynchronously to shared memory, warps multiply them on tensor cores by mma.sync.
//
// Layout: a stage holds BLOCK_M rows of M and BLOCK_N columns of N, PHASE_BYTES (128 or 64) of k of each. An operand whose
//   k is contiguous has a line of PHASE_BYTES for each row (column); one whose rows (columns) are contiguous a line for each k.
//   Chunks of 16 bytes are swizzled within their line, against bank conflicts.
// Copies: cp.async, or, with REGISTER_STAGED (Turing), through registers: loads at the start of a phase, stores at its end.
// Fragments: a warp's lane is (g, t) = (lane / 4, lane % 4). `ldmatrix` reads 4 bytes of each line, transposed where lines of 2-byte
//   elements are across k. Words of 4 and 8 bytes are read one by one. Bytes across k: with BYTE_PAIRS `ldmatrix` transposes
//   pairs of them and two byte permutations separate the pairs, so that a fragment's rows (columns) are two apart; else four are
//   read at a time, four apart. `row_of` and `column_of` implement both orders.
// Edges: outside M and N tiles are filled with 0; stores of P are predicated.
// Barrier: one a phase, before its last step. After it the tiles of the next phase are complete, and those of the phase before this one
//   (without ROLLING also those of this phase) have been read and may be overwritten.
// Stores: sums are staged in shared memory, 16 rows of a warp at a time, and stored by whole rows, for any stride of P. gridDim.z
//   parts of k make one matrix of sums each, and `add_parts` adds them up in order.
// Symmetric: with SYMMETRIC, tiles are those of triangle.cuh, and one above the diagonal is stored once more, transposed: 16 columns of
//   a warp are staged as rows. Bias and held values are those of the second place.

// Double-buffered fragments. ROLLING: one of M is read while the one before is multiplied, which takes few registers; else all
// fragments of a step are read during the step before.
struct Fragments {
    Word M[2][ROLLING ? 1 : MATS][4];
    Word N[2][COLS][2];
};

// Waits for this thread's copies of the next tiles.
static __device__ __forceinline__ void finish_copies(const OperandM& from_m, const OperandN& from_n) {
#if REGISTER_STAGED
    from_m.store();
    from_n.store();
#endif
    wait_groups<AHEAD - 1>();
}

#if ROUNDED == BEHIND
// Rounds the fragments read for row i of M, and a part of N's, one row of products after they were read.
static __device__ __forceinline__ void round_read(Fragments& held, int buffer, int i) {
    static_assert(!ROLLING, "all of a step's fragments are there");
    #pragma unroll
    for (int w = 0; w < 4; ++w) round_word(held.M[buffer][i][w]);
    #pragma unroll
    for (int j = 2 * (COLS * i / MATS / 2); j < 2 * (COLS * (i + 1) / MATS / 2); ++j)
        #pragma unroll
        for (int w = 0; w < 2; ++w) round_word(held.N[buffer][j][w]);
}
#endif

// One phase: its products, and the copies of a phase AHEAD of it.
template <bool CHECKED>
static __device__ __forceinline__ void run_phase(
    Sum (&sums)[MATS][COLS][4], Fragments& held, OperandM& from_m, OperandN& from_n, const Element* M, const Element* N,
    int inside_m, int inside_n, int left, unsigned here, unsigned next, unsigned filling, unsigned lane_m, unsigned lane_n)
{
    const int tile_n = BLOCK_M * PHASE_BYTES;
#if PROMOTED
    Sum parts[MATS][COLS][4];  // of this phase: tensor cores keep few bits of long sums
#else
    Sum (&parts)[MATS][COLS][4] = sums;
#endif
    #pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        if (step == STEPS - 1) {
            close_group();
            finish_copies(from_m, from_n);
            __syncthreads();
        } else {
            from_m.copy_part<CHECKED>(filling, M, inside_m, left, step, STEPS - 1);
            from_n.copy_part<CHECKED>(filling + tile_n, N, inside_n, left, step, STEPS - 1);
        }
        const int now = step % 2, then = (step + 1) % 2, after = (step + 1) % STEPS;
        unsigned stage = step + 1 < STEPS ? here : next;  // of the step after this one
        #pragma unroll
        for (int i = 0; i < MATS; ++i) {
            if (ROLLING) {
                if (i + 1 < MATS)
                    read_rows(held.M[(step * MATS + i + 1) % 2], here, lane_m, step, i + 1);
                else
                    read_rows(held.M[(step * MATS + i + 1) % 2], stage, lane_m, after, 0);
            } else
                read_rows(held.M[then] + i % (ROLLING ? 1 : MATS), stage, lane_m, after, i);
            read_columns(held.N[then], stage + tile_n, lane_n, after, COLS * i / MATS, COLS * (i + 1) / MATS);
#if ROUNDED == BEHIND
            round_read(held, i ? then : now, i ? i - 1 : MATS - 1);
#endif
#if PROMOTED
            #pragma unroll
            for (int e = 0; step == 0 && e < COLS * 4; ++e) parts[i][e / 4][e % 4] = 0;
#endif
            #pragma unroll
            for (int j = 0; j < COLS; ++j)
                multiply(parts[i][j], ROLLING ? held.M[(step * MATS + i) % 2][0] : held.M[now][i % (ROLLING ? 1 : MATS)],
                         held.N[now][j]);
#if PROMOTED
            if (step == STEPS - 1) {
                #pragma unroll
                for (int row = i - 1; row < (i + 1 < MATS ? i : MATS); ++row)  // the row before; at the end the last two
                    #pragma unroll
                    for (int e = 0; row >= 0 && e < COLS * 4; ++e) sums[row][e / 4][e % 4] += parts[row][e / 4][e % 4];
            }
#endif
        }
    }
    from_m.next_phase();
    from_n.next_phase();
}

// The warp's row of row `slot` (0 to 15) of fragment i, and its column of column `c` (0 to 7) of fragment j.
static __device__ __forceinline__ int row_of(int i, int slot) {
    if constexpr (BYTE_PAIRS && TRANSPOSED_M) return i * 16 + slot % 8 * 2 + slot / 8;
    return TRANSPOSED_M ? i / 2 * 32 + slot % 8 * 4 + i % 2 * 2 + slot / 8 : i * 16 + slot;
}

static __device__ __forceinline__ int column_of(int j, int c) {
    if constexpr (BYTE_PAIRS && TRANSPOSED_N) return j / 2 * 16 + c * 2 + j % 2;
    return TRANSPOSED_N ? j / 4 * 32 + c * 4 + j % 4 : j * 8 + c;
}

// Stores 16 staged rows of WIDTH elements; P points at the warp's first element, with `height` rows and `width` columns from there.
// `row_in`: a staged row's row of the warp.
template <int WIDTH, class RowIn>
static __device__ __forceinline__ void store_rows(
    const unsigned char* staged, RowIn row_in, Result* P, long long ldp, int height, int width)
{
    int lane = threadIdx.x % 32;
#if STORE_BYTES >= 4
    const int each = STORE_BYTES / (int)sizeof(Result), pieces = WIDTH / each;  // elements of a store, stores of a row
    const int rows = pieces < 32 ? 32 / pieces : 1;
    #pragma unroll
    for (int first = 0; first < 16; first += rows)
        #pragma unroll
        for (int piece = lane % pieces; piece < pieces; piece += 32) {
            int slot = first + lane / pieces % rows, row = row_in(slot), column = piece * each;
            if (row >= height) continue;
            const unsigned char* at = staged + slot * PITCH_OF(WIDTH) + piece * STORE_BYTES;
            Result* to = P + row * ldp + column;
            if (column + each <= width)
                *reinterpret_cast<Stored*>(to) = *reinterpret_cast<const Stored*>(at);
            else
                for (int e = 0; column + e < width; ++e) to[e] = reinterpret_cast<const Result*>(at)[e];
        }
#else
    const int each = 4 / (int)sizeof(Result);  // rows of any alignment: 4 bytes between P's 4-byte boundaries
    if (width >= WIDTH && row_in(15) < height) {  // all 16: without branches
        #pragma unroll
        for (int slot = 0; slot < 16; ++slot) {
            Result* to = P + row_in(slot) * ldp;
            const Result* at = reinterpret_cast<const Result*>(staged + slot * PITCH_OF(WIDTH));
            int start = (int)(-reinterpret_cast<unsigned long long>(to) / sizeof(Result) % each);
            #pragma unroll
            for (int first = 0; first < WIDTH; first += 32 * each) {
                int column = first + lane * each + start;
                if (column + each > WIDTH) continue;
                unsigned word = 0;
                #pragma unroll
                for (int e = 0; e < each; ++e) word |= bits_of(at[column + e]) << e * 8 * (int)sizeof(Result);
                *reinterpret_cast<unsigned*>(to + column) = word;
            }
        }
        Result* to = P + row_in(lane % 16) * ldp;  // elements before a row's first boundary, and after its last
        const Result* at = reinterpret_cast<const Result*>(staged + lane % 16 * PITCH_OF(WIDTH));
        int start = (int)(-reinterpret_cast<unsigned long long>(to) / sizeof(Result) % each);
        int from = lane < 16 ? 0 : WIDTH - (WIDTH - start) % each, until = lane < 16 ? start : WIDTH;
        for (int column = from; column < until; ++column) to[column] = at[column];
        return;
    }
    for (int slot = 0; slot < 16; ++slot) {
        int row = row_in(slot);
        if (row >= height) continue;
        Result* to = P + row * ldp;
        const Result* at = reinterpret_cast<const Result*>(staged + slot * PITCH_OF(WIDTH));
        int misalignment = (int)(reinterpret_cast<unsigned long long>(to) / sizeof(Result) % each);
        for (int column = lane * each - misalignment; column < min(width, WIDTH); column += 32 * each) {
            if (column >= 0 && column + each <= min(width, WIDTH)) {
                unsigned word = 0;
                #pragma unroll
                for (int e = 0; e < each; ++e) word |= bits_of(at[column + e]) << e * 8 * (int)sizeof(Result);
                *reinterpret_cast<unsigned*>(to + column) = word;
            } else
                for (int e = max(column, 0); e < min(column + each, min(width, WIDTH)); ++e) to[e] = at[e];
        }
    }
#endif
}

// `ldp`: leading dimension of P, or of the matrices of sums; a part of k has `phases_each` phases.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) mma_sync(
    const Element* __restrict__ M, const Element* __restrict__ N, Result* P, Epilogue epilogue, int m, int k, int n,
    long long ldm, long long ldn, long long ldp, int phases_each)
{
    wait_on_dependent_grids();
    launch_dependent_grids();
#if SYMMETRIC
    UpperTile tile = upper_tile(blockIdx.x, m);
    int top = tile.top, across = tile.left;
    if (top >= m || across >= n) return;
#else  // SYMMETRIC
    // blocks are numbered column by column in bands of GROUP rows of tiles, for reuse in L2
    int tiles_m = (m + BLOCK_M - 1) / BLOCK_M, tiles_n = (n + BLOCK_N - 1) / BLOCK_N;
    int band = blockIdx.x / (GROUP * tiles_n), within = blockIdx.x % (GROUP * tiles_n);
    int high = min(GROUP, tiles_m - band * GROUP);
    int top = (band * GROUP + within % high) * BLOCK_M, across = within / high * BLOCK_N;
#endif  // SYMMETRIC

    int warp = threadIdx.x / 32, warp_row = warp / WARPS_N * WARP_M, warp_column = warp % WARPS_N * WARP_N;
    bool whole = top + BLOCK_M <= m && across + BLOCK_N <= n;
    unsigned each = (unsigned)phases_each * BLOCK_K;  // of k; rounded up it may exceed 2^31
    int begin = blockIdx.z * each, stop = (int)min((unsigned)k, begin + each);

    unsigned stages = (unsigned)__cvta_generic_to_shared(memory);
    unsigned lane_m = lane_offset<OperandM::LINE_BYTES, M_ALONG_K, OperandM::BY_MATRIX, false>(warp_row);
    unsigned lane_n = lane_offset<OperandN::LINE_BYTES, N_ALONG_K, OperandN::BY_MATRIX, true>(warp_column);
    OperandM from_m(M, ldm, top, begin);
    OperandN from_n(N, ldn, across, begin);
    int left = stop - begin;  // of k whose copies are not issued yet

    Sum sums[MATS][COLS][4];
    #pragma unroll
    for (int i = 0; i < MATS * COLS * 4; ++i) sums[i / (COLS * 4)][i / 4 % COLS][i % 4] = 0;

    #pragma unroll
    for (int s = 0; s < AHEAD; ++s) {
        from_m.copy_part<true>(stages + s * STAGE_BYTES, M, m - top, left, 0, 1);
        from_n.copy_part<true>(stages + s * STAGE_BYTES + BLOCK_M * PHASE_BYTES, N, n - across, left, 0, 1);
        close_group();
        from_m.next_phase();
        from_n.next_phase();
        left -= BLOCK_K;
    }
    finish_copies(from_m, from_n);
    __syncthreads();

    unsigned here = stages, filling = stages + AHEAD * STAGE_BYTES, end = stages + STAGES * STAGE_BYTES;
    Fragments held;
    #pragma unroll
    for (int i = 0; i < (ROLLING ? 1 : MATS); ++i) read_rows(held.M[0] + i, here, lane_m, 0, i);
    read_columns(held.N[0], here + BLOCK_M * PHASE_BYTES, lane_n, 0, 0, COLS);
#if ROUNDED == BEHIND
    #pragma unroll
    for (int i = 0; i + 1 < MATS; ++i) round_read(held, 0, i);
#endif
    int phases = (stop - begin + BLOCK_K - 1) / BLOCK_K;
#if PEELED  // phases without bounds checks in a loop of their own, which has no branch: fragments are then read between products
    for (; whole && left >= BLOCK_K; --phases, left -= BLOCK_K) {
        unsigned next = here + STAGE_BYTES == end ? stages : here + STAGE_BYTES;
        run_phase<false>(sums, held, from_m, from_n, M, N, 0, 0, 0, here, next, filling, lane_m, lane_n);
        here = next;
        filling = filling + STAGE_BYTES == end ? stages : filling + STAGE_BYTES;
    }
#endif
    for (; phases > 0; --phases, left -= BLOCK_K) {
        unsigned next = here + STAGE_BYTES == end ? stages : here + STAGE_BYTES;
        if (!PEELED && whole && left >= BLOCK_K)
            run_phase<false>(sums, held, from_m, from_n, M, N, 0, 0, 0, here, next, filling, lane_m, lane_n);
        else
            run_phase<true>(
                sums, held, from_m, from_n, M, N, m - top, n - across, left, here, next, filling, lane_m, lane_n);
        here = next;
        filling = filling + STAGE_BYTES == end ? stages : filling + STAGE_BYTES;
    }
    wait_groups<0>();
    __syncthreads();  // all tiles have been read: their memory takes the sums
    if (top + warp_row >= m || across + warp_column >= n) return;

    int lane = threadIdx.x % 32, row = top + warp_row, column = across + warp_column;
    unsigned char* staged = memory + warp * STAGED_BYTES;
    Result* target = P + blockIdx.z * (long long)m * ldp + row * ldp + column;
    #pragma unroll
    for (int i = 0; i < MATS; ++i) {
        __syncwarp();
        #pragma unroll
        for (int j = 0; j < COLS; ++j)
            #pragma unroll
            for (int half = 0; half < 2; ++half) {
                int slot = lane / 4 + half * 8;
                Sum made[2];
                #pragma unroll
                for (int e = 0; e < 2; ++e) {
                    int at = column_of(j, lane % 4 * 2 + e), r = row_of(i, slot);
                    bool inside = row + r < m && column + at < n;
                    Sum held = ACCUMULATE && inside ? widen(target[r * ldp + at]) : (Sum)0;
                    Sum bias = bias_of(epilogue, column + at, column + at < n);
                    made[e] = finish(sums[i][j][half * 2 + e], held, bias, epilogue);
                }
                Result* to = reinterpret_cast<Result*>(staged + slot * PITCH_OF(WARP_N));
                if (TRANSPOSED_N) {
                    to[column_of(j, lane % 4 * 2)] = narrow(made[0]);
                    to[column_of(j, lane % 4 * 2 + 1)] = narrow(made[1]);
                } else
                    put_pair(to + column_of(j, lane % 4 * 2), made[0], made[1]);
            }
        __syncwarp();
        store_rows<WARP_N>(staged, [=](int slot) { return row_of(i, slot); }, target, ldp, m - row, n - column);
    }
#if SYMMETRIC
    if (!tile.mirrored) return;
    target = P + blockIdx.z * (long long)m * ldp + column * ldp + row;
    #pragma unroll
    for (int pair = 0; pair < COLS; pair += 2) {
        __syncwarp();
        #pragma unroll
        for (int at = 0; at < MATS * 8; ++at) {
            int i = at / 8, j = at / 4 % 2, half = at / 2 % 2, c = lane % 4 * 2 + at % 2;
            int r = column_of(pair + j, c), across_r = row_of(i, lane / 4 + half * 8);
            bool inside = column + r < n && row + across_r < m;
            Sum held = ACCUMULATE && inside ? widen(target[r * ldp + across_r]) : (Sum)0;
            Sum made = finish(sums[i][pair + j][half * 2 + at % 2], held, bias_of(epilogue, row + across_r, inside), epilogue);
            reinterpret_cast<Result*>(staged + (j * 8 + c) * PITCH_OF(WARP_M))[across_r] = narrow(made);
        }
        __syncwarp();
        store_rows<WARP_M>(staged, [=](int slot) { return column_of(pair + slot / 8, slot % 8); }, target, ldp, n - column, m - row);
    }
#endif  // SYMMETRIC
}
