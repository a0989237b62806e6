// pack_words: an operand of any strides into words, k by k: the word at kw * lead + line holds PER_WORD elements of its
// line, from k = kw * PER_WORD on; past the end of k it is filled with PAD.
//
// Layout: a block of 32 x 8 threads makes 32 of k for LINES lines and turns them in shared memory, so that reading follows the
//   operand (ALONG_K or along its lines) and writing follows the words. One column more keeps the banks apart.
// SEEKS: words above LIMIT are looked for, as unsigned integers: what is below 0, or NaN.
// Barrier: the square is whole before anyone writes of it. What was found is asked of all threads of a block together: they
//   must agree whether they stay.

extern "C" __global__ void __launch_bounds__(256) pack_words(
    const Element* __restrict__ operand, Word* __restrict__ words,
#if SEEKS
    unsigned* found,
#endif
    int lines, int k, long long line_stride, long long k_stride, long long lead)
{
    let_next_kernel_start();
#if SEEKS
    if (!words && __syncthreads_or(*(volatile unsigned*)found)) {  // it only looks, and nothing is left to find
        if (blockIdx.x + blockIdx.y == 0) wait_for_kernel_before();
        return;
    }
#endif
    __shared__ Word square[32][LINES + 1];
    int many = (k + PER_WORD - 1) / PER_WORD;
    int first_word = blockIdx.x * 32, first_line = blockIdx.y * LINES;
#if BITS && ALONG_K
    // a warp reads 32 truths side by side, and its votes are the word
    for (int i = threadIdx.y; i < 32 * LINES; i += 8) {
        int kw = first_word + i % 32, line = first_line + i / 32;
        long long at = kw * 32ll + threadIdx.x;
        bool truth = PAD;
        if (line < lines && at < k) truth = widen(operand[line * line_stride + at * k_stride]);
        unsigned votes = __ballot_sync(0xffffffffu, truth);
        if (threadIdx.x == 0) square[i % 32][i / 32] = votes;
    }
#else
    Word held[LINES / 8];  // all of a thread's loads are on their way at once
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
    // whoever stores, stores the same; one of a block, because stores to one place come one after the other
    if (__syncthreads_or(above) && threadIdx.x + threadIdx.y == 0) *found = 1;
#endif
    #pragma unroll
    for (int i = 0; i < LINES; i += 8)
        square[ALONG_K ? threadIdx.x : i % 32 + threadIdx.y][ALONG_K ? i + threadIdx.y : i / 32 * 32 + threadIdx.x] = held[i / 8];
#endif
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < LINES && words; i += 8) {  // without a place for them it only looks
        int kw = i % 32 + threadIdx.y, line = i / 32 * 32 + threadIdx.x;
        if (first_word + kw < many && first_line + line < lines)
            words[(first_word + kw) * lead + first_line + line] = square[kw][line];
    }
    if (blockIdx.x + blockIdx.y == 0) wait_for_kernel_before();
}
