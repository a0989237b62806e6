// stores: sums are staged in shared memory. Where a tile has whole contiguous rows of P, those of neighbouring warps are one run, staged
// with P's misalignment and stored by 16 bytes; else each warp stores row by row, by 4 bytes where P is aligned to 4. With split-K
// over a cluster, sums are floats in the memory of the stages, HELD to a row, and each block reduces its share of the tile by rank: the
// same bits in every run.

// Columns beyond `width` are skipped: where rows are one run, they are the next row.
static __device__ __forceinline__ void stage_sums(const Sums& sums, char* staged, int pitch, int width) {
    #pragma unroll
    for (int i = 0; i < FRAGMENTS_M; ++i)
        #pragma unroll
        for (int j = 0; j < FRAGMENTS_N; ++j)
            #pragma unroll
            for (int e = 0; e < EACH; ++e) {
                int column = column_of(j, e);
                if (column < width)
                    *reinterpret_cast<Result*>(staged + row_of(i, e) * pitch + column * SIZE) = narrow(sums[i][j][e]);
            }
}

#if SIZE == 2
// The same where rows are aligned to 4 bytes: two neighbouring columns are one word.
static __device__ __forceinline__ void stage_pairs(const Sums& sums, char* staged, int pitch, int width) {
    #pragma unroll
    for (int i = 0; i < FRAGMENTS_M; ++i)
        #pragma unroll
        for (int j = 0; j < FRAGMENTS_N; ++j)
            #pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int one = N_ALONG_K ? j : j / 2 * 2, next = N_ALONG_K ? j : one + 1;
                const int first = N_ALONG_K ? 2 * h : 2 * h + j % 2, second = N_ALONG_K ? first + 1 : first;
                int column = column_of(one, first);
                if (column < width)
                    put_pair(reinterpret_cast<Result*>(staged + row_of(i, first) * pitch + column * SIZE),
                             sums[i][one][first], sums[i][next][second]);
            }
}
#endif

// Stores 16 aligned bytes, or the part of them inside a run of `bytes`.
static __device__ __forceinline__ void store_piece(char* to, const char* staged, int at, int bytes) {
    if (at >= 0 && at + 16 <= bytes) {
        *reinterpret_cast<uint4*>(to + at) = *reinterpret_cast<const uint4*>(staged + at);
        return;
    }
    #pragma unroll 1
    for (int x = at < 0 ? 0 : at; x < at + 16 && x < bytes; x += SIZE)
        *reinterpret_cast<Result*>(to + x) = *reinterpret_cast<const Result*>(staged + x);
}

// Stores contiguous rows as one run, by `threads` threads, of which this is `number`; `staged` has P's misalignment.
static __device__ __forceinline__ void store_run(char* P, const char* staged, int bytes, int number, int threads) {
    #pragma unroll 1
    for (int at = number * 16 - behind_boundary(P); at < bytes; at += threads * 16) store_piece(P, staged, at, bytes);
}

// Rows of `bytes` each, in UNIT bytes a thread, as many rows at a time as a warp has threads for.
template <class Unit> static __device__ __forceinline__ void store_rows(
    char* P, const char* staged, long long lead, int pitch, int height, int bytes)
{
    const int lanes = WARP_N * SIZE / (int)sizeof(Unit);  // to a row
    static_assert(lanes <= 32, "a row in one go");
    int lane = threadIdx.x % 32, at = lane % lanes * (int)sizeof(Unit);
    #pragma unroll 4
    for (int row = lane / lanes; row < height; row += 32 / lanes) {
        char* to = P + row * lead + at;
        const char* from = staged + row * pitch + at;
        if (at + (int)sizeof(Unit) <= bytes)
            *reinterpret_cast<Unit*>(to) = *reinterpret_cast<const Unit*>(from);
        else if (at < bytes)
            *reinterpret_cast<Result*>(to) = *reinterpret_cast<const Result*>(from);
    }
}

