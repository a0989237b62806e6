// tensor_cores: a warp's products of a stage, fragments read from lines in their original layout.
//
// The mapping of k to threads is free as long as both operands use the same. Of 2-byte elements a thread has two pairs of k: where lines
//   are aligned to 4 bytes (EVEN) those of the instruction, from 2 t and 2 t + 8 on, else four neighbours from 4 t on, three words
//   shifted. Of 4-byte elements it has k = 2 t and 2 t + 1.
// Contiguous rows (columns) are mapped in pairs, because a word has two: row g + 8 h of the instruction is row 2 g + h of 16, and
//   columns of two fragments likewise. `row_of` and `column_of` invert the mapping.

#define FRAGMENTS_M (WARP_M / 16)
#define FRAGMENTS_N (WARP_N / 8)
#if SIZE == 2
#define STEP 16  // k of a product
#else
#define STEP 8
#endif

static __device__ __forceinline__ unsigned word_at(const char* at) { return *reinterpret_cast<const unsigned*>(at); }

// Of this thread's k in a STEP: the first ones, and the second.
template <bool EVEN> static __device__ __forceinline__ int first_k() {
    int t = threadIdx.x % 4;
    return SIZE == 2 && !EVEN ? 4 * t : 2 * t;
}
template <bool EVEN> static __device__ __forceinline__ int second_k() {
    return first_k<EVEN>() + (SIZE == 4 ? 1 : EVEN ? 8 : 2);
}

// Where this thread's first word lies in an operand's lines.
template <bool ALONG_K, bool EVEN> static __device__ __forceinline__ const char* first_word(const char* lines, int pitch) {
    int g = threadIdx.x % 32 / 4;
    return ALONG_K ? lines + g * pitch + first_k<EVEN>() * SIZE : lines + first_k<EVEN>() * pitch + g * (SIZE == 2 ? 4 : SIZE);
}

// From one STEP to the next.
template <bool ALONG_K> static __device__ __forceinline__ int step_bytes(int pitch) {
    return ALONG_K ? STEP * SIZE : STEP * pitch;
}

// The thread's k of one line in which k lies side by side.
template <bool EVEN> static __device__ __forceinline__ void load_along(unsigned& first, unsigned& second, const char* at) {
#if SIZE == 4
    first = word_at(at);
    second = word_at(at + 4);
#else
    if (EVEN) {
        first = word_at(at);
        second = word_at(at + 16);
    } else {
        unsigned odd = (unsigned)(unsigned long long)at & 2;
        const char* word = at - odd;
        unsigned low = word_at(word), middle = word_at(word + 4), high = word_at(word + 8);
        first = __funnelshift_r(low, middle, odd * 8);
        second = __funnelshift_r(middle, high, odd * 8);
    }
#endif
}

#if SIZE == 2
// Two elements side by side of a line, and of the next: two pairs of k.
template <bool EVEN> static __device__ __forceinline__ void load_pairs(
    unsigned& left, unsigned& right, const char* at, int pitch)
{
    if (EVEN) {
        unsigned one = word_at(at), next = word_at(at + pitch);
        left = __byte_perm(one, next, 0x5410);
        right = __byte_perm(one, next, 0x7632);
    } else {
        const Element* one = reinterpret_cast<const Element*>(at);
        const Element* next = reinterpret_cast<const Element*>(at + pitch);
        left = one[0] | (unsigned)next[0] << 16;
        right = one[1] | (unsigned)next[1] << 16;
    }
}
#endif

template <bool EVEN> static __device__ __forceinline__ void load_m(unsigned (&m)[FRAGMENTS_M][4], const char* at, int pitch) {
    #pragma unroll
    for (int i = 0; i < FRAGMENTS_M; ++i) {
#if M_ALONG_K
        load_along<EVEN>(m[i][0], m[i][2], at + 16 * i * pitch);
        load_along<EVEN>(m[i][1], m[i][3], at + (16 * i + 8) * pitch);
#elif SIZE == 2
        load_pairs<EVEN>(m[i][0], m[i][1], at + 32 * i, pitch);
        load_pairs<EVEN>(m[i][2], m[i][3], at + 32 * i + (EVEN ? 8 : 2) * pitch, pitch);
#else
        #pragma unroll
        for (int h = 0; h < 4; ++h) m[i][h] = word_at(at + 64 * i + h % 2 * 32 + h / 2 * pitch);
#endif
    }
}

