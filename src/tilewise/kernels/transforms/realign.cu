// realign: copies unaligned lines of two stacks of matrices to lines aligned to 128 bytes, in one launch.
//
// Layout: lines.cuh. A warp takes a segment of a line, then the next that are not its neighbours': every lane loads its
//   aligned 16-byte words, all on their way before the first is used, borrows its neighbour's, and shifts the pairs by the
//   line's offset. The offset is the same for the whole warp, so the switch over it is no branch.
// Edges: words across the ends of the matrix are read element by element; the padding behind a line is undefined.
// Barrier: none; neighbours exchange words by shuffle.
// blockIdx.z says which stack. Its members lie `step` elements apart, and go `step_to` apart; lines are counted through them.

struct LinesOfStack { Lines first; int members; long long step; long long step_to; };

// The word after `mine`, which a lane finds at its right neighbour; the last lane's neighbour is lane 0 of the next 256.
static __device__ __forceinline__ uint4 neighbour(uint4 mine, uint4 next) {
    int lane = threadIdx.x % 32;
    uint4 shown = lane ? mine : next, found;  // only lane 0 is asked for what comes next
    found.x = __shfl_sync(~0u, shown.x, lane + 1);
    found.y = __shfl_sync(~0u, shown.y, lane + 1);
    found.z = __shfl_sync(~0u, shown.z, lane + 1);
    found.w = __shfl_sync(~0u, shown.w, lane + 1);
    return found;
}

template <int shift>
static __device__ __forceinline__ void shift_words(uint4 (&word)[WORDS + 1], const uint4 (&next)[WORDS]) {
    #pragma unroll
    for (int i = 0; i < WORDS; ++i) word[i] = shifted<shift>(word[i], next[i]);
}

static __device__ __forceinline__ void move_segment(const Lines& lines, int line, int start) {
    int lane = threadIdx.x % 32;
    const Element* source = lines.from + line * lines.lead + start;
    const Element* last = lines.from + (lines.lines - 1) * lines.lead + lines.length;
    Element* target = lines.to + line * lines.lead_to + start;
    int shift = elements_after_boundary(source), left = lines.length - start;  // elements of the line
    const Element* words = source - shift + lane * 8;
    uint4 word[WORDS + 1], next[WORDS];  // the last word is the next segment's first, and of use to lane 31 alone
    if (source - shift >= lines.from && source - shift + SEGMENT + 8 <= last) {
        #pragma unroll
        for (int i = 0; i <= WORDS; ++i)
            if (i * 256 < left + shift && (i < WORDS || lane == 0))
                word[i] = __ldg(reinterpret_cast<const uint4*>(words + i * 256));
    } else {
        #pragma unroll
        for (int i = 0; i <= WORDS; ++i)
            if (i * 256 < left + shift && (i < WORDS || lane == 0))
                word[i] = load_word(words + i * 256, lines.from, last);
    }
    #pragma unroll
    for (int i = 0; i < WORDS; ++i) next[i] = neighbour(word[i], word[i + 1]);
    switch (shift) {
        case 1: shift_words<1>(word, next); break;
        case 2: shift_words<2>(word, next); break;
        case 3: shift_words<3>(word, next); break;
        case 4: shift_words<4>(word, next); break;
        case 5: shift_words<5>(word, next); break;
        case 6: shift_words<6>(word, next); break;
        case 7: shift_words<7>(word, next); break;
    }
    #pragma unroll
    for (int i = 0; i < WORDS; ++i)
        if (i * 256 + lane * 8 < left) *reinterpret_cast<uint4*>(target + i * 256 + lane * 8) = word[i];
}

// The line of that number, counted through the members: `here` becomes its member. False where there is none.
static __device__ __forceinline__ bool find_line(const LinesOfStack& stack, Lines& here, int& line) {
    here = stack.first;
    if (stack.members == 1) return line < here.lines;
    int member = line / here.lines;
    line -= member * here.lines;
    here.from += member * stack.step;
    here.to += member * stack.step_to;
    return member < stack.members;
}

// Short lines: a thread takes eight elements of one, so that no lane is idle.
extern "C" __global__ void __launch_bounds__(256) realign_short(LinesOfStack one, LinesOfStack other)
{
    wait_on_dependent_grids();
    launch_dependent_grids();
    LinesOfStack stack = blockIdx.z == 0 ? one : other;  // a copy: a reference to either would put both into memory
    unsigned words = max(1, (stack.first.length + 7) / 8), lines = 256 / words;  // of a line, and lines of a block
    int line = (int)(blockIdx.x * lines + threadIdx.x / words);
    int start = (int)(threadIdx.x % words) * 8;
    if (threadIdx.x >= lines * words) return;
    Lines here;
    if (!find_line(stack, here, line)) return;
    const Element* source = here.from + line * here.lead + start;
    const Element* last = here.from + (here.lines - 1) * here.lead + here.length;
    int shift = elements_after_boundary(source);
    uint4 low = load_word(source - shift, here.from, last), high = low;
    if (shift && source - shift + 8 < last) high = load_word(source - shift + 8, here.from, last);
    *reinterpret_cast<uint4*>(here.to + line * here.lead_to + start) = shifted_by(low, high, shift);
}

extern "C" __global__ void __launch_bounds__(256) realign(LinesOfStack one, LinesOfStack other)
{
    wait_on_dependent_grids();
    launch_dependent_grids();
    LinesOfStack stack = blockIdx.z == 0 ? one : other;
    Lines here;
    int line = blockIdx.x * 8 + threadIdx.x / 32;
    if (!find_line(stack, here, line)) return;
    #pragma unroll 1
    for (int start = blockIdx.y * SEGMENT; start < here.length; start += gridDim.y * SEGMENT)
        move_segment(here, line, start);
}
