// read_once: few rows or columns of P. The long operand streams once, in its own layout, through shared memory to wgmma's left operand in
// registers; the few lines of the other are contiguous along k in shared memory.
//
// A tile of P is LONG lines of the long operand by WIDTH of the few: N transposed by M transposed where P has few rows, so that
//   sums are of the transposed tile (`transposed`), else M by N. Consumer warpgroup g owns lines 64 g .. 64 g + 63.
// Lines of the long operand are contiguous along k (ALONG) or across k: see register_lines.cuh.
// The few lines: a stage holds 32 of k of each, 128 bytes swizzled; with PLANES 3 three bfloat16 planes of them, as split.cu lays
//   them out, the k of each eight in the order that a thread has them.
// Sums: with PLANES 3 words are split in registers, and six products of a stage are summed from the smallest on, as bf16x6.cu does.
// k: cut over the gridDim.y clusters of a tile and over the blocks of each. A cluster's blocks add up in the order of their ranks
//   and store; clusters store to matrices of their own, which `add_parts` adds up.
// Edges: copies fill with 0 outside both operands; stores of P are predicated.
// Barrier: full[s] completes when stage s has arrived, empty[s] when every consumer warp has read it.
// Safety: with PLANES 3 a block whose planes may overflow or underflow computes its sums on plain cores (GATHERED), or sets `verdict`, and
//   the fallback computes P.
// Few lines: prepared in memory and copied by one thread, or loaded by 128 (gather.cuh). Stores: stores.cuh.

static __device__ __forceinline__ int padded(int lines) { return (lines + 31) / 32 * 32; }

static __device__ __forceinline__ void produce(
    char* stages, Barrier* full, Barrier* empty, const TensorMap* map_few, const MapsOfLong& maps, const Product& p, Part part,
    int first, int top)
{
    int stage = 0, lines = min(WIDTH, padded(p.few) - top);
    unsigned parity = 1, few_bytes = PLANES == 1 ? FEW_BYTES : PLANES * lines * 64;
    for (int step = part.from; step < part.to; ++step) {
        barrier_wait(&empty[stage], parity);
        barrier_expect(&full[stage], few_bytes + LONG_BYTES);
        char* to = stages + stage * STAGE_BYTES;
        #pragma unroll
        for (int at = 0; at < CLASSES; ++at)
            copy_box(to + FEW_BYTES + at * BOX_BYTES, &maps.of[at], &full[stage], ALONG ? step * BLOCK_K : first,
                     ALONG ? first / 4 : step * BLOCK_K / CLASSES);
        if (PLANES == 1)
            copy_box(to, map_few, &full[stage], step * BLOCK_K, top);
        else
            for (int at = 0; at < PLANES; ++at)
                copy_bytes(to + at * PLANE_BYTES, p.planes + ((long long)(step * PLANES + at) * padded(p.few) + top) * 64,
                           lines * 64, &full[stage]);
        NEXT_STAGE(stage, parity, STAGES)
    }
}

static __device__ __forceinline__ void release(Barrier* empty) {
    if (threadIdx.x % 32 == 0) barrier_arrive(empty);
}

#if PLANES == 1

static __device__ __forceinline__ void multiply(
    float (&sums)[SUMS], char* stages, Barrier* full, Barrier* empty, const Product& p, Part part)
{
    int stage = 0, before = 0;
    unsigned parity = 0, words[2][16];  // double-buffered
    const char* first = first_word(stages + FEW_BYTES, p.misalignments, 0);
    for (int step = part.from; step < part.to;)
        #pragma unroll
        for (int half = 0; half < 2; ++half)
            if (step < part.to) {
                barrier_wait(&full[stage], parity);
                load_words(words[half], first + stage * STAGE_BYTES);
                unsigned long long few = tile_descriptor(stages + stage * STAGE_BYTES, 0, 1024);
                wgmma_fence();
                #pragma unroll
                for (int i = 0; i < 4; ++i)
                    wgmma(sums, words[half][4 * i], words[half][4 * i + 1], words[half][4 * i + 2], words[half][4 * i + 3],
                          few + 2 * i, 1);
                wgmma_commit();
                wgmma_wait<1>();  // the step before is done: its stage may be filled again
                if (step > part.from) release(&empty[before]);
                before = stage;
                NEXT_STAGE(stage, parity, STAGES)
                ++step;
            }
    wgmma_wait<0>();
    fence_operand(sums);
}

