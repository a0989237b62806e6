// shallow: products whose k is so short that writing P takes most of the time. A block keeps TN columns of N in shared
// memory for all the rows it takes; each of its warps makes 16 rows of P after the other, on its own.
//
// Layout: a line is a column of N or a row of M, all of its k side by side whatever way the operand lies, PAD elements
//   apart, so that what a warp reads at a time lies in all banks: first TN lines of N, then for every warp its 16 of M
//   and what its cores stage. Elements are loaded one by one, so that lines start anywhere; there are few of them.
// Edges: what lies outside M and N is filled with 0, in k up to a whole step; P is stored through a guard.
// Barrier: one, behind the lines of N. After it, a warp waits for its own lanes alone.
// Stores: rows of P leave in whole stretches of neighbouring elements, at any offset.

#define AT_ONCE 8  // loads of a thread that are on their way together

extern __shared__ __align__(128) unsigned char memory[];

// LINES lines of `padded` elements each into `to`, by `count` threads of which this is `me`: the first `lines` of them,
// and of each the first k elements, come from `from`. All of them lie within 2^31 elements.
template <int LINES>
static __device__ __forceinline__ void load_lines(
    Element* to, int pitch, const Element* from, int line_stride, int k_stride, int lines, int k, int padded, int me,
    int count)
{
    bool along = k_stride < line_stride;  // neighbours lie along k, and else in neighbouring lines
    int inner = along ? padded : LINES, outer = along ? LINES : padded, apart = count / 16;
    int valid = along ? k : lines, valid_outer = along ? lines : k;
    int stride = along ? k_stride : line_stride, outer_stride = along ? line_stride : k_stride;
    int step = along ? 1 : pitch, outer_step = along ? pitch : 1;
    for (int i = me % 16; i < inner; i += 16)
        for (int first = me / 16; first < outer; first += AT_ONCE * apart) {
            Element got[AT_ONCE];
            int left = i < valid ? valid_outer - first : 0, at = i * stride + first * outer_stride;
            #pragma unroll
            for (int a = 0; a < AT_ONCE; ++a)
                got[a] = a * apart < left ? from[at + a * apart * outer_stride] : (Element)0;
            Element* there = to + i * step + first * outer_step;
            #pragma unroll
            for (int a = 0; a < AT_ONCE; ++a)
                if (first + a * apart < outer) there[a * apart * outer_step] = rounded(got[a]);
        }
}

extern "C" __global__ void __launch_bounds__(MOST_THREADS, RESIDENT) shallow(
    const Element* __restrict__ M, const Element* __restrict__ N, Element* P, int m, int k, int n,
    int m_row, int m_col, int n_row, int n_col, long long p_row, int steps, int blocks,
    long long step_M, long long step_N, long long step_P)
{
    wait_for_the_one_before();
    let_the_next_start();
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    int padded = steps * STEP, pitch = padded + PAD, across = blockIdx.x / blocks * TN, width = min(TN, n - across);
    Element* columns = reinterpret_cast<Element*>(memory);
    Element* rows = columns + (TN + warp * ROWS) * pitch;
    Element* staged = columns + (TN + warps * ROWS) * pitch + warp * STAGED;

    load_lines<TN>(columns, pitch, N + blockIdx.y * step_N + (long long)across * n_col, n_col, n_row, width, k, padded,
                   threadIdx.x, blockDim.x);
    __syncthreads();
    M += blockIdx.y * step_M;
    P += blockIdx.y * step_P + across;
    int first = (blockIdx.x % blocks * warps + warp) * ROWS, next = blocks * warps * ROWS;
    for (int top = first; top < m; top += next) {
        int height = min(ROWS, m - top);
        load_lines<ROWS>(rows, pitch, M + (long long)top * m_row, m_row, m_col, height, k, padded, lane, 32);
        __syncwarp();
        Sums sums;
        sums.take(rows, columns, pitch, steps);
        sums.store(P + top * p_row, p_row, height, width, staged);
        __syncwarp();  // these rows of M, and what was staged, are used up
    }
}