// Barrier of the warps with the same rows.
static __device__ __forceinline__ void meet_beside(int band) {
    if (WARPS_N == 1)
        __syncwarp();
    else
        barrier_sync(1 + band, 32 * WARPS_N);
}

static __device__ __forceinline__ void stage_any(const Sums& sums, char* staged, int pitch, int width, bool even) {
#if SIZE == 2
    if (even) {
        stage_pairs(sums, staged, pitch, width);
        return;
    }
#endif
    stage_sums(sums, staged, pitch, width);
}

// Stores a warp's sums, staged in `memory`, `own` bytes of each warp. P points at the first row of the warps of this row of warps; this
// warp's columns begin at `column`; `height` rows and `width` columns of all these warps are inside P.
static __device__ __forceinline__ void store_sums(
    const Sums& sums, char* memory, int own, char* P, long long lead, int pitch, int column, int height, int width)
{
    int warp = threadIdx.x / 32, band = warp / WARPS_N;
    bool even = lead % 4 == 0 && (unsigned)(unsigned long long)P % 4 == 0;
    if (pitch == lead) {
        char* staged = memory + band * WARPS_N * own + behind_boundary(P);
        stage_any(sums, staged + column * SIZE, pitch, width - column, even);
        meet_beside(band);
        store_run(P, staged, (height - 1) * pitch + width * SIZE, threadIdx.x % (32 * WARPS_N), 32 * WARPS_N);
        meet_beside(band);
    } else if (column < width) {
        char* staged = memory + warp * own;
        int bytes = min(WARP_N, width - column) * SIZE;
        P += column * SIZE;
        stage_any(sums, staged, pitch, WARP_N, even);
        __syncwarp();
        if (even)
            store_rows<unsigned>(P, staged, lead, pitch, height, bytes);
        else
            store_rows<Result>(P, staged, lead, pitch, height, bytes);
        __syncwarp();
    }
}

#define CONSUMER_THREADS (32 * WARPS_M * WARPS_N)
#define HELD (BLOCK_N + 4)  // rows aligned to 16 bytes
#define MOST_CUT 8          // blocks of a cluster

// Stores four neighbouring sums, of which `count` are inside P.
static __device__ __forceinline__ void store_four(char* to, float4 sum, int count) {
    float made[4] = {sum.x, sum.y, sum.z, sum.w};
    Result* P = reinterpret_cast<Result*>(to);
#if SIZE == 2
    if (count >= 4 && (unsigned)(unsigned long long)to % 4 == 0) {
        put_pair(P, made[0], made[1]);
        put_pair(P + 2, made[2], made[3]);
        return;
    }
#endif
    #pragma unroll
    for (int e = 0; e < 4; ++e)
        if (e < count) P[e] = narrow(made[e]);
}

// A warp's sums from `row` and `column` of the tile on.
static __device__ __forceinline__ void hold_sums(const Sums& sums, char* stages, int row, int column) {
    float* held = reinterpret_cast<float*>(stages) + row * HELD + column;
    barrier_sync(1 + WARPS_M, CONSUMER_THREADS);  // all stages have been read
    #pragma unroll
    for (int i = 0; i < FRAGMENTS_M; ++i)
        #pragma unroll
        for (int j = 0; j < FRAGMENTS_N; ++j)
            #pragma unroll
            for (int e = 0; e < EACH; ++e) held[row_of(i, e) * HELD + column_of(j, e)] = sums[i][j][e];
}

// P points at the tile, of which `height` x `width` are inside P.
static __device__ __forceinline__ void add_up_and_store(const char* stages, int parts, char* P, long long lead, int height, int width) {
    const int quads = BLOCK_N / 4;
    int rank = (int)(blockIdx.x % parts);
    cluster_sync();
    add_up_fours<MOST_CUT, 1>(reinterpret_cast<const float*>(stages), parts, quads, HELD,
                              rank * CONSUMER_THREADS + (int)threadIdx.x, height * quads, parts * CONSUMER_THREADS, width,
                              [=](int r, int c, float4 sum) { store_four(P + r * lead + c * SIZE, sum, width - c); });
}
