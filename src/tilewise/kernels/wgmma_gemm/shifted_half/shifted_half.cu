// shifted_half: loader warps bring lines that start anywhere and shift them into place, warpgroups multiply them by wgmma: for
// stacks and groups whose lines start on no 16 bytes, where a pass that realigns them first would cost more than the product.
//
// Layout: a stage holds 64 of k of a tile's rows of M and columns of N, in 128-byte lines, swizzled as wgmma reads them. An
//   operand whose k lies side by side has a line for each row (column); one whose rows (columns) lie side by side has a line
//   for each k, 64 rows (columns) to a part of 8,192 bytes. Every loader thread brings the same 16 bytes of every STEP-th
//   line: these all lie equally far behind a boundary, whatever the lead. It loads the two aligned words its elements lie in,
//   AHEAD chunks before it puts them, shifted together, into the stage.
// Edges: a word is read only if it holds an element of its own line; words that stick out of all the operand go by elements.
//   Elements behind k are 0 in both operands; lines and columns outside of them are anything, for those of P are not stored.
// Groups: where BY_ROWS, M's rows are those of groups, one after the other, each with a matrix of N of its own; `walk` has the
//   tiles (walk_groups.cu). A tile ends with its group, and rows behind the last group are 0.
// Barrier: full[s] completes when all loader warps have put their part of stage s; empty[s] when every consumer has used it.
// Stores: stages are used up, and take the sums: each warp's own 16 rows leave in 16 bytes between P's own boundaries.

template <int count> static __device__ __forceinline__ void registers_of() {
    if (count > LAUNCH_REGISTERS)
        registers_take<count>();
    else
        registers_give<count>();
}

// One operand of one member, as a loader thread sees it: WIDTH of its rows (columns) from `first` on.
template <int WIDTH, bool ALONG_K> struct Side {
    static constexpr int COUNT = WIDTH / STEP;  // chunks of a thread in a stage
    static constexpr int LAST = ALONG_K ? (COUNT - 1) * STEP : 64 - STEP;  // line of a thread's last one, behind its first

    const Element* word;  // of its first chunk in the stage that is put
    const Element* begin;  // of all members, and their end
    const Element* end;
    long long lead;
    int shift;  // elements that its chunks start behind a boundary
    int needed;  // elements that a line must have from a chunk on for its second word to be needed: never where shift is 0
    int left;  // rows (columns) of the operand from this thread's first one on

    __device__ __forceinline__ void start(const Element* matrix, long long lines_apart, int first, int extent) {
        int line = threadIdx.x / 8, at = threadIdx.x % 8 * 8;
        lead = lines_apart;
        const Element* chunk = matrix + (ALONG_K ? (first + line) * lead + at : line * lead + first + at);
        shift = elements_after_boundary(chunk);
        word = chunk - shift;
        needed = shift ? 8 - shift : 0x7fffffff;
        left = extent - first - (ALONG_K ? line : at);
    }

    __device__ __forceinline__ long long stage_apart() const { return ALONG_K ? 64 : 64 * lead; }
    __device__ __forceinline__ void advance() { word += stage_apart(); }

    // Whether words of the stage that `from` begins and that has `deep` of k left may stick out of the operand.
    __device__ __forceinline__ bool at_an_end(const Element* from, int deep) const {
        int line = threadIdx.x / 8, lines = ALONG_K ? min(left - 1, LAST) : min(deep - line - 1, LAST);
        return from < begin || from + max(lines, 0) * lead + (ALONG_K ? 16 : min(left, WIDTH - 64) + 16) > end;
    }

    // Whether the i-th chunk of a stage lies in a line of the operand, which has `deep` of k left.
    __device__ __forceinline__ bool has(int i, int deep) const {
        int line = threadIdx.x / 8;
        return ALONG_K ? i * STEP < left : line + i * STEP % 64 < deep;
    }

    // Elements of its line from the i-th chunk on.
    __device__ __forceinline__ int length_of(int i, int deep) const {
        return ALONG_K ? deep - (int)threadIdx.x % 8 * 8 : left - i * STEP / 64 * 64;
    }

    __device__ __forceinline__ const Element* word_of(int i, const Element* from) const {
        return from + (ALONG_K ? i * STEP : i * STEP % 64) * lead + (ALONG_K ? 0 : i * STEP / 64 * 64);
    }

    // The words of the i-th chunk of the stage that `from` begins; those of no line stay what they were.
    __device__ __forceinline__ void bring(int i, const Element* from, int deep, uint4& low, uint4& high) const {
        int length = length_of(i, deep);
        bool there = has(i, deep);
        const Element* at = word_of(i, from);
        if (there & (length > 0)) low = __ldg(reinterpret_cast<const uint4*>(at));
        if (there & (length > needed)) high = __ldg(reinterpret_cast<const uint4*>(at + 8));
    }

    __device__ __forceinline__ uint4* place(int i, char* tile) const {
        int line = threadIdx.x / 8, piece = threadIdx.x % 8;
        return reinterpret_cast<uint4*>(tile + (line + i * STEP) * 128 + ((piece ^ line % 8) << 4));
    }

    // Into a tile that has `deep` of k left.
    __device__ __forceinline__ void put(int i, char* tile, int deep, uint4 low, uint4 high) const {
        uint4 made = shifted_by(low, high, shift);
        if (deep < 64) made = up_to(made, ALONG_K ? length_of(i, deep) : has(i, deep) ? 8 : 0);
        *place(i, tile) = made;
    }

    // A thread whose words may stick out puts its chunks element by element.
    __device__ __forceinline__ void put_elements(char* tile, int deep) const {
        #pragma unroll 1
        for (int i = 0; i < COUNT; ++i) {
            int length = has(i, deep) ? length_of(i, deep) : 0;
            const Element* at = word_of(i, word) + shift;
            Element* to = reinterpret_cast<Element*>(place(i, tile));
            #pragma unroll 1
            for (int e = 0; e < 8; ++e) to[e] = e < length ? at[e] : (Element)0;
        }
    }

    // The first `count` elements, and zeros.
    static __device__ __forceinline__ uint4 up_to(uint4 word, int count) {
        unsigned of[4] = {word.x, word.y, word.z, word.w};
        #pragma unroll
        for (int j = 0; j < 4; ++j) of[j] = count >= 2 * j + 2 ? of[j] : count == 2 * j + 1 ? of[j] & 0xffffu : 0;
        return make_uint4(of[0], of[1], of[2], of[3]);
    }
};

