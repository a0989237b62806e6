// lines: a matrix as lines (contiguous rows or columns) of 2-byte elements with any alignment, and their aligned copy.
//
// Layout: source line r starts at from + r * lead, at any even address; target line r at to + r * lead_to, a multiple of 64.
//   A segment of a line is WORDS * 512 bytes: 16 neighbouring bytes for each lane of a warp, WORDS times.

#define SEGMENT (256 * WORDS)

struct Lines { const Element* from; Element* to; int lines; int length; long long lead; long long lead_to; };

// The 16 bytes of (low, high) from element `shift` on.
template <int shift> static __device__ __forceinline__ uint4 shifted(uint4 low, uint4 high) {
    unsigned words[9] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w, 0};
    unsigned made[4];
    #pragma unroll
    for (int i = 0; i < 4; ++i)
        made[i] = shift % 2 ? __funnelshift_r(words[i + shift / 2], words[i + shift / 2 + 1], 16) : words[i + shift / 2];
    return make_uint4(made[0], made[1], made[2], made[3]);
}
