// half_dots: few rows or columns of P on tensor cores. The long operand is contiguous along k, of any alignment; it is loaded once from
// global memory to registers by aligned 16-byte words. The few lines of the other operand are in shared memory.
//
// Layout: every `classes`-th line of the long operand has the same misalignment. A block has lines of one such class, and the few lines
//   are stored with the same misalignment. A warp has 16 lines; lane (g, q) = (lane / 4, lane % 4) reads word 4 step + q of lines g and
//   g + 8, whose eight elements are its k of two products of fragments; of the few lines it reads the same k.
// Edges: a line's first and last word, if they contain elements of other lines, are a step of their own, computed by the first slice of
//   the first part of k; in the main steps the few lines are 0 there, and their elements for this step are in the spare columns.
// Order: slices of k are added up in order, then a cluster's blocks by rank.
// Barrier: a stage of the few lines is read before it is overwritten, and complete before it is read; the cluster, before sums are read
//   and before a block exits.

struct Words { uint4 upper, lower; };

// `inside`: words across the line's ends are inside the operand. A line outside the operand has k = -8.
struct Line { const Element* at; int k; bool inside; };

static __device__ __forceinline__ Line line_of(const Lines& p, int line) {
    const Element* at = p.long_at + line * p.lead;
    bool inside = at - 8 >= p.long_at && at + p.k + 8 <= end_of_long(p);
    return {at, line < p.length ? p.k : -8, inside};
}

// The eight elements from k = `at` on, 0 if not all exist.
static __device__ __forceinline__ uint4 word_at(const Line& line, int at) {
    return at >= 0 && at + 8 <= line.k ? whole_word(line.at + at) : make_uint4(0, 0, 0, 0);
}

// A word across a line's end; `end_word` loads it if it may be outside the operand.
static __device__ __forceinline__ uint4 edge_at(const Line& line, int at) {
    return line.inside && at < line.k ? whole_word(line.at + at) : make_uint4(0, 0, 0, 0);
}

static __device__ __forceinline__ unsigned kept(unsigned pair, int at, int k) {
    return pair & ((at >= 0 && at < k ? 0xffffu : 0u) | (at >= -1 && at + 1 < k ? 0xffff0000u : 0u));
}

// Clears elements that are not the line's.
static __device__ __forceinline__ void keep(uint4& word, const Line& line, int at, const Lines& p) {
    if (!line.inside && at < line.k) word = end_word(line.at + at, p);
    int k = line.k;
    word = make_uint4(kept(word.x, at, k), kept(word.y, at + 2, k), kept(word.z, at + 4, k), kept(word.w, at + 6, k));
}

// The few lines' elements for the words at lines' ends: eight from k = `first` and eight from `last`, 0 outside k.
static __device__ __forceinline__ void load_edges(Element* spare, int pitch, const Lines& p, int first, int last) {
    #pragma unroll 1
    for (int i = threadIdx.x; i < p.few * 32; i += THREADS) {
        int line = i / 32, e = i % 32, k = (e < 8 ? first : last) + e % 8;
        bool there = e < 16 && k >= 0 && k < p.k;
        spare[line * pitch + (e ^ swizzle_of(line))] = there ? p.few_at[line * p.few_stride + k * p.few_k] : (Element)0;
    }
}

