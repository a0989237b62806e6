// realign: rows of 2-byte elements that start anywhere become rows that start on 128-byte boundaries.
//
// Layout: source row r starts at from + r * ld, at any even address; target row r at to + r * ld_to, ld_to a multiple of 64.
//   A warp takes 256 elements of a row: every lane loads one aligned 16-byte word, borrows its neighbour's, and shifts the
//   pair by the row's own offset. The offset is the same for the whole warp, so the switch over its 8 values is no branch.
// Edges: words that stick out of the matrix as a whole are read element by element; past a row's end anything may follow.
// Barrier: none; neighbours exchange words by shuffle.

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

extern "C" __global__ void __launch_bounds__(256) realign(
    const Element* __restrict__ from, Element* __restrict__ to, int rows, int cols, long long ld, long long ld_to)
{
    int lane = threadIdx.x % 32;
    const Element* last = from + (rows - 1) * ld + cols;
    int chunks = (cols + 255) / 256;
    long long warps = (long long)gridDim.x * 8;
    for (long long job = blockIdx.x * 8ll + threadIdx.x / 32; job < (long long)rows * chunks; job += warps) {
        long long r = job / chunks;
        int start = (int)(job % chunks) * 256;
        const Element* source = from + r * ld + start;
        int shift = (int)(reinterpret_cast<unsigned long long>(source) / 2 % 8);
        const Element* word = source - shift + lane * 8;
        uint4 low = load_word(word, from, last), high;
        high.x = __shfl_down_sync(~0u, low.x, 1);
        high.y = __shfl_down_sync(~0u, low.y, 1);
        high.z = __shfl_down_sync(~0u, low.z, 1);
        high.w = __shfl_down_sync(~0u, low.w, 1);
        if (lane == 31 && shift) high = load_word(word + 8, from, last);
        uint4 made;
        switch (shift) {
            case 0: made = low; break;
            case 1: made = shifted<1>(low, high); break;
            case 2: made = shifted<2>(low, high); break;
            case 3: made = shifted<3>(low, high); break;
            case 4: made = shifted<4>(low, high); break;
            case 5: made = shifted<5>(low, high); break;
            case 6: made = shifted<6>(low, high); break;
            default: made = shifted<7>(low, high); break;
        }
        int column = start + lane * 8;
        if (column < cols) *reinterpret_cast<uint4*>(to + r * ld_to + column) = made;
    }
}
