// limit: a micro-benchmark of the step. Every thread updates TM x TN sums with words in registers, SETS of them in turn. Nothing is
// loaded, so its rate is the limit of the instructions on this card. Round `never` reloads the words: it does not occur, but keeps the
// compiler from removing steps.

#define SETS 4

extern "C" __global__ void __launch_bounds__(256) limit(const Word* __restrict__ words, Partial* out, int rounds, int never)
{
    Word left[SETS][TM], right[SETS][TN];
    #pragma unroll
    for (int s = 0; s < SETS; ++s) {
        #pragma unroll
        for (int i = 0; i < TM; ++i) left[s][i] = words[s * (TM + TN) + i];
        #pragma unroll
        for (int j = 0; j < TN; ++j) right[s][j] = words[s * (TM + TN) + TM + j];
    }
    Sum sums[TM][TN];
    #pragma unroll
    for (int i = 0; i < TM; ++i)
        #pragma unroll
        for (int j = 0; j < TN; ++j)
            sums[i][j] = start();
    #pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
        if (round == never) {
            #pragma unroll
            for (int s = 0; s < SETS; ++s)
                #pragma unroll
                for (int i = 0; i < TM; ++i) left[s][i] = words[s * TM + i + threadIdx.x];
        }
        #pragma unroll
        for (int s = 0; s < SETS; s += 1 + PAIRS)
            #pragma unroll
            for (int i = 0; i < TM; ++i)
                #pragma unroll
                for (int j = 0; j < TN; ++j)
#if PAIRS
                    step_pair(sums[i][j], left[s][i], right[s][j], left[s + 1][i], right[s + 1][j]);
#else
                    step(sums[i][j], left[s][i], right[s][j], round);
#endif
    }
    Partial total = ZERO;
    #pragma unroll
    for (int i = 0; i < TM; ++i)
        #pragma unroll
        for (int j = 0; j < TN; ++j)
            total = add(total, finish(sums[i][j]));
    out[blockIdx.x * blockDim.x + threadIdx.x] = total;
}
