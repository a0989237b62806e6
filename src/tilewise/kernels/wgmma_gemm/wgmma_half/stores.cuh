// stores: stores of `wgmma_half` from registers to P, for any stride.
//
// Stores: sums pass through a staging of 64 x 64 boxes. Where rows of P start on 16 bytes the copy engine takes the boxes
//   (BOXED) while the next tile is multiplied. Else, for many waves, consumers leave a finished tile in the staging (staged
//   completes) and go on, and three carrier warps write it out in whole rows, whatever P's stride (CARRIED; carried
//   completes, and the staging may be used again); in the last wave, or for few waves, each warp writes its own rows.
//   With TRANSPOSED the operands have changed places, and boxes are transposed on their way into the staging.
//   With SPLIT, float32 sums of a part of k go to `partials`, and `gather` (gather.cu) adds them up. A P that keeps its
//   sums unrounded is one such part: with ACCUMULATE what it holds is added first.

// Sum i of a thread as it is stored, at its own place or, MIRRORED, at the one across the diagonal.
struct AsTheyAre {
    const float (&sums)[SUMS];

    template <bool MIRRORED>
    __device__ __forceinline__ float at(int i) const { return sums[i]; }
};

// The same with the epilogue; P points at the member, `top` and `left` are the warp's first row and column, of m.
struct Finished {
    const float (&sums)[SUMS];
    const Element* P;
    const Epilogue& epilogue;
    int m;
    long long ldp;
    int top, left;

    template <bool MIRRORED>
    __device__ __forceinline__ float at(int i) const {
        int lane = threadIdx.x % 32;
        int down = top + lane / 4 + i / 2 % 2 * 8, across = left + lane % 4 * 2 + i / 4 * 8 + i % 2;
        int row = MIRRORED ? across : down, column = MIRRORED ? down : across;
        bool inside = row < m && column < m;
        float held = ACCUMULATE && inside ? widen(P[row * ldp + column]) : 0.0f;
        return finish(sums[i], held, bias_of(epilogue, column, inside), epilogue);
    }
};

// Parts `first` and on of a warp's 16 rows into the boxes, as the kernel's dtype, swizzled so that the banks are spread.
template <class Sums>
static __device__ __forceinline__ void stage_sums(const Sums& sums, char* boxes, int first) {
    int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane / 4;
    #pragma unroll
    for (int j = first * 8; j < min(first + BOXES, PARTS) * 8; ++j) {
        char* at = boxes + (j / 8 - first) * BOX_BYTES + row * ROW_BYTES + (j % 8 ^ row % 8) * 16 + lane % 4 * 4;
        *reinterpret_cast<unsigned*>(at) = narrow_pair(sums.template at<false>(4 * j), sums.template at<false>(4 * j + 1));
        *reinterpret_cast<unsigned*>(at + 8 * ROW_BYTES) = narrow_pair(sums.template at<false>(4 * j + 2), sums.template at<false>(4 * j + 3));
    }
}

// The same transposed: columns of the parts are the boxes' rows, the consumer's 64 rows their columns. Eight by eight, in registers.
template <class Sums>
static __device__ __forceinline__ void stage_mirrored(const Sums& sums, char* boxes, int first) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    #pragma unroll
    for (int i = first * 32; i < min(first + BOXES, PARTS) * 32; i += 2) {
        int row = i / 4 * 8 + lane / 4 - first * 64, piece = warp * 2 + i / 2 % 2;
        char* at = boxes + row * ROW_BYTES + (piece ^ row % 8) * 16 + lane % 4 * 4;
        *reinterpret_cast<unsigned*>(at) = transposed_pair(narrow_pair(sums.template at<true>(i), sums.template at<true>(i + 1)));
    }
}

// The copy engine takes a consumer's 64 rows, MIRRORED its 64 columns, and leaves out what lies outside P.
template <bool MIRRORED, class Sums>
static __device__ __forceinline__ void store_boxes(
    const Sums& sums, char* boxes, const TensorMap* map_p, int group, int top, int left, Member member)
{
    bool leader = threadIdx.x % 128 == 0;
    #pragma unroll
    for (int first = 0; first < PARTS; first += BOXES) {
        if (leader) store_wait_read();
        barrier_sync(1 + group, 128);
        if (MIRRORED)
            stage_mirrored(sums, boxes, first);
        else
            stage_sums(sums, boxes, first);
        fence_async_shared();
        barrier_sync(1 + group, 128);
        if (leader) {
            for (int part = first; part < min(first + BOXES, PARTS); ++part) {
                int across = left + part * 64;
                store_member_box(
                    map_p, boxes + (part - first) * BOX_BYTES, MIRRORED ? top : across, MIRRORED ? across : top, member);
            }
            store_commit();
        }
    }
}

