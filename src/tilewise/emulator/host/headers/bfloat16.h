// __nv_bfloat16: the upper half of a float, rounded to even; arithmetic is done in float, as on GPUs.
struct __nv_bfloat16 { unsigned short _bits; __host__ __device__ __nv_bfloat16() {} __host__ __device__ __nv_bfloat16(float f); __host__ __device__ operator float() const; };
typedef __nv_bfloat16 nv_bfloat16;
__host__ __device__ float __bfloat16_value(unsigned short h) { unsigned int bits = (unsigned int)h << 16; return *(float*)&bits; }
__host__ __device__ unsigned short __bfloat16_bits(float f) {
    unsigned int x = *(unsigned int*)&f;
    if ((x & 0x7fffffff) > 0x7f800000) return 0x7fff;
    return (unsigned short)((x + 0x7fff + (x >> 16 & 1)) >> 16);
}
__nv_bfloat16::__nv_bfloat16(float f) { _bits = __bfloat16_bits(f); }
__nv_bfloat16::operator float() const { return __bfloat16_value(_bits); }
__host__ __device__ __nv_bfloat16 __float2bfloat16(float f) { __nv_bfloat16 h; h._bits = __bfloat16_bits(f); return h; }
__host__ __device__ __nv_bfloat16 __float2bfloat16_rn(float f) { return __float2bfloat16(f); }
__host__ __device__ __nv_bfloat16 __double2bfloat16(double f) { return __float2bfloat16((float)f); }
__host__ __device__ __nv_bfloat16 __int2bfloat16_rn(int n) { return __float2bfloat16((float)n); }
__host__ __device__ float __bfloat162float(__nv_bfloat16 h) { return __bfloat16_value(h._bits); }
#define __BFLOAT16_OPERATOR(op, name) __host__ __device__ __nv_bfloat16 operator op(__nv_bfloat16 a, __nv_bfloat16 b) { return __float2bfloat16(__bfloat162float(a) op __bfloat162float(b)); } \
    __host__ __device__ __nv_bfloat16 name(__nv_bfloat16 a, __nv_bfloat16 b) { return __float2bfloat16(__bfloat162float(a) op __bfloat162float(b)); }
__BFLOAT16_OPERATOR(+, __hadd) __BFLOAT16_OPERATOR(-, __hsub) __BFLOAT16_OPERATOR(*, __hmul) __BFLOAT16_OPERATOR(/, __hdiv)
__host__ __device__ __nv_bfloat16& operator+=(__nv_bfloat16& a, __nv_bfloat16 b) { a = a + b; return a; }
__host__ __device__ __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) { return __float2bfloat16(fmaf(__bfloat162float(a), __bfloat162float(b), __bfloat162float(c))); }
struct __nv_bfloat162 { __nv_bfloat16 x, y; __host__ __device__ __nv_bfloat162() {} __host__ __device__ __nv_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { x = a; y = b; } };
typedef __nv_bfloat162 nv_bfloat162;
__host__ __device__ __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
__host__ __device__ __nv_bfloat162 __floats2bfloat162_rn(float a, float b) { return __nv_bfloat162(__float2bfloat16(a), __float2bfloat16(b)); }
__host__ __device__ __nv_bfloat162 __float2bfloat162_rn(float a) { return __floats2bfloat162_rn(a, a); }
__host__ __device__ float2 __bfloat1622float2(__nv_bfloat162 h) { return make_float2(__bfloat162float(h.x), __bfloat162float(h.y)); }
