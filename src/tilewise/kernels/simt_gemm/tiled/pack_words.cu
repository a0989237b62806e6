// pack_words: packs an operand of any strides into words, k by k: the word at kw * lead + line has PER_WORD elements of its line, from
// k = kw * PER_WORD on; beyond k it has PAD.
//
// Layout: a block of 32 x 8 threads packs 32 of k for LINES lines and transposes them in shared memory, so that both loads (ALONG_K or
//   across k) and stores are coalesced. One more column avoids bank conflicts.
// SEEKS: sets `found` if a word, as an unsigned integer, is above LIMIT: negative or NaN.
// Barrier: the square is complete before it is stored. The early exit is decided by the whole block.

extern "C" __global__ void __launch_bounds__(256) pack_words(
    const Element* __restrict__ operand, Word* __restrict__ words,
#if SEEKS
    unsigned* found,
#endif
    int lines, int k, long long line_stride, long long k_stride, long long lead)
{
    launch_dependent_grids();
#if SEEKS
    if (!words && __syncthreads_or(*(volatile unsigned*)found)) {  // only a search, and a word was found already
        if (blockIdx.x + blockIdx.y == 0) wait_on_dependent_grids();
        return;
    }
#endif
    __shared__ Word square[32][LINES + 1];
    int many = (k + PER_WORD - 1) / PER_WORD;
    int first_word = blockIdx.x * 32, first_line = blockIdx.y * LINES;
#if BITS && ALONG_K
    // a warp reads 32 neighbouring truths, and its ballot is the word
    for (int i = threadIdx.y; i < 32 * LINES; i += 8) {
        int kw = first_word + i % 32, line = first_line + i / 32;
        long long at = kw * 32ll + threadIdx.x;
        bool truth = PAD;
        if (line < lines && at < k) truth = widen(operand[line * line_stride + at * k_stride]);
        unsigned votes = __ballot_sync(0xffffffffu, truth);
        if (threadIdx.x == 0) square[i % 32][i / 32] = votes;
    }
#else
    Word held[LINES / 8];  // all of a thread's loads are in flight together
    #pragma unroll
    for (int i = 0; i < LINES; i += 8) {
        int kw = first_word + (ALONG_K ? (int)threadIdx.x : i % 32 + (int)threadIdx.y);
        int line = first_line + (ALONG_K ? i + (int)threadIdx.y : i / 32 * 32 + (int)threadIdx.x);
        const Element* from = operand + line * line_stride;
        bool inside = kw < many && line < lines;
#if PER_WORD == 1
        held[i / 8] = inside ? ONE(from[kw * k_stride]) : Word();
#else
        held[i / 8] = 0;
        #pragma unroll
        for (int e = 0; e < PER_WORD; ++e) {
            long long at = (long long)kw * PER_WORD + e;
            held[i / 8] |= AS_BITS(inside && at < k ? widen(from[at * k_stride]) : PAD) << (SHIFT * e);
        }
#endif
    }
#if SEEKS
    bool above = false;
    #pragma unroll
    for (int i = 0; i < LINES / 8; ++i) above |= __float_as_uint(held[i]) > LIMIT;
    // one store a block, of the same value: stores to one address are serialized
    if (__syncthreads_or(above) && threadIdx.x + threadIdx.y == 0) *found = 1;
#endif
    #pragma unroll
    for (int i = 0; i < LINES; i += 8)
        square[ALONG_K ? threadIdx.x : i % 32 + threadIdx.y][ALONG_K ? i + threadIdx.y : i / 32 * 32 + threadIdx.x] = held[i / 8];
#endif
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < LINES && words; i += 8) {  // without `words` this is only a search
        int kw = i % 32 + threadIdx.y, line = i / 32 * 32 + threadIdx.x;
        if (first_word + kw < many && first_line + line < lines)
            words[(first_word + kw) * lead + first_line + line] = square[kw][line];
    }
    if (blockIdx.x + blockIdx.y == 0) wait_on_dependent_grids();
}