typedef Side<BLOCK_M, M_ALONG_K> SideM;
typedef Side<BLOCK_N, N_ALONG_K> SideN;
#define CHUNKS (SideM::COUNT + SideN::COUNT)
static_assert(CHUNKS % AHEAD == 0, "a chunk has the same registers in every stage");

static __device__ __forceinline__ void load_stages(
    char* stages, Barrier* full, Barrier* empty, SideM& of_m, SideN& of_n, int k)
{
    uint4 low[AHEAD] = {}, high[AHEAD] = {};
    bool edge_m = of_m.at_an_end(of_m.word, k), edge_n = of_n.at_an_end(of_n.word, k);
    int deep_m = edge_m ? 0 : k, deep_n = edge_n ? 0 : k;  // words are brought of so much k
    #pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
        if (i < SideM::COUNT)
            of_m.bring(i, of_m.word, deep_m, low[i], high[i]);
        else
            of_n.bring(i - SideM::COUNT, of_n.word, deep_n, low[i], high[i]);
    }
    int stage = 0;
    unsigned parity = 1;  // a fresh barrier counts as just completed in the other parity: nothing to wait for
    for (int deep = k; deep > 0; deep -= 64) {
        char* tile_of_m = stages + stage * STAGE_BYTES;
        char* tile_of_n = tile_of_m + BLOCK_M * 128;
        const Element* next_m = of_m.word + of_m.stage_apart();
        const Element* next_n = of_n.word + of_n.stage_apart();
        bool after_m = of_m.at_an_end(next_m, deep - 64), after_n = of_n.at_an_end(next_n, deep - 64);
        int left_m = after_m ? 0 : deep - 64, left_n = after_n ? 0 : deep - 64;
        barrier_wait(&empty[stage], parity);
        #pragma unroll
        for (int i = 0; i < CHUNKS; ++i) {
            if (i < SideM::COUNT)
                of_m.put(i, tile_of_m, deep, low[i % AHEAD], high[i % AHEAD]);
            else
                of_n.put(i - SideM::COUNT, tile_of_n, deep, low[i % AHEAD], high[i % AHEAD]);
            const int next = (i + AHEAD) % CHUNKS;
            const bool later = i + AHEAD >= CHUNKS;  // of the stage behind this one
            if (next < SideM::COUNT)
                of_m.bring(next, later ? next_m : of_m.word, later ? left_m : deep_m, low[i % AHEAD], high[i % AHEAD]);
            else
                of_n.bring(next - SideM::COUNT, later ? next_n : of_n.word, later ? left_n : deep_n, low[i % AHEAD],
                           high[i % AHEAD]);
        }
        if (edge_m) of_m.put_elements(tile_of_m, deep);
        if (edge_n) of_n.put_elements(tile_of_n, deep);
        publish_shared();
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(&full[stage]);
        of_m.advance();
        of_n.advance();
        edge_m = after_m;
        edge_n = after_n;
        deep_m = left_m;
        deep_n = left_n;
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
}

