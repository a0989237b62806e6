// unsafe_rows: rows of P that the six products of bfloat16 planes cannot give, once more on plain cores.
//
// Whether a row is safe depends on the largest magnitudes of that row of M and of N alone (`safe`), so the others have the same bits
// beside any rows. A row that is not is made of chains of CHAIN fused multiply-adds in the order of k, added in order.
// Layout: a block takes ROWS rows and COLUMNS columns of P, a thread every THREADS-th of those columns. M comes through shared memory, DEPTH of
//   k at a time.
// Strides: any. Blocks whose rows are all safe exit at once.

#define ROWS 16
#define THREADS 256
#define EACH 4  // columns of a thread
#define COLUMNS (EACH * THREADS)

// An operand: rows of M or columns of N, elements apart, and members of a stack.
struct Lines { const float* from; long long line, k, step; };
// Largest magnitudes: of M's lines in each DEPTH of k, and `met` of N, a member's `apart` from the next one's.
struct Magnitudes { const unsigned* of_lines; const unsigned* of_n; long long lines_apart, n_apart; int met, log_k; };

static __device__ __forceinline__ unsigned largest_of(const unsigned* all, int count, long long step) {
    unsigned largest = 0;
    for (int i = threadIdx.x % 32; i < count; i += 32) largest = max(largest, all[i * step]);
    return __reduce_max_sync(~0u, largest);
}

extern "C" __global__ void __launch_bounds__(THREADS) unsafe_rows(
    Lines M, Lines N, float* P, long long ldp, long long step_p, int m, int k, int n, const __grid_constant__ Magnitudes magnitudes)
{
    __shared__ float Mds[ROWS][DEPTH];
    __shared__ int unsafe[ROWS];
    wait_on_dependent_grids();
    launch_dependent_grids();
    int member = blockIdx.z, top = blockIdx.x * ROWS, warp = threadIdx.x / 32, blocks_k = (k + DEPTH - 1) / DEPTH;
    int padded = (m + PADDED - 1) / PADDED * PADDED;
    unsigned of_n = largest_of(magnitudes.of_n + member * magnitudes.n_apart, magnitudes.met, 1);
    for (int r = warp; r < ROWS; r += THREADS / 32) {
        bool inside = top + r < m;
        const unsigned* of_row = magnitudes.of_lines + member * magnitudes.lines_apart + (inside ? top + r : 0);
        unsigned of_m = largest_of(of_row, blocks_k, padded);
        if (threadIdx.x % 32 == 0) unsafe[r] = inside && !safe(of_m, of_n, magnitudes.log_k);
    }
    __syncthreads();
    if (!__syncthreads_or(threadIdx.x < ROWS && unsafe[threadIdx.x % ROWS])) return;
    int left = blockIdx.y * COLUMNS + threadIdx.x;
    const float* from_m = M.from + member * M.step;
    const float* from_n = N.from + member * N.step;
    float sums[ROWS][EACH], chain[ROWS][EACH];
    #pragma unroll
    for (int r = 0; r < ROWS; ++r)
        #pragma unroll
        for (int c = 0; c < EACH; ++c) sums[r][c] = chain[r][c] = 0.0f;
    for (int at = 0; at < k; at += DEPTH) {
        __syncthreads();
        for (int i = threadIdx.x; i < ROWS * DEPTH; i += THREADS) {
            int r = i / DEPTH, kk = i % DEPTH;
            if (top + r < m && at + kk < k) Mds[r][kk] = from_m[(top + r) * M.line + (at + kk) * M.k];
        }
        __syncthreads();
        int steps = min(DEPTH, k - at);
        for (int kk = 0; kk < steps; ++kk)
            #pragma unroll
            for (int c = 0; c < EACH; ++c) {
                int column = left + c * THREADS;
                float of_column = column < n ? from_n[column * N.line + (at + kk) * N.k] : 0.0f;
                #pragma unroll
                for (int r = 0; r < ROWS; ++r) chain[r][c] = __fmaf_rn(Mds[r][kk], of_column, chain[r][c]);
            }
        if ((at + DEPTH) % CHAIN && at + DEPTH < k) continue;
        #pragma unroll
        for (int r = 0; r < ROWS; ++r)
            #pragma unroll
            for (int c = 0; c < EACH; ++c) {
                sums[r][c] = at < CHAIN ? chain[r][c] : sums[r][c] + chain[r][c];
                chain[r][c] = 0.0f;
            }
    }
    #pragma unroll
    for (int r = 0; r < ROWS; ++r)
        #pragma unroll
        for (int c = 0; c < EACH; ++c) {
            int column = left + c * THREADS;
            float sum = sums[r][c];
            if (unsafe[r] && column < n) P[member * step_p + (top + r) * ldp + column] = sum == sum ? sum : __uint_as_float(0x7fc00000);
        }
}
