// rank_k: a k so short that storing P takes most of the time. A thread keeps up to DEEP of k of COLUMNS columns of N in registers and
// computes row after row of P; rows of M are in shared memory, broadcast to the lanes of a row.
//
// Layout: any strides. Neighbouring threads compute neighbouring columns, `across` of them, then the next row: where n is small, a warp
//   stores whole consecutive rows. A thread's own columns are `across` apart. Rows of M are DEEP + 4 apart in shared memory: no bank
//   conflicts of eight lanes in eight rows.
// Edges: k is padded to DEEP.
// Barrier: one, after the rows of M are loaded.

#define PITCH (DEEP + 4)
#define AT_ONCE 8  // loads of M in flight of a thread

extern __shared__ __align__(128) unsigned char memory[];

struct __align__(4 * sizeof(Partial)) Four { Partial of[4]; };

// The block's rows of M: the first `height` of `rows`, a power of two. `per_k` is 2^32 / k, rounded up: exact here, where
// there are fewer than 2^16 elements.
static __device__ __forceinline__ void load_rows(
    Partial* lines, const Element* M, long long m_row, long long m_col, int rows, int height, int k, unsigned per_k, bool along_k)
{
    int total = (along_k ? height : rows) * k, many = blockDim.x;
    for (int first = threadIdx.x; first < total; first += AT_ONCE * many) {
        Element got[AT_ONCE];
        int to[AT_ONCE];
        #pragma unroll
        for (int a = 0; a < AT_ONCE; ++a) {
            int i = first + a * many, row = along_k ? (k == 1 ? i : (int)((unsigned long long)i * per_k >> 32)) : i & (rows - 1);
            int at = along_k ? i - row * k : i / rows;
            to[a] = i < total && row < height ? row * PITCH + at : -1;
            if (to[a] >= 0) got[a] = M[row * m_row + at * m_col];
        }
        #pragma unroll
        for (int a = 0; a < AT_ONCE; ++a)
            if (to[a] >= 0) lines[to[a]] = widen(got[a]);
    }
    if (k < DEEP)
        for (int row = threadIdx.x; row < height; row += many)
            for (int at = k; at < DEEP; ++at) lines[row * PITCH + at] = PAD_M;
}

extern "C" __global__ void __launch_bounds__(256, DEEP * COLUMNS > 32 ? 2 : 4) rank_k(
    const Element* __restrict__ M, const Element* __restrict__ N, Result* P, int m, int k, int n,
    long long m_row, long long m_col, long long n_row, long long n_col, long long p_row, long long p_col,
    int rows, int across, int strips, unsigned per_k, int m_along_k, int accumulate, long long step_M, long long step_N, long long step_P)
{
    wait_on_dependent_grids();
    launch_dependent_grids();
    Partial* lines = reinterpret_cast<Partial*>(memory);
    int top = blockIdx.x / strips * rows, height = min(rows, m - top), at_once = blockDim.x / across;
    int first = threadIdx.x / across, column = blockIdx.x % strips * (across * COLUMNS) + threadIdx.x % across;
    M += blockIdx.y * step_M + top * m_row;
    N += blockIdx.y * step_N;
    P += blockIdx.y * step_P + top * p_row;

    Partial of_n[COLUMNS][DEEP];
    #pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
        int at = column + c * across;
        #pragma unroll
        for (int i = 0; i < DEEP; ++i) of_n[c][i] = i < k && at < n ? widen(N[i * n_row + at * n_col]) : (Partial)PAD_N;
    }
    load_rows(lines, M, m_row, m_col, rows, height, k, per_k, m_along_k);
    __syncthreads();
    if (first >= at_once) return;

    #pragma unroll 4
    for (int row = first; row < height; row += at_once) {
        Partial sums[COLUMNS];
        #pragma unroll
        for (int c = 0; c < COLUMNS; ++c) sums[c] = ZERO;
        #pragma unroll
        for (int i = 0; i < DEEP; i += 4) {
            Four x = *reinterpret_cast<const Four*>(lines + row * PITCH + i);
            #pragma unroll
            for (int e = 0; e < 4; ++e)
                #pragma unroll
                for (int c = 0; c < COLUMNS; ++c) sums[c] = add(sums[c], mul(x.of[e], of_n[c][i + e]));
        }
        #pragma unroll
        for (int c = 0; c < COLUMNS; ++c)
            if (column + c * across < n) STORE(P[row * p_row + (column + c * across) * p_col], sums[c]);
    }
}
