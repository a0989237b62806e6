// alignment_classes: rows of N that are not aligned to 16 bytes, one alignment class after another; sums are shifted between classes.
//
// Layout: N is row-major, its leading dimension no multiple of 8 elements, through all members. Every 8th, 4th or 2nd row has the same
//   misalignment: a tensor map for each of these classes begins at the boundary before, so that a class's columns are shifted, those of
//   the first class the most, those of the last one not. Between two classes the sums are shifted to the left by the difference, 1, 2
//   or 4 columns. A tile's last 8 columns are unused, and tiles are BLOCK_N - 8 columns apart.
// M: its k are sorted by their remainder modulo `classes` (deinterleave.cu), `run` elements each, padded with zeros.
// A member's first line of N is inner and outer lines behind that of the one before; class c has the lines of remainder residue[c].
// Edges: lines of a phase behind the member's last k are another's: 0 instead (cover_rest).

// A phase's class, its first k in M, its first row of the class in N, and the number of rows that are the member's.
struct Phase { int at, of_m, of_n, lines; };

static __device__ __forceinline__ Phase phase_of(int step, int start, const Work& work, const Size& size, const Misalignments& misalignments) {
#if N_BY_CLASSES
    int steps = misalignments.run / BLOCK_K, at = step / steps, within = (step - at * steps) * BLOCK_K, last = misalignments.classes - 1;
    int first = work.member.inner * misalignments.inner + work.member.outer * misalignments.outer, hand = (misalignments.residue[at] - first) & last;
    int shift = 31 - __clz(misalignments.classes), count = (size.k - hand + last) >> shift;
    return {at, hand * misalignments.run + within, ((first + hand) >> shift) + within, max(0, count - within)};
#else
    return {0, start, start - misalignments.of[work.at], BLOCK_K};
#endif
}

static __device__ __forceinline__ bool begins_class(int step, const Misalignments& misalignments) {
#if N_BY_CLASSES
    return step % (misalignments.run / BLOCK_K) == 0;
#else
    return false;
#endif
}

// Every sum becomes that of a column further to the right. By one: of this thread's other column, or of its right neighbour's
// first, which the last of four finds at the first's in the next eight columns; by two or four: of the next thread's or the one
// behind it. The last columns become undefined.
static __device__ __forceinline__ void move_sums(float (&sums)[SUMS], const Misalignments& misalignments) {
#if N_BY_CLASSES
    int lane = threadIdx.x % 32, apart = max(1, 4 / misalignments.classes), from = lane / 4 * 4 + (lane + apart) % 4;
    bool later = lane % 4 >= apart;
    fence_operand(sums);
    if (misalignments.classes == 8) {
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
    fence_operand(sums);
#endif
}
