// alignment_classes: lines of N that start on no 16 bytes come by classes, and the sums move between them.
//
// Layout: N's columns lie side by side, its lines (one for each k) no multiple of 8 elements apart, through all members. Every
//   8th, 4th or 2nd of them starts equally far behind a 16-byte boundary: a tensor map for each of these classes begins there, so
//   that a class's columns arrive some columns late, the first class's the latest, the last one's not at all. Between two classes
//   the sums move to the left by that difference, 1, 2 or 4 columns: what has been added up stays where the next class adds. A
//   tile's last 8 columns have no use, and tiles stand BLOCK_N - 8 columns apart.
// M: its k are sorted by their remainder over `classes` (deinterleave.cu), `run` elements each, zeros behind those there are.
// A member's first line of N is inner and outer lines behind that of the one before; class c has the lines of remainder residue[c].
// Edges: lines of a phase behind the member's last k are another's: 0 instead (cover_rest).

// A phase's class, where it begins in M's k and N's lines, and how many lines are the member's own.
struct Phase { int at, of_m, of_n, lines; };

static __device__ __forceinline__ Phase phase_of(int step, int start, const Work& work, const Size& size, const Skews& skews) {
#if N_BY_CLASSES
    int steps = skews.run / BLOCK_K, at = step / steps, within = (step - at * steps) * BLOCK_K, last = skews.classes - 1;
    int first = work.member.inner * skews.inner + work.member.outer * skews.outer, hand = (skews.residue[at] - first) & last;
    int shift = 31 - __clz(skews.classes), count = (size.k - hand + last) >> shift;
    return {at, hand * skews.run + within, ((first + hand) >> shift) + within, max(0, count - within)};
#else
    return {0, start, start - skews.of[work.at], BLOCK_K};
#endif
}

static __device__ __forceinline__ bool begins_class(int step, const Skews& skews) {
#if N_BY_CLASSES
    return step % (skews.run / BLOCK_K) == 0;
#else
    return false;
#endif
}

// Every sum becomes that of a column further to the right. By one: of this thread's other column, or of its right neighbour's
// first, which the last of four finds at the first's in the next eight columns; by two or four: of the next thread's or the one
// behind it. What moves into the last columns has no use.
static __device__ __forceinline__ void move_sums(float (&sums)[SUMS], const Skews& skews) {
#if N_BY_CLASSES
    int lane = threadIdx.x % 32, apart = max(1, 4 / skews.classes), from = lane / 4 * 4 + (lane + apart) % 4;
    bool later = lane % 4 >= apart;
    settle(sums);
    if (skews.classes == 8) {
        #pragma unroll
        for (int i = 0; i < SUMS; i += 2) {
            float shown = later ? sums[i] : sums[i + 4 < SUMS ? i + 4 : i];
            sums[i] = sums[i + 1];
            sums[i + 1] = __shfl_sync(~0u, shown, from);
        }
    } else {
        #pragma unroll
        for (int i = 0; i < SUMS; ++i) sums[i] = __shfl_sync(~0u, later ? sums[i] : sums[i + 4 < SUMS ? i + 4 : i], from);
    }
    settle(sums);
#endif
}