#else

// The next part of a thread's words: two of k, k and k + 4, of a line are one register; what is left of them stays.
static __device__ __forceinline__ void take_part(unsigned (&part)[8], float (&left)[16]) {
    #pragma unroll
    for (int i = 0; i < 8; ++i) {  // of an eight of k, and line
        int low = i / 2 * 4 + i % 2, high = low + 2;
        part[i] = pair_of(left[low], left[high]);
        left[low] -= __uint_as_float(part[i] << 16);
        left[high] -= __uint_as_float(part[i] & 0xffff0000u);
    }
}

// One part of the words by one plane of the few lines.
static __device__ __forceinline__ void multiply_plane(
    float (&sums)[SUMS], const unsigned (&part)[8], unsigned long long few, int plane, int onto)
{
    #pragma unroll
    for (int i = 0; i < 2; ++i)
        wgmma(sums, part[4 * i], part[4 * i + 1], part[4 * i + 2], part[4 * i + 3], few + plane * (PLANE_BYTES / 16) + 2 * i,
              onto | i);
}

// Returns the largest magnitude met, as bits.
static __device__ __forceinline__ unsigned multiply(
    float (&sums)[SUMS], char* stages, Barrier* full, Barrier* empty, const Product& p, Part part)
{
    int stage = 0;
    unsigned parity = 0, largest = 0;
    const char* first = first_word(stages + FEW_BYTES, p.misalignments, 0);
    float parts[SUMS];
    #pragma unroll
    for (int i = 0; i < SUMS; ++i) parts[i] = 0.0f;
    for (int step = part.from; step < part.to; ++step) {
        unsigned words[16], large[8], middle[8], small[8];
        float left[16];
        barrier_wait(&full[stage], parity);
        load_words(words, first + stage * STAGE_BYTES);
        #pragma unroll
        for (int i = 0; i < 16; ++i) {
            largest = max(largest, words[i] & 0x7fffffffu);
            left[i] = __uint_as_float(words[i]);
        }
        take_part(large, left);
        take_part(middle, left);
        take_part(small, left);
        unsigned long long few = plane_descriptor(stages + stage * STAGE_BYTES);
        wgmma_fence();
        multiply_plane(parts, large, few, 2, 0);
        multiply_plane(parts, small, few, 0, 1);
        multiply_plane(parts, middle, few, 1, 1);
        multiply_plane(parts, large, few, 1, 1);
        multiply_plane(parts, middle, few, 0, 1);
        multiply_plane(parts, large, few, 0, 1);
        wgmma_commit();
        wgmma_wait<0>();
        release(&empty[stage]);
        fence_operand(parts);
        #pragma unroll
        for (int i = 0; i < SUMS; ++i) sums[i] += parts[i];
        NEXT_STAGE(stage, parity, STAGES)
    }
    return largest;
}

#endif

#if GATHERED && PLANES > 1
// This thread's sums over a part of k on plain cores, from the original operands.
static __device__ __forceinline__ void multiply_plainly(float (&sums)[SUMS], const Product& p, Part part, int first, int top) {
    int line = first + line_of_thread(), column = top + threadIdx.x % 4 * 2;
    #pragma unroll
    for (int i = 0; i < SUMS; ++i) sums[i] = 0.0f;
    #pragma unroll 1
    for (int k = part.from * BLOCK_K; k < min(part.to * BLOCK_K, p.k); ++k) {
        float of_long[2];
        #pragma unroll
        for (int on = 0; on < 2; ++on) {
            int at = line + on * LINES_ON;
            of_long[on] = at < p.length ? p.long_at[at * p.long_stride + k * p.long_k] : 0.0f;
        }
        #pragma unroll
        for (int i = 0; i < SUMS; ++i) {
            int at = column + i / 4 * 8 + i % 2;
            float of_few = at < p.few ? p.few_at[at * p.few_stride + k * p.few_k] : 0.0f;
            sums[i] = fmaf(of_long[i / 2 % 2], of_few, sums[i]);
        }
    }
}
#endif