static __device__ __forceinline__ void multiply_words(
    Sum (&sums)[MATS][4], const Element* few, int pitch, int q, const Words& words)
{
    unsigned first[4] = {words.upper.x, words.lower.x, words.upper.y, words.lower.y};
    unsigned second[4] = {words.upper.z, words.lower.z, words.upper.w, words.lower.w};
    #pragma unroll
    for (int i = 0; i < MATS; ++i) {
        uint4 of = *reinterpret_cast<const uint4*>(few + i * 8 * pitch + (q * 8 ^ swizzle_of(i * 8)));
        unsigned low[2] = {of.x, of.y}, high[2] = {of.z, of.w};
        multiply(sums[i], first, low);
        multiply(sums[i], second, high);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) half_dots(const __grid_constant__ Lines p, Epilogue epilogue) {
    wait_on_dependent_grids();
    launch_dependent_grids();
    Element* held = reinterpret_cast<Element*>(memory);
    int parts = cluster_blocks(), rank = cluster_rank(), tile = blockIdx.x / parts, of_class = tile % p.classes;
    int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, q = threadIdx.x % 4, slice = warp % p.slices, across = warp / p.slices;
    int height = 16 * (WARPS / p.slices), origin = of_class + tile / p.classes * height * p.classes;
    int line = origin + (16 * across + g) * p.classes;
    Line upper = line_of(p, line), lower = line_of(p, line + 8 * p.classes);
    int shift = elements_after_boundary(p.long_at + of_class * p.lead), steps = (p.k + shift + STEP - 1) / STEP;
    int from = (int)((long long)steps * rank / parts), to = (int)((long long)steps * (rank + 1) / parts);
    int pitch = pitch_of(p.stage * STEP);
    int low = (shift + 7) / 8 * 8 - shift, high = (p.k + shift) / 8 * 8 - shift;  // words in this range of k are the line's own
    bool edges = from == 0 && to > 0 && (low > 0 || high < p.k);
    int edge = q == 0 && low > 0 ? -shift : q == 1 && high < p.k && high >= low ? high : p.k;  // k of this lane's edge word

    Sum sums[MATS][4];
    #pragma unroll
    for (int i = 0; i < MATS * 4; ++i) sums[i / 4][i % 4] = 0;
    Words words[AHEAD];
    int at = (from + slice) * STEP + q * 8 - shift, on = p.slices * STEP;  // k of this lane's next word
    #pragma unroll
    for (int u = 0; u < AHEAD; ++u, at += on) words[u] = {word_at(upper, at), word_at(lower, at)};
    load_ends(p);
    #pragma unroll 1
    for (int stage = from; stage < to; stage += p.stage) {
        int end = min(stage + p.stage, to);
        if (stage > from) __syncthreads();
        load_few(held, pitch, p, stage * STEP - shift, (end - stage) * STEP, low, high);
        if (stage == 0 && edges)
            load_edges(held + pitch - SPARE, pitch, p, low > 0 ? -shift : p.k, high < p.k && high >= low ? high : p.k);
        Words at_edge;
        if (stage == 0 && edges && slice == 0) at_edge = {edge_at(upper, edge), edge_at(lower, edge)};
        __syncthreads();
        if (stage == 0 && edges && slice == 0) {
            keep(at_edge.upper, upper, edge, p);
            keep(at_edge.lower, lower, edge, p);
            multiply_words(sums, held + g * pitch + pitch - SPARE, pitch, q, at_edge);
        }
        #pragma unroll 1
        for (int step = stage + slice; step < end; step += AHEAD * p.slices) {
            #pragma unroll
            for (int u = 0; u < AHEAD; ++u, at += on) {
                if (step + u * p.slices < end)
                    multiply_words(sums, held + g * pitch + (step + u * p.slices - stage) * STEP, pitch, q, words[u]);
                words[u] = {word_at(upper, at), word_at(lower, at)};
            }
        }
    }
    __syncthreads();

    Sum* made = reinterpret_cast<Sum*>(memory);
    int whole = whole_of(p, height);
    Held as = held_as(p, height);
    #pragma unroll
    for (int i = 0; i < MATS * 4; ++i) {
        int few = i / 4 * 8 + 2 * q + i % 2, at_line = 16 * across + i / 2 % 2 * 8 + g;
        *cell_of(made + slice * whole, p, as.pitch, few, at_line) = sums[i / 4][i % 4];
    }
    __syncthreads();
    add_slices(made, as, p.slices, whole);
    store(made, as, p, epilogue, {origin, p.classes});
}
