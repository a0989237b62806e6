// combine: the planes that pieces of k made, added up in the order of k, so that every run gives the same bits.

extern "C" __global__ void __launch_bounds__(256) combine(
    const Partial* __restrict__ planes, Result* P,
#if ARG
    const Where* __restrict__ planes_where, Where* Pwhere, long long w_row, long long w_col,
#endif
    int m, int n, long long plane_lead, long long p_row, long long p_col, int pieces)
{
    long long cell = blockIdx.x * 256ll + threadIdx.x;
    if (cell >= (long long)m * n) return;
    long long row = cell / n, col = cell % n;
    long long at = row * plane_lead + col, plane = m * plane_lead;
    Partial value = planes[at];
#if ARG
    Where where = planes_where[at];
    for (int piece = 1; piece < pieces; ++piece) {
        Partial other = planes[piece * plane + at];
        if (BETTER(other, value)) { value = other; where = planes_where[piece * plane + at]; }
    }
    Pwhere[row * w_row + col * w_col] = where;
#else
    for (int piece = 1; piece < pieces; ++piece)
        value = add(value, planes[piece * plane + at]);
#endif
    STORE(P[row * p_row + col * p_col], value);
}
