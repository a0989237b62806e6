// Copies from global to shared memory through registers, for cards without cp.async (Turing). Groups need no wait: the thread that
// loads also stores.

static __device__ __forceinline__ void load_words(unsigned (&to)[1], const unsigned char* from) {
    to[0] = *reinterpret_cast<const unsigned*>(from);
}

static __device__ __forceinline__ void load_words(unsigned (&to)[2], const unsigned char* from) {
    uint2 words = *reinterpret_cast<const uint2*>(from);
    to[0] = words.x, to[1] = words.y;
}

static __device__ __forceinline__ void load_words(unsigned (&to)[4], const unsigned char* from) {
    uint4 words = *reinterpret_cast<const uint4*>(from);
    to[0] = words.x, to[1] = words.y, to[2] = words.z, to[3] = words.w;
}

// With CHECKED the first `valid` bytes, and then zeros.
template <bool CHECKED, int WORDS>
static __device__ __forceinline__ void load(unsigned (&to)[WORDS], const unsigned char* from, int valid)
{
    if (!CHECKED || valid == WORDS * 4) {
        load_words(to, from);
        return;
    }
    #pragma unroll
    for (int b = 0; b < WORDS * 4; b += SIZE) {
        if (b % 4 == 0) to[b / 4] = 0;
        if (b < valid)
            to[b / 4] |= (SIZE == 1 ? from[b] : *reinterpret_cast<const unsigned short*>(from + b)) << b % 4 * 8;
    }
}

static __device__ __forceinline__ void put(unsigned to, const unsigned (&words)[1]) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(words[0]) : "memory");
}

static __device__ __forceinline__ void put(unsigned to, const unsigned (&words)[2]) {
    asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(to), "r"(words[0]), "r"(words[1]) : "memory");
}

static __device__ __forceinline__ void put(unsigned to, const unsigned (&words)[4]) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};"
                 ::"r"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]) : "memory");
}

static __device__ __forceinline__ void close_group() {}

template <int pending> static __device__ __forceinline__ void wait_groups() {}
