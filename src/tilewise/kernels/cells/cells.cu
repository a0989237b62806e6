// cells: a thread makes WIDTH cells of one row of P, operands straight from the caches; for products so small that tiles
// in shared memory would cost more than they bring, and for stacks of thousands of them.
//
// Layout: any strides; members of the stack lie step_M, step_N and step_P elements apart.
// Barrier: none is needed, because nothing is shared.

extern "C" __global__ void __launch_bounds__(256) cells(
    const Element* __restrict__ M, const Element* __restrict__ N, Result* P, int m, int k, int n,
    long long m_row, long long m_col, long long n_row, long long n_col, long long p_row, long long p_col,
    long long step_M, long long step_N, long long step_P, long long threads)
{
    wait_for_the_one_before();
    let_the_next_start();
    long long id = blockIdx.x * 256ll + threadIdx.x;
    if (id >= threads) return;
    int across = (n + WIDTH - 1) / WIDTH, each = m * across;
    long long member = id / each;
    int rest = (int)(id % each), row = rest / across, first = rest % across * WIDTH;
    M += member * step_M + row * m_row;
    N += member * step_N;
    P += member * step_P + row * p_row;

    const Element* columns[WIDTH];  // beyond the last column the last one is read again
    Partial sums[WIDTH];
    #pragma unroll
    for (int j = 0; j < WIDTH; ++j) {
        columns[j] = N + min(first + j, n - 1) * n_col;
        sums[j] = ZERO;
    }
    #pragma unroll 8
    for (int i = 0; i < k; ++i) {
        Partial x = widen(M[i * m_col]);
        #pragma unroll
        for (int j = 0; j < WIDTH; ++j) sums[j] = add(sums[j], mul(x, widen(columns[j][i * n_row])));
    }
    #pragma unroll
    for (int j = 0; j < WIDTH; ++j)
        if (first + j < n) STORE(P[(first + j) * p_col], sums[j]);
}