// Few rows of P are wide tiles' columns here: each warp's sums change rows and columns, eight by eight, in registers.
static __device__ __forceinline__ void store_transposed(
    const float (&sums)[SUMS], char* boxes, const TensorMap* map_p, int group, int top, int left, Member member)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    bool leader = threadIdx.x % 128 == 0;
    if (leader) store_wait_read();
    barrier_sync(1 + group, 128);
    #pragma unroll
    for (int i = 0; i < SUMS; i += 2) {
        int row = i / 4 * 8 + lane / 4, piece = warp * 2 + i / 2 % 2;
        char* at = boxes + row * ROW_BYTES + (piece ^ row % 8) * 16 + lane % 4 * 4;
        *reinterpret_cast<unsigned*>(at) = transposed_pair(narrow_pair(sums[i], sums[i + 1]));
    }
    fence_async_shared();
    barrier_sync(1 + group, 128);
    if (leader) {
        store_member_box(map_p, boxes, top, left, member);
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

// Rows `first`, first + step, ... of the staging to rows of any 2-byte addresses, `width` elements each. Between the 16-byte
// boundaries of P a lane stores eight elements, shifted out of two pieces; what is left at either end goes one by one. ACROSS: boxes of a
// row.
template <int ACROSS = BOXES>
static __device__ __forceinline__ void store_staged(
    const char* boxes, int first, int step, int end, Element* to, long long ldp, int width)
{
    const int lanes = ACROSS > 2 ? 32 : ACROSS * 8;  // to a row; a warp takes several rows at a time if they are short
    int i = threadIdx.x % 32 % lanes;
    for (int row = first + threadIdx.x % 32 / lanes * step; row < end; row += 32 / lanes * step) {
        const char* group = boxes + row / 64 * (ACROSS * BOX_BYTES);
        int within = row % 64;
        Element* line = to + row * ldp;
        int head = (8 - elements_after_boundary(line)) % 8, at = head + i * 8, tail = head + (width - head) / 8 * 8;
        if (at + 8 <= width) {
            uint4 low = *reinterpret_cast<const uint4*>(staged_piece(group, within, i));
            uint4 high = *reinterpret_cast<const uint4*>(staged_piece(group, within, min(i + 1, ACROSS * 8 - 1)));
            *reinterpret_cast<uint4*>(line + at) = shifted_by(low, high, head);
        }
        if (i < head && i < width) line[i] = staged_element(group, within, i);
        if (width > head && tail + i < width) line[tail + i] = staged_element(group, within, tail + i);
    }
}

// Each warp stores its own 16 rows, without a barrier. P points at the tile.
template <class Sums>
static __device__ __forceinline__ void store_rows(
    const Sums& sums, char* boxes, Element* P, long long ldp, int height, int width)
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

// A consumer's columns as rows of P, each warp 16 of every 64.
template <class Sums>
static __device__ __forceinline__ void store_columns(
    const Sums& sums, char* boxes, int group, Element* P, long long ldp, int m, int top, int left)
{
    int mine = threadIdx.x / 32 % 4 * 16;
    #pragma unroll
    for (int first = 0; first < PARTS; first += BOXES) {
        barrier_sync(1 + group, 128);
        stage_mirrored(sums, boxes, first);
        barrier_sync(1 + group, 128);
        for (int part = first; part < min(first + BOXES, PARTS); ++part) {
            int row = left + part * 64;
            store_staged<1>(boxes + (part - first) * BOX_BYTES, mine, 1, min(mine + 16, m - row), P + row * ldp + top, ldp, min(64, m - top));
        }
    }
    barrier_sync(1 + group, 128);
}

// Three carrier warps store finished tiles while the consumers multiply the next one; the last tile is stored by the consumers, except
// with dynamic scheduling. Thin edges, which they compute meanwhile, need registers, so only the tile's number is kept.
struct Carrier {
    char* staging; Element* P; const Size& size; const Misalignments& misalignments; long long ldp;
    int turn, turns;

    __device__ __forceinline__ Barrier* staged() const { return barriers_after(staging) + 2 * STAGES; }

    __device__ __forceinline__ void start() {
        Work after;
        turn = turns = 0;
        if (BY_ROWS) turns = 1 << 30;  // until no tile is drawn any more, the last one too
        else while (find_work(turns + 1, size, misalignments, after)) ++turns;
    }

    __device__ __forceinline__ void carry() {
        Work work;
        Size here = size;
        asm volatile("" : "+r"(here.m), "+r"(here.n));  // or its quotients would be kept in registers all the while
        if (!next_work(turn, staging, here, misalignments, work)) {
            turns = turn;
            return;
        }
        Element* to = P + offset_in_p(work.member, size.stack) + (work.top * (long long)CLASSES + work.at) * ldp + work.left;
        barrier_wait(staged(), turn & 1);
        store_staged(staging, threadIdx.x / 32 - 1, CARRIERS, min(BLOCK_M, work.rows - work.top), to, CLASSES * ldp,
                     min(TILE_COLS, size.n - work.left));
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(staged() + 1);
        ++turn;
    }

    __device__ __forceinline__ void operator()() {  // without waiting
        if (turn < turns && barrier_test(staged(), turn & 1)) carry();
    }
};

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
