// ends: the first and the last word of the long operand, which may reach outside it (0 there). Loaded by elements before the main
// loop; all other words are loaded whole.
__shared__ __align__(16) Element ends[16];

static __device__ __forceinline__ const Element* end_of_long(const Lines& p) {
    return p.long_at + (p.length - 1) * p.lead + p.k;
}

static __device__ __forceinline__ void load_ends(const Lines& p) {
    const Element* last = end_of_long(p);
    if (threadIdx.x >= 16 || elements_after_boundary(p.long_at) + elements_after_boundary(last) == 0) return;
    const Element* word = threadIdx.x < 8 ? p.long_at : last - 1;
    const Element* at = word - elements_after_boundary(word) + threadIdx.x % 8;
    ends[threadIdx.x] = at >= p.long_at && at < last ? *at : (Element)0;
}

// A word that may reach outside the operand.
static __device__ __forceinline__ uint4 end_word(const Element* at, const Lines& p) {
    const uint4* held = reinterpret_cast<const uint4*>(ends);
    const Element* last = end_of_long(p);
    if (at < p.long_at) return held[0];
    return at + 8 <= last ? whole_word(at) : at < last ? held[1] : make_uint4(0, 0, 0, 0);
}
