// cross_entropy: a block takes one row of logits. One pass finds logsumexp, running: a thread keeps its largest logit
// and the sum of exp(logit - largest), and pairs are joined within the block. A second pass, where a gradient is wanted,
// writes softmax - onehot over the logits themselves. Rows start on 16 bytes, so words of 8 elements are read.

struct Running { float top, sum; };

static __device__ __forceinline__ Running joined(Running a, Running b) {
    float top = fmaxf(a.top, b.top);
    if (top == -LARGEST) return Running{top, a.sum + b.sum};
    return Running{top, a.sum * exponential(a.top - top) + b.sum * exponential(b.top - top)};
}

// With `COUNT` more: the largest of them first, so their exponentials wait for nothing.
template <int COUNT> static __device__ __forceinline__ Running with_more(Running a, const float (&values)[COUNT]) {
    float top = a.top;
    #pragma unroll
    for (int i = 0; i < COUNT; ++i) top = fmaxf(top, values[i]);
    float from = top == -LARGEST ? 0.0f : top, sum = a.sum * exponential(a.top - from);
    #pragma unroll
    for (int i = 0; i < COUNT; ++i) sum += exponential(values[i] - from);
    return Running{top, sum};
}

union Word { uint4 whole; Element lane[LANES]; };

extern "C" __global__ void __launch_bounds__(THREADS)
cross_entropy(Element* logits, const long long* target, float* loss, long long stride, int columns, long long ignored,
              int gradient)
{
    Element* row = logits + blockIdx.x * stride;
    uint4* words = reinterpret_cast<uint4*>(row);
    const long long wanted = target[blockIdx.x];
    const int whole = columns / LANES;
    Running mine = {-LARGEST, 0.0f};
    if (wanted == ignored) {
        for (int j = threadIdx.x; gradient && j < columns; j += THREADS) row[j] = narrow(0.0f);
        if (threadIdx.x == 0) loss[blockIdx.x] = 0.0f;
        return;
    }
    #pragma unroll 4
    for (int w = threadIdx.x; w < whole; w += THREADS) {
        Word word;
        word.whole = words[w];
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
    const float logsumexp = mine.top + logf(mine.sum);
    if (threadIdx.x == 0)
        loss[blockIdx.x] = wanted >= 0 && wanted < columns ? logsumexp - widen(row[wanted]) : NOT_A_NUMBER;
    if (!gradient) return;
    __syncthreads();  // the logit of the word wanted has been read
    #pragma unroll 4
    for (int w = threadIdx.x; w < whole; w += THREADS) {
        Word word;
        word.whole = words[w];
        #pragma unroll
        for (int i = 0; i < LANES; ++i) {
            float share = exponential(widen(word.lane[i]) - logsumexp);
            word.lane[i] = narrow(w * LANES + i == wanted ? share - 1.0f : share);
        }
        words[w] = word.whole;
    }
    for (int j = whole * LANES + threadIdx.x; j < columns; j += THREADS) {
        float share = exponential(widen(row[j]) - logsumexp);
        row[j] = narrow(j == wanted ? share - 1.0f : share);
    }
}
