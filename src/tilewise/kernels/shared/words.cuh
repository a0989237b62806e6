// words: loads and stores of 2-byte elements by aligned 16 bytes (a word), also at the ends of a matrix.

// The eight elements at `at`, a 16-byte boundary; 0 for those outside [first, last).
static __device__ __forceinline__ uint4 load_word(const Element* at, const Element* first, const Element* last) {
    if (at >= first && at + 8 <= last) return __ldg(reinterpret_cast<const uint4*>(at));
    union { uint4 word; Element lane[8]; } pieces;
    #pragma unroll
    for (int i = 0; i < 8; ++i) pieces.lane[i] = at + i >= first && at + i < last ? at[i] : (Element)0;
    return pieces.word;
}

// An address's misalignment from 16 bytes, in elements.
static __device__ __forceinline__ int elements_after_boundary(const Element* at) {
    return (int)(reinterpret_cast<unsigned long long>(at) / sizeof(Element) % 8);
}

static __device__ __forceinline__ Element element_of(uint4 word, int i) {
    unsigned pair = i / 2 == 0 ? word.x : i / 2 == 1 ? word.y : i / 2 == 2 ? word.z : word.w;
    return (Element)(pair >> i % 2 * 16);
}

// The first `count` elements, and zeros.
static __device__ __forceinline__ uint4 first_of(uint4 word, int count) {
    unsigned of[4] = {word.x, word.y, word.z, word.w};
    #pragma unroll
    for (int j = 0; j < 4; ++j) of[j] = count >= 2 * j + 2 ? of[j] : count == 2 * j + 1 ? of[j] & 0xffffu : 0;
    return make_uint4(of[0], of[1], of[2], of[3]);
}

// The 16 bytes of (low, high) from element `shift` on, for a shift at run time.
static __device__ __forceinline__ uint4 shifted_by(uint4 low, uint4 high, int shift) {
    unsigned w0 = low.x, w1 = low.y, w2 = low.z, w3 = low.w, w4 = high.x, w5 = high.y, w6 = high.z, w7 = high.w;
    if (shift & 4) w0 = w2, w1 = w3, w2 = w4, w3 = w5, w4 = w6, w5 = w7;
    if (shift & 2) w0 = w1, w1 = w2, w2 = w3, w3 = w4, w4 = w5;
    int bits = shift % 2 * 16;
    return make_uint4(__funnelshift_r(w0, w1, bits), __funnelshift_r(w1, w2, bits), __funnelshift_r(w2, w3, bits),
                      __funnelshift_r(w3, w4, bits));
}

// Lane i's stores of a row of `width` staged elements (8 lanes a row or more): 16 bytes between the line's 16-byte boundaries, and
// one element before the first boundary and behind the last. The 16 bytes behind the staged row are readable.
static __device__ __forceinline__ void store_pieces(Element* line, const Element* staged, int i, int width) {
    int head = (8 - elements_after_boundary(line)) % 8, at = head + i * 8, tail = head + (width - head) / 8 * 8;
    if (at + 8 <= width) {
        uint4 low = reinterpret_cast<const uint4*>(staged)[i];
        if (head) low = shifted_by(low, reinterpret_cast<const uint4*>(staged)[i + 1], head);
        *reinterpret_cast<uint4*>(line + at) = low;
    }
    if (i < head && i < width) line[i] = staged[i];
    if (width > head && tail + i < width) line[tail + i] = staged[tail + i];
}
