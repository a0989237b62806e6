// cells: WIDTH cells of P a thread, operands from global memory through the caches; for products too small or with too short a k for tiles
// in shared memory, and for stacks of thousands of them.
//
// Layout: any strides; members of the stack are step_M, step_N and step_P elements apart. Neighbouring threads compute neighbouring cells
//   of a row of P, or of a column with `along_columns`. A thread's cells are a WIDTH-th of P apart, in a column with DOWN, else in a
//   row: their common operand is read once, and a warp's stores are coalesced.
// Edges: outside P the last row or column is read again, and not stored.
// Barrier: none is needed, because nothing is shared.

extern "C" __global__ void __launch_bounds__(256) cells(
    const Element* __restrict__ M, const Element* __restrict__ N, Result* P, int m, int k, int n,
    long long m_row, long long m_col, long long n_row, long long n_col, long long p_row, long long p_col,
    long long step_M, long long step_N, long long step_P, long long threads, int along_columns, int accumulate)
{
    wait_on_dependent_grids();
    launch_dependent_grids();
    long long id = blockIdx.x * 256ll + threadIdx.x;
    if (id >= threads) return;
    int rows = DOWN ? (m + WIDTH - 1) / WIDTH : m, cols = DOWN ? n : (n + WIDTH - 1) / WIDTH, each = rows * cols;
    long long member = threads < 0x7fffffffll ? (long long)((unsigned)id / (unsigned)each) : id / each;
    int rest = (int)(id - member * each);
    int row = along_columns ? rest % rows : rest / cols, column = along_columns ? rest / rows : rest % cols;
    M += member * step_M;
    N += member * step_N;
    P += member * step_P;

    const Element* of_m[DOWN ? WIDTH : 1];
    const Element* of_n[DOWN ? 1 : WIDTH];
    Partial sums[WIDTH];
    #pragma unroll
    for (int j = 0; j < WIDTH; ++j) {
        if (DOWN || j == 0) of_m[DOWN ? j : 0] = M + min(row + j * rows, m - 1) * m_row;
        if (!DOWN || j == 0) of_n[DOWN ? 0 : j] = N + min(column + j * cols, n - 1) * n_col;
        sums[j] = ZERO;
    }
    #pragma unroll 8
    for (int i = 0; i < k; ++i) {
        Partial shared = DOWN ? widen(of_n[0][i * n_row]) : widen(of_m[0][i * m_col]);
        #pragma unroll
        for (int j = 0; j < WIDTH; ++j)
            sums[j] = add(sums[j], DOWN ? mul(widen(of_m[DOWN ? j : 0][i * m_col]), shared)
                                        : mul(shared, widen(of_n[DOWN ? 0 : j][i * n_row])));
    }
    #pragma unroll
    for (int j = 0; j < WIDTH; ++j) {
        int r = DOWN ? row + j * rows : row, c = DOWN ? column : column + j * cols;
        if (r < m && c < n) STORE(P[r * p_row + c * p_col], sums[j]);
    }
}
