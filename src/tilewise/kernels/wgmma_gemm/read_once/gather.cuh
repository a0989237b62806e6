// gather: producer threads that load the few lines (GATHERED), of any strides, a stage ahead, round or split them in registers, and store
// them in wgmma's layout. One of them issues the copies of the long operand.
//
// Barrier: full[s] completes when the boxes of stage s have arrived and every producer warp has stored its share.

#if GATHERED

// What a producer gathers of the few lines in a stage, PAIRS times: neighbours in memory are neighbours among threads. Where k
// lies side by side every eighth line, at the same k; else the same line, at k that lie SPREAD(i) on.
#define ACROSS_EACH (PRODUCERS / WIDTH)  // pairs of k of a line that are gathered at once
#define SPREAD(i) ((i) * ACROSS_EACH / 4 * 8 + (i) * ACROSS_EACH % 4)

struct Gathering {
    const float* at;  // of this thread's first pair in a stage
    int line, k;      // which it is of
    int line_each, k_each;  // elements from one to the next, as far as they are of other lines, or of other k
    int high;               // and from k to k + 4
};

static __device__ __forceinline__ Gathering gathering(const Product& p, int step, int top) {
    int thread = (int)threadIdx.x - 128 * CONSUMERS, pair = p.few_k == 1 ? thread % 16 : thread / WIDTH;
    Gathering made;
    made.line = p.few_k == 1 ? thread / 16 : thread % WIDTH;
    made.k = pair / 4 * 8 + pair % 4;
    made.at = p.few_at + (top + made.line) * p.few_stride + (step * BLOCK_K + made.k) * p.few_k;
    made.line_each = p.few_k == 1 ? 8 * (int)p.few_stride : 0;
    made.k_each = p.few_k == 1 ? 0 : (int)p.few_k;
    made.high = 4 * (int)p.few_k;
    return made;
}

// `lines` of the few and `depth` of k are left from this stage on.
static __device__ __forceinline__ void gather(
    float (&low)[PAIRS], float (&high)[PAIRS], const Gathering& from, int lines, int depth, bool along)
{
    #pragma unroll
    for (int i = 0; i < PAIRS; ++i) {
        bool there = from.line + (along ? i * 8 : 0) < lines;
        int k = from.k + (along ? 0 : SPREAD(i)), at = i * from.line_each + SPREAD(i) * from.k_each;
        low[i] = there && k < depth ? from.at[at] : 0.0f;
        high[i] = there && k + 4 < depth ? from.at[at + from.high] : 0.0f;
    }
}

// Two words of a few line to a stage, rounded or split; `to` is where the line's first is.
static __device__ __forceinline__ void put_pair(char* to, int line, int k, float low, float high, unsigned& largest) {
#if PLANES == 1
    to += k % 8 * 4;
    *reinterpret_cast<unsigned*>(to + (k / 8 * 2 ^ line % 8) * 16) = rounded(low);
    *reinterpret_cast<unsigned*>(to + (k / 8 * 2 + 1 ^ line % 8) * 16) = rounded(high);
#else
    largest = max(largest, max(__float_as_uint(low) & 0x7fffffffu, __float_as_uint(high) & 0x7fffffffu));
    to += (k / 8 ^ line / 2 % 4) * 16 + k % 8 * 4;
    #pragma unroll
    for (int plane = 0; plane < PLANES; ++plane) {
        unsigned pair = pair_of(low, high);
        *reinterpret_cast<unsigned*>(to + plane * PLANE_BYTES) = pair;
        low -= __uint_as_float(pair << 16);
        high -= __uint_as_float(pair & 0xffff0000u);
    }
#endif
}

static __device__ __forceinline__ void put(
    char* to, const float (&low)[PAIRS], const float (&high)[PAIRS], const Gathering& from, bool along, unsigned& largest)
{
    const int line_bytes = PLANES == 1 ? 128 : 64;
    to += from.line * line_bytes;
    #pragma unroll
    for (int i = 0; i < PAIRS; ++i)
        if (along)
            put_pair(to + i * 8 * line_bytes, from.line, from.k, low[i], high[i], largest);
        else
            put_pair(to, from.line, from.k + SPREAD(i), low[i], high[i], largest);
}

// All producers load the few lines, one of them issues the long operand's copies. Returns the largest magnitude, as bits.
static __device__ __forceinline__ unsigned produce_gathered(
    char* stages, Barrier* full, Barrier* empty, const MapsOfLong& maps, const Product& p, Part part, int first, int top)
{
    int stage = 0;
    unsigned parity = 1, largest = 0;
    float low[PAIRS], high[PAIRS];
    bool along = p.few_k == 1;
    int lines = p.few - top, depth = p.k - part.from * BLOCK_K;
    Gathering from = gathering(p, part.from, top);
    gather(low, high, from, lines, part.from < part.to ? depth : 0, along);
    for (int step = part.from; step < part.to; ++step) {
        barrier_wait(&empty[stage], parity);
        char* to = stages + stage * STAGE_BYTES;
        if (threadIdx.x == 128 * CONSUMERS) {
            barrier_expect(&full[stage], LONG_BYTES);
            #pragma unroll
            for (int at = 0; at < CLASSES; ++at)
                copy_box(to + FEW_BYTES + at * BOX_BYTES, &maps.of[at], &full[stage], ALONG ? step * BLOCK_K : first,
                         ALONG ? first / 4 : step * BLOCK_K / CLASSES);
        }
        put(to, low, high, from, along, largest);
        fence_async_shared();
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(&full[stage]);
        from.at += BLOCK_K * p.few_k;
        depth -= BLOCK_K;
        if (step + 1 < part.to) gather(low, high, from, lines, depth, along);
        NEXT_STAGE(stage, parity, STAGES)
    }
    return largest;
}

#endif