// All rows of this consumer are another group's, or none: its stages pass by.
static __device__ __forceinline__ void pass_stages(Barrier* full, Barrier* empty, int k) {
    int stage = 0;
    unsigned parity = 0;
    for (int deep = k; deep > 0; deep -= 64) {
        barrier_wait(&full[stage], parity);
        if (threadIdx.x % 128 == 0) barrier_arrive(&empty[stage]);
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
}

// Sums of a consumer's 64 rows.
static __device__ __forceinline__ void multiply_stages(
    float (&sums)[SUMS], char* stages, Barrier* full, Barrier* empty, int group, int k)
{
    int stage = 0, before = 0;
    unsigned parity = 0;
    for (int deep = k; deep > 0; deep -= 64) {
        barrier_wait(&full[stage], parity);
        char* tile = stages + stage * STAGE_BYTES;
        unsigned long long of_m = tile_descriptor(tile + group * 8192, 8192, 1024);
        unsigned long long of_n = tile_descriptor(tile + BLOCK_M * 128, 8192, 1024);
        wgmma_fence();
        #pragma unroll
        for (int i = 0; i < 4; ++i) wgmma(sums, of_m + i * (M_ALONG_K ? 2 : 128), of_n + i * (N_ALONG_K ? 2 : 128));
        wgmma_commit();
        wgmma_wait<1>();  // the step before is done: its stage may be filled again
        if (deep < k && threadIdx.x % 128 == 0) barrier_arrive(&empty[before]);
        before = stage;
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
    wgmma_wait<0>();
}

// A warp's 16 rows of sums into `staged`, and from there to P, which points at the warp's first row of the tile.
static __device__ __forceinline__ void store_sums(
    const float (&sums)[SUMS], char* staged, Element* P, long long ldp, int height, int width)
{
    int lane = threadIdx.x % 32;
    #pragma unroll
    for (int j = 0; j < BLOCK_N / 8; ++j) {
        char* at = staged + lane / 4 * PITCH + j * 16 + lane % 4 * 4;
        *reinterpret_cast<unsigned*>(at) = narrow_pair(sums[4 * j], sums[4 * j + 1]);
        *reinterpret_cast<unsigned*>(at + 8 * PITCH) = narrow_pair(sums[4 * j + 2], sums[4 * j + 3]);
    }
    __syncwarp();
    const int lanes = BLOCK_N / 8;  // to a row
    for (int row = lane / lanes; row < min(16, height); row += 32 / lanes)
        store_pieces(P + row * ldp, reinterpret_cast<const Element*>(staged + row * PITCH), lane % lanes, width);
}

// `low` and `high`: where all members of M and of N begin and end, in elements from M and N.
struct Reach { long long low, high; };

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) shifted_half(
    const Element* __restrict__ M, const Element* __restrict__ N, Element* P, Epilogue, int m, int k, int n,
    long long ldm, long long ldn, long long ldp, Reach reach_m, Reach reach_n, int tiles, int tiles_n,
    long long step_M, long long step_N, long long step_P, const int* walk)
{
    extern __shared__ char memory[];
    char* stages = memory + (1024 - shared_address(memory) % 1024) % 1024;
    Barrier* full = reinterpret_cast<Barrier*>(stages + STAGES * STAGE_BYTES);
    Barrier* empty = full + STAGES;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            barrier_init(&full[s], 4 * LOADERS);
            barrier_init(&empty[s], CONSUMERS);
        }
        barrier_init_done();
    }
    __syncthreads();
    wait_for_kernel_before();
    let_next_kernel_start();
#if BY_ROWS
    int tile = blockIdx.x / tiles_n, left = blockIdx.x % tiles_n * BLOCK_N;
    if (tile >= walk[0]) return;
    int member = walk[4 * (1 + tile)], top = walk[4 * (1 + tile) + 1];
    m = walk[4 * (1 + tile) + 2];
    if (member < 0) member = k = 0;
#else
    int member = blockIdx.x / tiles, tile = blockIdx.x - member * tiles;
    int top = tile / tiles_n * BLOCK_M, left = tile % tiles_n * BLOCK_N;
#endif
    int group = (int)threadIdx.x / 128 - LOADERS;  // of consumers
    if (group < 0) {
        registers_of<LOADER_REGISTERS>();
        SideM of_m;
        SideN of_n;
        of_m.begin = M + reach_m.low;
        of_m.end = M + reach_m.high;
        of_n.begin = N + reach_n.low;
        of_n.end = N + reach_n.high;
        of_m.start(M + member * step_M, ldm, top, m);
        of_n.start(N + member * step_N, ldn, left, n);
        if (k > 0) load_stages(stages, full, empty, of_m, of_n, k);
    } else {
        registers_of<CONSUMER_REGISTERS>();
        float sums[SUMS];
        #pragma unroll
        for (int i = 0; i < SUMS; ++i) sums[i] = 0.0f;
        if (top + group * 64 < m)
            multiply_stages(sums, stages, full, empty, group, k);
        else
            pass_stages(full, empty, k);
        meet(1, 128 * CONSUMERS);  // all stages are used up: their memory takes the sums
        int row = group * 64 + threadIdx.x / 32 % 4 * 16;
        Element* target = P + member * step_P + (top + row) * ldp + left;
        if (top + row < m) store_sums(sums, stages + row * PITCH, target, ldp, m - top - row, min(BLOCK_N, n - left));
    }
}