template <bool EVEN> static __device__ __forceinline__ void load_n(unsigned (&n)[FRAGMENTS_N][2], const char* at, int pitch) {
#if N_ALONG_K
    #pragma unroll
    for (int j = 0; j < FRAGMENTS_N; ++j) load_along<EVEN>(n[j][0], n[j][1], at + 8 * j * pitch);
#elif SIZE == 2
    static_assert(FRAGMENTS_N % 2 == 0, "columns come in twos");
    #pragma unroll
    for (int j = 0; j < FRAGMENTS_N; j += 2) {
        load_pairs<EVEN>(n[j][0], n[j + 1][0], at + 16 * j, pitch);
        load_pairs<EVEN>(n[j][1], n[j + 1][1], at + 16 * j + (EVEN ? 8 : 2) * pitch, pitch);
    }
#else
    #pragma unroll
    for (int j = 0; j < FRAGMENTS_N; ++j) {
        n[j][0] = word_at(at + 32 * j);
        n[j][1] = word_at(at + 32 * j + pitch);
    }
#endif
}

// Mask of a word's elements before the end, with `left` of k left.
static __device__ __forceinline__ unsigned present(int k, int left) {
    return k >= left ? 0 : SIZE == 2 && k + 1 >= left ? 0xffffu : ~0u;
}

// Row of sum `e` of fragment `i`, and column of it in fragment `j`, both in the warp's part of the tile.
static __device__ __forceinline__ int row_of(int i, int e) {
    int g = threadIdx.x % 32 / 4, h = e / 2;
    return 16 * i + (SIZE == 2 && !M_ALONG_K ? 2 * g + h : g + 8 * h);
}
static __device__ __forceinline__ int column_of(int j, int e) {
    int at = 2 * (threadIdx.x % 4) + e % 2;
    return SIZE == 2 && !N_ALONG_K ? j / 2 * 16 + 2 * at + j % 2 : 8 * j + at;
}

#define EACH 4  // sums of a thread in a product of fragments
typedef float Sums[FRAGMENTS_M][FRAGMENTS_N][EACH];

// A STEP of k; without WHOLE only `left` of it.
template <bool EVEN, bool WHOLE> static __device__ __forceinline__ void multiply_step(
    Sums& sums, const char* at_m, const char* at_n, int pitch_m, int pitch_n, int left)
{
    unsigned m[FRAGMENTS_M][4], n[FRAGMENTS_N][2];
    load_m<EVEN>(m, at_m, pitch_m);
    load_n<EVEN>(n, at_n, pitch_n);
    if (!WHOLE) {
        unsigned first = present(first_k<EVEN>(), left), second = present(second_k<EVEN>(), left);
        #pragma unroll
        for (int i = 0; i < FRAGMENTS_M; ++i) m[i][0] &= first, m[i][1] &= first, m[i][2] &= second, m[i][3] &= second;
        #pragma unroll
        for (int j = 0; j < FRAGMENTS_N; ++j) n[j][0] &= first, n[j][1] &= second;
    }
#if SIZE == 4
    #pragma unroll
    for (int i = 0; i < FRAGMENTS_M; ++i)
        #pragma unroll
        for (int h = 0; h < 4; ++h) round_word(m[i][h]);
    #pragma unroll
    for (int j = 0; j < FRAGMENTS_N; ++j) round_word(n[j][0]), round_word(n[j][1]);
#endif
    #pragma unroll
    for (int i = 0; i < FRAGMENTS_M; ++i)
        #pragma unroll
        for (int j = 0; j < FRAGMENTS_N; ++j) multiply(sums[i][j], m[i], n[j]);
}

// A stage with `deep` of k.
template <bool EVEN> static __device__ __forceinline__ void multiply_stage(
    Sums& sums, const char* lines_m, const char* lines_n, int pitch_m, int pitch_n, int deep)
{
    const char* at_m = first_word<M_ALONG_K, EVEN>(lines_m, pitch_m);
    const char* at_n = first_word<N_ALONG_K, EVEN>(lines_n, pitch_n);
    int step_m = step_bytes<M_ALONG_K>(pitch_m), step_n = step_bytes<N_ALONG_K>(pitch_n);
    #pragma unroll UNROLL
    for (; deep >= STEP; deep -= STEP) {
        multiply_step<EVEN, true>(sums, at_m, at_n, pitch_m, pitch_n, STEP);
        at_m += step_m;
        at_n += step_n;
    }
    if (deep > 0) multiply_step<EVEN, false>(sums, at_m, at_n, pitch_m, pitch_n, deep);
}
