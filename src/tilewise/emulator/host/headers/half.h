// __half as 16 bits; arithmetic is done in float and rounded, as on GPUs.
struct __half { unsigned short _bits; __host__ __device__ __half() {} __host__ __device__ __half(float f); __host__ __device__ operator float() const; };
typedef __half half;
typedef __half __nv_half;
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
    __host__ __device__ __half name(__half a, __half b) { return __float2half(__half2float(a) op __half2float(b)); }
__HALF_OPERATOR(+, __hadd) __HALF_OPERATOR(-, __hsub) __HALF_OPERATOR(*, __hmul) __HALF_OPERATOR(/, __hdiv)
__host__ __device__ __half& operator+=(__half& a, __half b) { a = a + b; return a; }
__host__ __device__ __half __hfma(__half a, __half b, __half c) { return __float2half(fmaf(__half2float(a), __half2float(b), __half2float(c))); }
__host__ __device__ bool __hgt(__half a, __half b) { return __half2float(a) > __half2float(b); }
__host__ __device__ bool __hlt(__half a, __half b) { return __half2float(a) < __half2float(b); }
__host__ __device__ __half& operator-=(__half& a, __half b) { a = a - b; return a; }
__host__ __device__ __half& operator*=(__half& a, __half b) { a = a * b; return a; }
__host__ __device__ __half operator-(__half a) { __half h; h._bits = a._bits ^ 0x8000; return h; }
__host__ __device__ bool __hge(__half a, __half b) { return __half2float(a) >= __half2float(b); }
__host__ __device__ bool __hle(__half a, __half b) { return __half2float(a) <= __half2float(b); }
__host__ __device__ bool __heq(__half a, __half b) { return __half2float(a) == __half2float(b); }
__host__ __device__ __half __hmax(__half a, __half b) { return __float2half(fmaxf(__half2float(a), __half2float(b))); }
__host__ __device__ __half __hmin(__half a, __half b) { return __float2half(fminf(__half2float(a), __half2float(b))); }
__host__ __device__ __half __hneg(__half a) { return -a; }
__host__ __device__ __half __habs(__half a) { __half h; h._bits = a._bits & 0x7fff; return h; }
__host__ __device__ __half __ushort_as_half(unsigned short x) { return *(__half*)&x; }
__host__ __device__ __half __short_as_half(short x) { return *(__half*)&x; }
__host__ __device__ unsigned short __half_as_ushort(__half x) { return *(unsigned short*)&x; }
__host__ __device__ short __half_as_short(__half x) { return *(short*)&x; }
__device__ __half hexp(__half a) { return __float2half(expf(__half2float(a))); }
__device__ __half hlog(__half a) { return __float2half(logf(__half2float(a))); }
__device__ __half hsqrt(__half a) { return __float2half(sqrtf(__half2float(a))); }
__device__ __half hrcp(__half a) { return __float2half(1.0f / __half2float(a)); }
struct __half2 { __half x, y; __host__ __device__ __half2() {} __host__ __device__ __half2(__half a, __half b) { x = a; y = b; } };
typedef __half2 half2;
__host__ __device__ __half2 __halves2half2(__half a, __half b) { return __half2(a, b); }
__host__ __device__ __half2 make_half2(__half a, __half b) { return __half2(a, b); }
__host__ __device__ __half2 __half2half2(__half a) { return __half2(a, a); }
__host__ __device__ __half2 __float2half2_rn(float f) { return __half2(__float2half(f), __float2half(f)); }
__host__ __device__ __half2 __floats2half2_rn(float a, float b) { return __half2(__float2half(a), __float2half(b)); }
__host__ __device__ __half2 __float22half2_rn(float2 f) { return __half2(__float2half(f.x), __float2half(f.y)); }
__host__ __device__ float2 __half22float2(__half2 h) { return make_float2(__half2float(h.x), __half2float(h.y)); }
__host__ __device__ float __low2float(__half2 h) { return __half2float(h.x); }
__host__ __device__ float __high2float(__half2 h) { return __half2float(h.y); }
__host__ __device__ __half __low2half(__half2 h) { return h.x; }
__host__ __device__ __half __high2half(__half2 h) { return h.y; }
#define __HALF2_OPERATOR(op, name) __host__ __device__ __half2 operator op(__half2 a, __half2 b) { return __half2(a.x op b.x, a.y op b.y); } \
    __host__ __device__ __half2 name(__half2 a, __half2 b) { return __half2(a.x op b.x, a.y op b.y); }
__HALF2_OPERATOR(+, __hadd2) __HALF2_OPERATOR(-, __hsub2) __HALF2_OPERATOR(*, __hmul2) __HALF2_OPERATOR(/, __h2div)
__host__ __device__ __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return __half2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }
__host__ __device__ __half2 __hmax2(__half2 a, __half2 b) { return __half2(__hmax(a.x, b.x), __hmax(a.y, b.y)); }
__device__ __half2 h2exp(__half2 a) { return __half2(hexp(a.x), hexp(a.y)); }
