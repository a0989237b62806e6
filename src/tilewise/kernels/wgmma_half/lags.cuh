// lags: lines of N that start on no 16 bytes come by classes, and the sums move between them.
//
// Layout: N's columns lie side by side, its lines (one for each k) an odd number of elements apart, through all groups. Every
//   N_CLASSES-th of them starts equally far behind a 16-byte boundary: a tensor map for each class begins there, so that a class's
//   columns arrive `lag` columns late, 7 for the first class, one less for each further one, 0 for the last. Between two classes
//   the sums move one column to the left: what has been added up stays where the next class adds. A tile's last 8 columns have
//   no use, and tiles stand BLOCK_N - 8 columns apart.
// M: its k are sorted by their remainder over N_CLASSES (deinterleave.cu), `run` elements each, zeros behind those there are.
// Group g's first line of N is line g * lines of all; class c has the lines of remainder residue[c].
// Edges: lines of a phase behind the group's last k are the next group's: 0 instead (cover_rest).

// A phase's class, where it begins in M's k and N's lines, and how many lines are the group's own.
struct Phase { int at, of_m, of_n, lines; };

static __device__ __forceinline__ Phase phase_of(int step, int start, const Work& work, const Size& size, const Skews& skews) {
#if LAGGED
    int steps = skews.run / BLOCK_K, at = step / steps, within = (step - at * steps) * BLOCK_K;
    int first = work.member.inner * skews.lines, hand = (skews.residue[at] - first) & (N_CLASSES - 1);
    int count = (size.k - hand + N_CLASSES - 1) / N_CLASSES;
    return {at, hand * skews.run + within, (first + hand) / N_CLASSES + within, max(0, count - within)};
#else
    return {0, start, start - skews.of[work.at], BLOCK_K};
#endif
}

static __device__ __forceinline__ bool begins_class(int step, const Skews& skews) {
#if LAGGED
    return step % (skews.run / BLOCK_K) == 0;
#else
    return false;
#endif
}

// Every sum becomes that of the column to its right: of this thread's other column, or of its right neighbour's first, which the
// last of four finds at the first's in the next eight columns. What moves into the last column has no use.
static __device__ __forceinline__ void move_sums(float (&sums)[SUMS]) {
    int lane = threadIdx.x % 32, from = lane / 4 * 4 + (lane + 1) % 4;
    #pragma unroll
    for (int i = 0; i < SUMS; ++i) settle(sums[i]);
    #pragma unroll
    for (int i = 0; i < SUMS; i += 2) {
        float shown = lane % 4 ? sums[i] : sums[i + 4 < SUMS ? i + 4 : i];
        sums[i] = sums[i + 1];
        sums[i + 1] = __shfl_sync(~0u, shown, from);
    }
    #pragma unroll
    for (int i = 0; i < SUMS; ++i) settle(sums[i]);
}
