// Cross entropy of rows of logits: a block takes one row.
//   cross_entropy           losses, and softmax - onehot over the logits themselves; rows start on 16 bytes
//   cross_entropy_loss      losses and logsumexp, which a gradient later needs; rows start anywhere
//   cross_entropy_gradient  softmax - onehot times what a row counts, into other rows, which start on 16 bytes
// logsumexp is running: a thread keeps its largest logit and the sum of exp(logit - largest), and pairs are joined
// within the block. Exponentials are powers of 2, so one multiply-add prepares each.

extern __shared__ __align__(16) unsigned char memory[];

#define LOG2E 1.4426950408889634f

struct Running { float top, sum; };

static __device__ __forceinline__ Running joined(Running a, Running b) {
    float top = fmaxf(a.top, b.top);
    if (top == -LARGEST) return Running{top, a.sum + b.sum};
    return Running{top, a.sum * power_of_2((a.top - top) * LOG2E) + b.sum * power_of_2((b.top - top) * LOG2E)};
}

// With `COUNT` more: the largest of them first, so their exponentials wait for nothing.
template <int COUNT> static __device__ __forceinline__ Running with_more(Running a, const float (&values)[COUNT]) {
    float top = a.top;
    #pragma unroll
    for (int i = 0; i < COUNT; ++i) top = fmaxf(top, values[i]);
    float from = top == -LARGEST ? 0.0f : top * LOG2E, sum = a.sum * power_of_2(a.top * LOG2E - from);
    #pragma unroll
    for (int i = 0; i < COUNT; ++i) sum += power_of_2(values[i] * LOG2E - from);
    return Running{top, sum};
}

union Word { uint4 whole; unsigned part[4]; Element lane[LANES]; };

// LANES elements. Where they do not start on 16 bytes, in parts of 4 bytes; half of a first one may not be theirs.
template <bool ON_16> static __device__ __forceinline__ Word word_at(const Element* from) {
    Word word;
    if (ON_16) {
        word.whole = *reinterpret_cast<const uint4*>(from);
        return word;
    }
    const size_t address = reinterpret_cast<size_t>(from);
    const unsigned* parts = reinterpret_cast<const unsigned*>(address & ~size_t(3));
    unsigned next = parts[0];
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        const unsigned low = next;
        if (i < 3 || (address & 3)) next = parts[i + 1];
        word.part[i] = address & 3 ? low >> 16 | next << 16 : low;
    }
    return word;
}

// The row's logsumexp, in every thread. KEPT: its words stay in shared memory, each for the thread that read it.
template <bool ON_16, bool KEPT> static __device__ __forceinline__ float logsumexp_of(const Element* row, int columns) {
    const int whole = columns / LANES;
    Running mine = {-LARGEST, 0.0f};
    #pragma unroll 4
    for (int w = threadIdx.x; w < whole; w += THREADS) {
        Word word = word_at<ON_16>(row + w * LANES);
        if (KEPT) reinterpret_cast<uint4*>(memory)[w] = word.whole;
        float values[LANES];
        #pragma unroll
        for (int i = 0; i < LANES; ++i) values[i] = widen(word.lane[i]);
        mine = with_more(mine, values);
    }
    for (int j = whole * LANES + threadIdx.x; j < columns; j += THREADS) {
        const float value[1] = {widen(row[j])};
        mine = with_more(mine, value);
    }
    __shared__ Running held[32];
    #pragma unroll
    for (int apart = 16; apart; apart /= 2) {
        Running other = {__shfl_xor_sync(0xffffffffu, mine.top, apart), __shfl_xor_sync(0xffffffffu, mine.sum, apart)};
        mine = joined(mine, other);
    }
    if (threadIdx.x % 32 == 0) held[threadIdx.x / 32] = mine;
    __syncthreads();
    mine = held[0];
    for (int i = 1; i < THREADS / 32; ++i) mine = joined(mine, held[i]);
    return mine.top + logf(mine.sum);
}

static __device__ __forceinline__ float share_of(float logit, float logsumexp) {
    return power_of_2(logit * LOG2E - logsumexp * LOG2E);
}

// softmax - onehot of LANES logits from column `start` on.
static __device__ __forceinline__ Word gradient_of(Word word, int start, long long wanted, float lse, float counts) {
    float made[LANES];
    #pragma unroll
    for (int i = 0; i < LANES; ++i) made[i] = share_of(widen(word.lane[i]), lse) * counts;
    if (wanted / LANES * LANES == start) {
        #pragma unroll
        for (int i = 0; i < LANES; ++i)
            if (start + i == wanted) made[i] = (share_of(widen(word.lane[i]), lse) - 1.0f) * counts;
    }
    #pragma unroll
    for (int i = 0; i < 4; ++i) word.part[i] = packed(made + i * LANES / 4);
    return word;
}

