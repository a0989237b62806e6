// ends: the words of the long operand that may reach over its ends.

// The operand's first and last word, which may reach over its ends: 0 there. Brought by elements before anything is multiplied;
// all other words are loaded whole.
__shared__ __align__(16) Element ends[16];

static __device__ __forceinline__ const Element* end_of_long(const Lines& p) {
    return p.long_at + (p.length - 1) * p.lead + p.k;
}

static __device__ __forceinline__ void bring_ends(const Lines& p) {
    const Element* last = end_of_long(p);
    if (threadIdx.x >= 16 || elements_after_boundary(p.long_at) + elements_after_boundary(last) == 0) return;
    const Element* word = threadIdx.x < 8 ? p.long_at : last - 1;
    const Element* at = word - elements_after_boundary(word) + threadIdx.x % 8;
    ends[threadIdx.x] = at >= p.long_at && at < last ? *at : (Element)0;
}

// One that may reach over the operand's ends.
static __device__ __forceinline__ uint4 end_word(const Element* at, const Lines& p) {
    const uint4* held = reinterpret_cast<const uint4*>(ends);
    const Element* last = end_of_long(p);
    if (at < p.long_at) return held[0];
    return at + 8 <= last ? whole_word(at) : at < last ? held[1] : make_uint4(0, 0, 0, 0);
}
