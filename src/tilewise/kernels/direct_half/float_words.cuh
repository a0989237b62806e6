// float_words: 16 bytes of float32 at a time, and their rounding to tf32.

// How many elements an address lies after a 16-byte boundary.
static __device__ __forceinline__ int elements_after_boundary(const Element* at) {
    return (int)(reinterpret_cast<unsigned long long>(at) / sizeof(Element) % 4);
}

// 16 bytes from the 32 of (low, high), `shift` elements on, for a shift known only at run time.
static __device__ __forceinline__ uint4 shifted_by(uint4 low, uint4 high, int shift) {
    unsigned w0 = low.x, w1 = low.y, w2 = low.z, w3 = low.w, w4 = high.x, w5 = high.y, w6 = high.z;
    if (shift & 2) w0 = w2, w1 = w3, w2 = w4, w3 = w5, w4 = w6;
    if (shift & 1) w0 = w1, w1 = w2, w2 = w3, w3 = w4;
    return make_uint4(w0, w1, w2, w3);
}

static __device__ __forceinline__ uint4 rounded(uint4 word) {
    round_word(word.x);
    round_word(word.y);
    round_word(word.z);
    round_word(word.w);
    return word;
}

static __device__ __forceinline__ Element rounded(Element x) {
    unsigned word = __float_as_uint(x);
    round_word(word);
    return __uint_as_float(word);
}