static __device__ __forceinline__ float loss_of(const Element* row, long long wanted, int columns, float logsumexp) {
    return wanted >= 0 && wanted < columns ? logsumexp - widen(row[wanted]) : NOT_A_NUMBER;
}

// gradient: whether one is wanted; scale: what every row counts in it, null for 1; kept: whether there is room for a row
extern "C" __global__ void __launch_bounds__(THREADS, 2)
cross_entropy(Element* logits, const long long* target, float* loss, const float* scale, long long stride, int columns,
              long long ignored, int gradient, int kept)
{
    Element* row = logits + blockIdx.x * stride;
    uint4* words = reinterpret_cast<uint4*>(row);
    const long long wanted = target[blockIdx.x];
    const int whole = columns / LANES;
    if (wanted == ignored) {
        for (int j = threadIdx.x; gradient && j < columns; j += THREADS) row[j] = narrow(0.0f);
        if (threadIdx.x == 0) loss[blockIdx.x] = 0.0f;
        return;
    }
    const float counts = scale ? *scale : 1.0f;
    const float lse = kept ? logsumexp_of<true, true>(row, columns) : logsumexp_of<true, false>(row, columns);
    if (threadIdx.x == 0) loss[blockIdx.x] = loss_of(row, wanted, columns, lse);
    if (!gradient) return;
    __syncthreads();  // the logit of the word wanted has been read
    const uint4* from = kept ? reinterpret_cast<const uint4*>(memory) : words;
    #pragma unroll 4
    for (int w = threadIdx.x; w < whole; w += THREADS) {
        Word word;
        word.whole = from[w];
        words[w] = gradient_of(word, w * LANES, wanted, lse, counts).whole;
    }
    for (int j = whole * LANES + threadIdx.x; j < columns; j += THREADS)
        row[j] = narrow((share_of(widen(row[j]), lse) - (j == wanted ? 1.0f : 0.0f)) * counts);
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
cross_entropy_loss(const Element* logits, const long long* target, float* loss, float* logsumexp, long long stride,
                   int columns, long long ignored)
{
    const Element* row = logits + blockIdx.x * stride;
    const long long wanted = target[blockIdx.x];
    const bool on_16 = (reinterpret_cast<size_t>(row) & 15) == 0;
    const float lse = on_16 ? logsumexp_of<true, false>(row, columns) : logsumexp_of<false, false>(row, columns);
    if (threadIdx.x) return;
    loss[blockIdx.x] = wanted == ignored ? 0.0f : loss_of(row, wanted, columns, lse);
    logsumexp[blockIdx.x] = lse;
}

template <bool ON_16> static __device__ __forceinline__ void
gradient_row(const Element* row, Element* to, int columns, long long wanted, float lse, float counts) {
    const int whole = columns / LANES;
    #pragma unroll 4
    for (int w = threadIdx.x; w < whole; w += THREADS)
        reinterpret_cast<uint4*>(to)[w] = gradient_of(word_at<ON_16>(row + w * LANES), w * LANES, wanted, lse, counts).whole;
    for (int j = whole * LANES + threadIdx.x; j < columns; j += THREADS)
        to[j] = narrow((share_of(widen(row[j]), lse) - (j == wanted ? 1.0f : 0.0f)) * counts);
}

// scale: what each row counts, or where not `each` all of them
extern "C" __global__ void __launch_bounds__(THREADS, 2)
cross_entropy_gradient(const Element* logits, const long long* target, Element* gradient, const float* logsumexp,
                       const float* scale, long long stride, long long lead, int columns, long long ignored, int each)
{
    const Element* row = logits + blockIdx.x * stride;
    Element* to = gradient + blockIdx.x * lead;
    const long long wanted = target[blockIdx.x];
    if (wanted == ignored) {
        const uint4 nothing = {0, 0, 0, 0};
        for (int w = threadIdx.x; w < columns / LANES; w += THREADS) reinterpret_cast<uint4*>(to)[w] = nothing;
        for (int j = columns / LANES * LANES + threadIdx.x; j < columns; j += THREADS) to[j] = narrow(0.0f);
        return;
    }
    const float lse = logsumexp[blockIdx.x], counts = scale[each ? blockIdx.x : 0];
    if (reinterpret_cast<size_t>(row) & 15) gradient_row<false>(row, to, columns, wanted, lse, counts);
    else gradient_row<true>(row, to, columns, wanted, lse, counts);
}
