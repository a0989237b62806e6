// __half as 16 bits; arithmetic is done in float and rounded, as on cards.
struct __half { unsigned short _bits; __host__ __device__ __half() {} __host__ __device__ __half(float f); __host__ __device__ operator float() const; };
typedef __half half;
__host__ __device__ float __half_value(unsigned short h) {
    unsigned int sign = (unsigned int)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023, bits;
    if (e == 0) { float f = m * 5.9604644775390625e-08f; return sign ? -f : f; }
    bits = sign | (e == 31 ? 0x7f800000u : (e + 112) << 23) | m << 13;
    return *(float*)&bits;
}
__host__ __device__ unsigned short __half_bits(float f) {
    unsigned int x = *(unsigned int*)&f, sign = x >> 16 & 0x8000, a = x & 0x7fffffff;
    if (a >= 0x7f800000) return sign | (a > 0x7f800000 ? 0x7fff : 0x7c00);
    if (a >= 0x477ff000) return sign | 0x7c00;
    if (a < 0x38800000) { float s = *(float*)&a * 16777216.0f; unsigned int n = (unsigned int)s; float rest = s - n; if (rest > 0.5f || (rest == 0.5f && (n & 1))) ++n; return sign | n; }
    unsigned int r = a + 0xfff + (a >> 13 & 1); return sign | ((r - 0x38000000) >> 13);
}
__half::__half(float f) { _bits = __half_bits(f); }
__half::operator float() const { return __half_value(_bits); }
__host__ __device__ __half __float2half(float f) { __half h; h._bits = __half_bits(f); return h; }
__host__ __device__ __half __float2half_rn(float f) { return __float2half(f); }
__host__ __device__ __half __double2half(double f) { return __float2half((float)f); }
__host__ __device__ __half __int2half_rn(int n) { return __float2half((float)n); }
__host__ __device__ float __half2float(__half h) { return __half_value(h._bits); }
#define __HALF_OPERATOR(op, name) __host__ __device__ __half operator op(__half a, __half b) { return __float2half(__half2float(a) op __half2float(b)); } \
    __device__ __half name(__half a, __half b) { return __float2half(__half2float(a) op __half2float(b)); }
__HALF_OPERATOR(+, __hadd) __HALF_OPERATOR(-, __hsub) __HALF_OPERATOR(*, __hmul) __HALF_OPERATOR(/, __hdiv)
__host__ __device__ __half& operator+=(__half& a, __half b) { a = a + b; return a; }
__device__ __half __hfma(__half a, __half b, __half c) { return __float2half(fmaf(__half2float(a), __half2float(b), __half2float(c))); }
__device__ bool __hgt(__half a, __half b) { return __half2float(a) > __half2float(b); }
__device__ bool __hlt(__half a, __half b) { return __half2float(a) < __half2float(b); }
