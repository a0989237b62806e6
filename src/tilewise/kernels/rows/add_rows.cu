// add_rows: target line t is the sum of the lines of its list (link_rows.cu), each times its weight, in ascending order: the
// same bits each time. A block to a target line.
//
// Layout: any strides. Barrier: the list is read by one thread, sorted by rank by all of them, then used; two barriers.
// Edges: a list longer than LISTED is not sorted: all lines are looked through, in order, for those that go to this target.

#define LISTED 128

extern "C" __global__ void __launch_bounds__(128) add_rows(
    const Element* M, Result* P, const Weight* weights, const Offset* rows, const int* heads, const int* next,
    int lines, int n, long long m_row, long long m_col, long long p_row, long long p_col)
{
    __shared__ int list[LISTED], sorted[LISTED], found;
    int target = blockIdx.x, me = threadIdx.x;
    if (me == 0) {
        int many = 0;
        for (int line = heads[target]; line >= 0 && many <= LISTED; line = next[line], ++many)
            if (many < LISTED) list[many] = line;
        found = many;
    }
    __syncthreads();
    int many = found;
    if (many <= LISTED)
        for (int i = me; i < many; i += 128) {
            int rank = 0;
            for (int j = 0; j < many; ++j) rank += list[j] < list[i];
            sorted[rank] = list[i];
        }
    __syncthreads();
    for (int c = me; c < n; c += 128) {
        Partial sum = ZERO;
        int ends = many <= LISTED ? many : lines;
        for (int i = 0; i < ends; ++i) {
            int line = many <= LISTED ? sorted[i] : i;
            if (many > LISTED && (long long)rows[line] != target) continue;
            Partial held = widen(M[line * m_row + c * m_col]);
            sum = add(sum, WEIGHTED ? mul(WIDEN_WEIGHT(weights[line]), held) : held);
        }
        STORE(P[target * p_row + c * p_col], sum);
    }
}
