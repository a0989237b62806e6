// realign: lines of 2-byte elements that start anywhere become lines that start on 128-byte boundaries.
//
// Layout: source line r starts at from + r * lead, at any even address; target line r at to + r * lead_to, a multiple of 64.
//   A warp takes 256 elements of a line at a time: every lane loads one aligned 16-byte word, borrows its neighbour's, and
//   shifts the pair by the line's own offset. The offset is the same for the whole warp, so the switch over it is no branch.
// Edges: words that stick out of the matrix as a whole are read element by element; past a line's end anything may follow.
// Barrier: none; neighbours exchange words by shuffle. Two matrices go in one launch: blockIdx.z says which.

struct Lines { const Element* from; Element* to; int lines; int length; long long lead; long long lead_to; };

static __device__ __forceinline__ uint4 load_word(const Element* at, const Element* first, const Element* last) {
    if (at >= first && at + 8 <= last) return __ldg(reinterpret_cast<const uint4*>(at));
    union { uint4 word; Element lane[8]; } pieces;
    #pragma unroll
    for (int i = 0; i < 8; ++i) pieces.lane[i] = at + i >= first && at + i < last ? at[i] : (Element)0;
    return pieces.word;
}

// 16 bytes from the 32 of (low, high), `shift` elements on.
template <int shift> static __device__ __forceinline__ uint4 shifted(uint4 low, uint4 high) {
    unsigned words[9] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w, 0};
    unsigned made[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i)
        made[i] = shift % 2 ? __funnelshift_r(words[i + shift / 2], words[i + shift / 2 + 1], 16) : words[i + shift / 2];
    return make_uint4(made[0], made[1], made[2], made[3]);
}

template <int shift> static __device__ __forceinline__ void realign_line(
    const Element* source, Element* target, int length, const Element* first, const Element* last)
{
    int lane = threadIdx.x % 32;
    #pragma unroll 4
    for (int start = blockIdx.y * 256; start < length; start += gridDim.y * 256) {
        int column = start + lane * 8;
        const Element* word = source + start - shift + lane * 8;
        uint4 low = load_word(word, first, last), high = low;
        if (shift) {
            high.x = __shfl_down_sync(~0u, low.x, 1);
            high.y = __shfl_down_sync(~0u, low.y, 1);
            high.z = __shfl_down_sync(~0u, low.z, 1);
            high.w = __shfl_down_sync(~0u, low.w, 1);
            if (lane == 31) high = load_word(word + 8, first, last);
        }
        if (column < length) *reinterpret_cast<uint4*>(target + column) = shifted<shift>(low, high);
    }
}

extern "C" __global__ void __launch_bounds__(256) realign(Lines one, Lines other)
{
    Lines here = blockIdx.z ? other : one;
    int line = blockIdx.x * 8 + threadIdx.x / 32;
    if (line >= here.lines) return;
    const Element* last = here.from + (here.lines - 1) * here.lead + here.length;
    const Element* source = here.from + line * here.lead;
    Element* target = here.to + line * here.lead_to;
    switch (reinterpret_cast<unsigned long long>(source) / 2 % 8) {
        case 0: realign_line<0>(source, target, here.length, here.from, last); break;
        case 1: realign_line<1>(source, target, here.length, here.from, last); break;
        case 2: realign_line<2>(source, target, here.length, here.from, last); break;
        case 3: realign_line<3>(source, target, here.length, here.from, last); break;
        case 4: realign_line<4>(source, target, here.length, here.from, last); break;
        case 5: realign_line<5>(source, target, here.length, here.from, last); break;
        case 6: realign_line<6>(source, target, here.length, here.from, last); break;
        default: realign_line<7>(source, target, here.length, here.from, last); break;
    }
}
