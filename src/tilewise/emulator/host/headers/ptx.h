// for inline PTX: conversions of halves, and the instructions of tensor cores, of a warp. A register of A or B holds elements that are next to each other along k; lane 4g + q
// has those of row g of A, or column g of B, and columns 2q and 2q + 1 of row g of C. Sums are made in double and rounded once.
__device__ unsigned long __mma_a[1024][8], __mma_b[1024][4];
__device__ float __mma_value(unsigned int sign, unsigned int e, unsigned int m, int digits, int bias) {
    unsigned int bits = sign << 31 | (e + 127 - bias) << 23 | m << (23 - digits);
    float f = e ? *(float*)&bits : m * __uint_as_float((unsigned int)(128 - bias - digits) << 23);
    return sign && !e ? -f : f;
}
struct __mma_half { static const int elements = 2; __device__ static double of(unsigned int r, int i) { return __half_value((unsigned short)(r >> 16 * i)); } };
struct __mma_bf16 { static const int elements = 2; __device__ static double of(unsigned int r, int i) { return __uint_as_float(i ? r & 0xffff0000u : r << 16); } };
struct __mma_tf32 { static const int elements = 1; __device__ static double of(unsigned int r, int i) { return __uint_as_float(r & 0xffffe000u); } };
struct __mma_s8 { static const int elements = 4; __device__ static long of(unsigned int r, int i) { return (signed char)(r >> 8 * i); } };
struct __mma_u8 { static const int elements = 4; __device__ static long of(unsigned int r, int i) { return r >> 8 * i & 255; } };
struct __mma_e4m3 {
    static const int elements = 4;
    __device__ static double of(unsigned int r, int i) { unsigned int v = r >> 8 * i & 255; return (v & 127) == 127 ? __uint_as_float(0x7fc00000u) : __mma_value(v >> 7, v >> 3 & 15, v & 7, 3, 7); }
};
struct __mma_e5m2 {
    static const int elements = 4;
    __device__ static double of(unsigned int r, int i) { return __half_value((unsigned short)((r >> 8 * i & 255) << 8)); }
};
__device__ unsigned short __bf16_bits(float f) {
    unsigned int x = __float_as_uint(f);
    return f != f ? 0x7fff : (unsigned short)((x + 0x7fff + (x >> 16 & 1)) >> 16);
}
__device__ unsigned int __tf32_bits(float f) {  // to nearest, halves away from zero
    unsigned int x = __float_as_uint(f);
    return (x & 0x7f800000u) == 0x7f800000u ? x : (x + 0x1000) & 0xffffe000u;
}
struct __mma_double { static const int elements = 1; __device__ static double of(double r, int i) { return r; } };
template <class A, class B, class S, int RA, int RB, class C, class R> __device__ void __mma(C* c, const R* a, const R* b) {
    const int t = __thread_number(), first = t & ~31, lane = t & 31, halves = RA / RB;  // of the rows: g, and g + 8
    for (int r = 0; r < RA; ++r) *(R*)&__mma_a[t][r] = a[r];
    for (int r = 0; r < RB; ++r) *(R*)&__mma_b[t][r] = b[r];
    __wait(2);
    for (int h = 0; h < halves; ++h)
        for (int j = 0; j < 2; ++j) {
            const int row = first + (lane & ~3), column = first + (2 * (lane & 3) + j) * 4;
            S s = c[2 * h + j];
            for (int r = 0; r < RB; ++r)
                for (int q = 0; q < 4; ++q)
                    for (int e = 0; e < A::elements; ++e) s += A::of(*(R*)&__mma_a[row + q][r * halves + h], e) * B::of(*(R*)&__mma_b[column + q][r], e);
            c[2 * h + j] = (C)s;
        }
    __wait(2);
}
__device__ void __mma_halves(float* c, const unsigned int* r, int n) { for (int i = 0; i < n; ++i) { c[2 * i] = __half_value((unsigned short)r[i]); c[2 * i + 1] = __half_value((unsigned short)(r[i] >> 16)); } }
__device__ unsigned int __mma_packed(const float* c) { return __half_bits(c[0]) | (unsigned int)__half_bits(c[1]) << 16; }
__device__ int __mma_saturated(long v) { return v > 2147483647 ? 2147483647 : v < -2147483648 ? (int)-2147483648 : (int)v; }
// ldmatrix and stmatrix: lane 8j + i has the address of row i of matrix j, of 8 x 8 elements of 16 bits
template <int N, int TRANSPOSED> __device__ void __ldmatrix(unsigned int* r, const void* p) {
    const int t = __thread_number(), first = t & ~31, lane = t & 31;
    __lane_values[t] = (unsigned long)p; __wait(2);
    for (int j = 0; j < N; ++j) {
        r[j] = 0;
        for (int i = 0; i < 2; ++i) {
            const int row = TRANSPOSED ? 2 * (lane & 3) + i : lane >> 2, column = TRANSPOSED ? lane >> 2 : 2 * (lane & 3) + i;
            const unsigned short* at = (const unsigned short*)__lane_values[first + 8 * j + row] + column;
            __accessed(at, 0); r[j] |= (unsigned int)*at << 16 * i;
        }
    }
    __wait(2);
}
template <int N, int TRANSPOSED> __device__ void __stmatrix(const unsigned int* r, void* p) {
    const int t = __thread_number(), first = t & ~31, lane = t & 31;
    __lane_values[t] = (unsigned long)p; __wait(2);
    for (int j = 0; j < N; ++j)
        for (int i = 0; i < 2; ++i) {
            const int row = TRANSPOSED ? 2 * (lane & 3) + i : lane >> 2, column = TRANSPOSED ? lane >> 2 : 2 * (lane & 3) + i;
            unsigned short* at = (unsigned short*)__lane_values[first + 8 * j + row] + column;
            __accessed(at, 1); *at = (unsigned short)(r[j] >> 16 * i);
        }
    __wait(2);
}
