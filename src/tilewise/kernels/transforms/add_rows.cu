// add_rows: target line t is the sum of the lines of its list (link_rows.cu), each times its weight, in ascending order: the
// same bits each time. A block to a target line.
//
// Layout: any strides; lines travel in words of EACH elements, more than one where they lie side by side on words' boundaries.
// Barrier: the list is read by one thread, sorted by rank by all of them, then used; two barriers.
// Edges: a list longer than LISTED is not sorted: all lines are looked through, in order, for those that go to this target.

#define LISTED 128

struct __align__(EACH * sizeof(Element)) Word { Element of[EACH]; };
struct __align__(EACH * sizeof(Result)) Sums { Result of[EACH]; };

extern "C" __global__ void __launch_bounds__(128) add_rows(
    const Element* M, Result* P, const Weight* weights, const Offset* rows, const int* heads, const int* next,
    int lines, int words, long long m_row, long long m_col, long long p_row, long long p_col)
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
    for (int c = me; c < words; c += 128) {
        Partial sums[EACH];
        #pragma unroll
        for (int e = 0; e < EACH; ++e) sums[e] = ZERO;
        int ends = many <= LISTED ? many : lines;
        #pragma unroll 2
        for (int i = 0; i < ends; ++i) {
            int line = many <= LISTED ? sorted[i] : i;
            if (many > LISTED && (long long)rows[line] != target) continue;
            Word held = *reinterpret_cast<const Word*>(M + line * m_row + (long long)c * EACH * m_col);
            #pragma unroll
            for (int e = 0; e < EACH; ++e) {
                Partial term = widen(held.of[e]);
                sums[e] = add(sums[e], WEIGHTED ? mul(WIDEN_WEIGHT(weights[line]), term) : term);
            }
        }
        Sums made;
        #pragma unroll
        for (int e = 0; e < EACH; ++e) STORE(made.of[e], sums[e]);
        *reinterpret_cast<Sums*>(P + target * p_row + (long long)c * EACH * p_col) = made;
    }
}
