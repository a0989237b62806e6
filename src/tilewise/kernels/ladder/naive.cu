// naive: one thread, one element of P; every operand comes straight from global memory.
//
// Layout: M is m x k with ldm elements from row to row, N is k x n with ldn, P is m x n with ldp.
// Barrier: none is needed, because nothing is shared: each row of M is read n times, each column of N m times.

extern "C" __global__ void naive(
    const Element* __restrict__ M, const Element* __restrict__ N, Result* __restrict__ P,
    int m, int k, int n, Index ldm, Index ldn, Index ldp)
{
    int row = blockIdx.y * TILE_WIDTH + threadIdx.y;
    int col = blockIdx.x * TILE_WIDTH + threadIdx.x;
    if (row >= m || col >= n) return;

    Partial Pvalue = ZERO;
    for (int i = 0; i < k; ++i)
        Pvalue = add(Pvalue, mul(widen(M[row * ldm + i]), widen(N[i * ldn + col])));

    STORE(P[row * ldp + col], Pvalue);
}
