// transpose: copies an operand of any layout to lines contiguous along k and aligned to 128 bytes.
//
// Layout: a block takes 64 lines (rows of M, columns of N) and 128 bytes of k. Where k lies across the lines, a warp reads 32
//   of them side by side and transposes them in shared memory; 8-bit elements four by four, in registers first. Where k lies side
//   by side, lines are read as they are. Either way whole 128-byte lines are written.
// Edges: what lies outside is read as 0; a target line has room for whole words.
// Barrier: one, before the transposed lines are written.
// Two operands go in one launch: blockIdx.z says which.

#define LINES 64
#define WORDS 32  // of a line of 128 bytes
#define EACH (4 / (int)sizeof(Element))  // elements of k in a word
#define DEPTH (WORDS * EACH)

struct Operand {
    const Element* from; unsigned* to;
    int lines, k;
    long long line_stride, k_stride, lead_to;  // lead_to in words
    int along_k;
};

static __device__ __forceinline__ unsigned element_at(const Operand& here, int line, int k) {
    return line < here.lines && k < here.k ? as_bits(here.from[line * here.line_stride + k * here.k_stride]) : 0u;
}

extern "C" __global__ void __launch_bounds__(256) transpose(Operand one, Operand other)
{
    wait_on_dependent_grids();
    launch_dependent_grids();
    __shared__ unsigned transposed[LINES][WORDS + 1];
    Operand here = blockIdx.z ? other : one;
    int first_line = blockIdx.y * LINES, first_k = blockIdx.x * DEPTH, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (first_line >= here.lines || first_k >= here.k) return;
    if (here.along_k) {
        #pragma unroll
        for (int i = 0; i < LINES / 8; ++i) {
            unsigned word = 0;
            #pragma unroll
            for (int e = 0; e < EACH; ++e)
                word |= element_at(here, first_line + warp * 8 + i, first_k + lane * EACH + e) << e * 8 * sizeof(Element);
            transposed[warp * 8 + i][lane] = word;
        }
    } else {
        #pragma unroll
        for (int i = 0; i < WORDS / 8; ++i)
            #pragma unroll
            for (int half = 0; half < LINES; half += 32) {
                unsigned word = 0;
                #pragma unroll
                for (int e = 0; e < EACH; ++e)
                    word |= element_at(here, first_line + half + lane, first_k + (i * 8 + warp) * EACH + e)
                            << e * 8 * sizeof(Element);
                transposed[half + lane][i * 8 + warp] = word;
            }
    }
    __syncthreads();
    int word = first_k / EACH + lane;
    #pragma unroll
    for (int i = 0; i < LINES / 8; ++i) {
        int line = first_line + i * 8 + warp;
        if (line < here.lines && word < here.lead_to) here.to[line * here.lead_to + word] = transposed[i * 8 + warp][lane];
    }
}