extern "C" __global__ void __launch_bounds__(128 * CONSUMERS + PRODUCERS, RESIDENT) read_once(
    const __grid_constant__ TensorMap map_few, const __grid_constant__ MapsOfLong maps, const __grid_constant__ Product p,
    int blocks)
{
    extern __shared__ char memory[];
    char* stages = memory + (1024 - shared_address(memory) % 1024) % 1024;
    Barrier* full = reinterpret_cast<Barrier*>(stages + STAGES * STAGE_BYTES);
    Barrier* empty = full + STAGES;
    const int threads = 128 * CONSUMERS;
    bool producer = threadIdx.x >= threads;
    if (threadIdx.x == threads) {
        if (PLANES == 1 && !GATHERED) prefetch_map(&map_few);
        for (int at = 0; at < CLASSES; ++at) prefetch_map(&maps.of[at]);
        init_stages(full, empty, STAGES, GATHERED ? 1 + PRODUCERS / 32 : 1, 4 * CONSUMERS);
        barrier_init_done();
    }
    __syncthreads();
    launch_dependent_grids();
    wait_on_dependent_grids();
    int tile = blockIdx.x / blocks, first = tile * LONG, top = blockIdx.z * WIDTH;
    int steps = (p.k + BLOCK_K - 1) / BLOCK_K, all = blocks * gridDim.y, at = blockIdx.y * blocks + blockIdx.x % blocks;
    Part part = {(int)((long long)steps * at / all), (int)((long long)steps * (at + 1) / all)};
    float* held = reinterpret_cast<float*>(stages);
    float* P = p.P + blockIdx.y * p.plane + (p.transposed ? top * p.ldp + first : first * p.ldp + top);
    Target target = {P, p.ldp, min(WIDTH, p.few - top), min(LONG, p.length - first), p.onto};
    int quads = LONG / 4, pitch = LONG + 4;
    if (!p.transposed) {
        target = {P, p.ldp, target.width, target.height, p.onto};
        quads = WIDTH / 4;
        pitch = WIDTH + 4;
    }
#if GATHERED && PLANES > 1
    __shared__ unsigned most[2];  // the largest magnitudes of the few lines and of the others
    if (threadIdx.x < 2) most[threadIdx.x] = 0;
    __syncthreads();
#endif
    if (producer) {
#if GATHERED
        setmaxnreg_dec<PRODUCER_REGISTERS>();
        unsigned largest = produce_gathered(stages, full, empty, maps, p, part, first, top);
#if PLANES > 1
        largest = __reduce_max_sync(~0u, largest);
        if (threadIdx.x % 32 == 0) atomicMax(&most[0], largest);
        barrier_sync(2, threads + PRODUCERS);
#endif
#else
        if (threadIdx.x == threads) produce(stages, full, empty, &map_few, maps, p, part, first, top);
#endif
        __syncwarp();
        if (blocks > 1) cluster_sync();  // the consumers' barrier before the reduction
    } else {
#if GATHERED
        setmaxnreg_inc<CONSUMER_REGISTERS>();
#endif
        float sums[SUMS];
        clear(sums);
#if PLANES == 1
        multiply(sums, stages, full, empty, p, part);
#else
        unsigned largest = __reduce_max_sync(~0u, multiply(sums, stages, full, empty, p, part));
#if GATHERED
        if (threadIdx.x % 32 == 0) atomicMax(&most[1], largest);
        barrier_sync(2, threads + PRODUCERS);
        if (!safe(most[1], most[0], p.log_k)) multiply_plainly(sums, p, part, first, top);
#else
        unsigned of_few = 0;
        for (int i = threadIdx.x % 32; i < p.met; i += 32) of_few = max(of_few, p.largest[i]);
        of_few = __reduce_max_sync(~0u, of_few);
        if (threadIdx.x % 32 == 0 && !safe(largest, of_few, p.log_k)) *p.verdict = 1;
#endif
#endif
        barrier_sync(1, threads);
        hold(sums, held, p.transposed);
        if (blocks == 1) {
            barrier_sync(1, threads);
            add_up_share<1, 4>(held, blocks, quads, pitch, target);
        } else {
            cluster_sync();
            if (blocks == 2)
                add_up_share<2, 4>(held, blocks, quads, pitch, target);
            else if (blocks <= 4)
                add_up_share<4, 2>(held, blocks, quads, pitch, target);
            else
                add_up_share<MOST_BLOCKS, 1>(held, blocks, quads, pitch, target);
        }
    }
    // no block exits while another may still read its sums
    if (blocks > 1) cluster_sync();
}
