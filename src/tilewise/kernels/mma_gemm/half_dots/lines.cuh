// lines: the arguments of `half_dots`, and loading the few lines of a stage into shared memory.

#define THREADS (32 * WARPS)
#define MATS (WIDTH / 8)  // products of fragments side by side
#define MOST_CUT 8        // blocks of a cluster
#define STEP 32           // k of a step: a word of each of the four lanes on a line
#define SPARE 32          // elements behind each of the few lines: they avoid bank conflicts, and hold the edges' elements

// The few lines have any strides. The long operand's leading dimension is `lead`; every `classes`-th line has the same misalignment from
// 16 bytes. Warps take `slices` of k. A stage holds `stage` steps of the few lines, each loaded by 2^log_lanes threads.
struct Lines {
    const Element* few_at;
    const Element* long_at;
    Element* P;
    long long few_stride, few_k, lead, p_few, p_long;
    int few, k, length, classes, slices, stage, swapped, log_lanes;
};

extern __shared__ __align__(128) unsigned char memory[];

static __device__ __forceinline__ int pitch_of(int held) { return (held + 63) / 64 * 64 + SPARE; }

static __device__ __forceinline__ uint4 whole_word(const Element* at) { return __ldg(reinterpret_cast<const uint4*>(at)); }

// Swizzle of a step's words, against bank conflicts.
static __device__ __forceinline__ int swizzle_of(int line) { return (line >> 3 & 3) * 8; }

// `count` of k of one of the few lines, contiguous along k, 0 outside [low, high): by words, the rest by elements. Thread `mine` of
// `lanes`.
static __device__ __forceinline__ void load_line(
    Element* to, const Element* from, int count, int low, int high, int mine, int lanes, int swizzle)
{
    int misalignment = elements_after_boundary(from), begin = (max(low, 0) + 7) / 8 * 8, end = min(high, count) / 8 * 8;
    if (begin - misalignment < low) begin += 8;  // both words of eight elements are inside
    if (misalignment && end + 8 - misalignment > high) end -= 8;
    if (begin >= end) begin = end = 0;
    #pragma unroll 2
    for (int at = begin + mine * 8; at < end; at += lanes * 8) {
        uint4 word = whole_word(from + at - misalignment);
        if (misalignment) word = shifted_by(word, whole_word(from + at - misalignment + 8), misalignment);
        *reinterpret_cast<uint4*>(to + (at ^ swizzle)) = word;
    }
    #pragma unroll 1
    for (int i = mine; i < begin + count - end; i += lanes) {
        int at = i < begin ? i : i - begin + end;
        to[at ^ swizzle] = at >= low && at < high ? from[at] : (Element)0;
    }
}

// The eight elements at a boundary, 0 outside [first, last): small code, slow.
static __device__ __forceinline__ uint4 edge_word(const Element* at, const Element* first, const Element* last) {
    uint4 word = make_uint4(0, 0, 0, 0);
    #pragma unroll 1
    for (int e = 0; e < 8; ++e) {
        unsigned next = at + e >= first && at + e < last ? at[e] : 0;
        word.x = __funnelshift_r(word.x, word.y, 16);
        word.y = __funnelshift_r(word.y, word.z, 16);
        word.z = __funnelshift_r(word.z, word.w, 16);
        word.w = __funnelshift_r(word.w, next, 16);
    }
    return word;
}

// The few lines, contiguous across k: a lane loads one word of a k at a time.
static __device__ __forceinline__ void load_rows(
    Element* held, int pitch, const Lines& p, int first, int count, int low, int high)
{
    const Element* last = p.few_at + (p.k - 1) * p.few_k + p.few;
    const int beside = WIDTH >= 32 ? 4 : WIDTH / 8;  // words of a k at once
    int words = (p.few + 14) / 8;
    #pragma unroll 1
    for (int w = threadIdx.x % beside; w < words; w += beside) {
        #pragma unroll 4
        for (int at = threadIdx.x / beside; at < count; at += THREADS / beside) {
            int k = first + at;
            bool there = k >= low && k < high;
            const Element* from = p.few_at + (there ? k : 0) * p.few_k;
            int line = w * 8 - elements_after_boundary(from);
            uint4 word = make_uint4(0, 0, 0, 0);
            if (there && line < p.few) {
                if (from + line >= p.few_at && from + line + 8 <= last)
                    word = whole_word(from + line);
                else
                    word = edge_word(from + line, p.few_at, last);
            }
            #pragma unroll
            for (int e = 0; e < 8; ++e)
                if (line + e >= 0 && line + e < p.few) held[(line + e) * pitch + (at ^ swizzle_of(line + e))] = element_of(word, e);
        }
    }
}

static __device__ __forceinline__ void load_few(
    Element* held, int pitch, const Lines& p, int first, int count, int low, int high)
{
    int lanes = 1 << p.log_lanes, mine = threadIdx.x & lanes - 1;
    if (p.few_k == 1) {
        #pragma unroll 1
        for (int line = threadIdx.x >> p.log_lanes; line < p.few; line += THREADS >> p.log_lanes)
            load_line(held + line * pitch, p.few_at + line * p.few_stride + first, count, low - first, high - first, mine,
                       lanes, swizzle_of(line));
        return;
    }
    if (p.few_stride == 1) return load_rows(held, pitch, p, first, count, low, high);
    #pragma unroll 1
    for (int i = threadIdx.x; i < count * p.few; i += THREADS) {
        int line = i % p.few, at = i / p.few, k = first + at;
        bool there = k >= low && k < high;
        held[line * pitch + (at ^ swizzle_of(line))] =
            there ? p.few_at[line * p.few_stride + k * p.few_k] : (Element)0;
    }
}
