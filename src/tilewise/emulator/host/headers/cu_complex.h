// cuComplex.h.
typedef float2 cuFloatComplex; typedef double2 cuDoubleComplex; typedef cuFloatComplex cuComplex;
#define __CU_COMPLEX(C, R, make, real, imag, conj, add, sub, mul, div, abs, sqrt_) \
    __host__ __device__ C make(R x, R y) { C z; z.x = x; z.y = y; return z; } \
    __host__ __device__ R real(C z) { return z.x; } \
    __host__ __device__ R imag(C z) { return z.y; } \
    __host__ __device__ C conj(C z) { return make(z.x, -z.y); } \
    __host__ __device__ C add(C a, C b) { return make(a.x + b.x, a.y + b.y); } \
    __host__ __device__ C sub(C a, C b) { return make(a.x - b.x, a.y - b.y); } \
    __host__ __device__ C mul(C a, C b) { return make(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); } \
    __host__ __device__ C div(C a, C b) { R d = b.x * b.x + b.y * b.y; return make((a.x * b.x + a.y * b.y) / d, (a.y * b.x - a.x * b.y) / d); } \
    __host__ __device__ R abs(C z) { return sqrt_(z.x * z.x + z.y * z.y); }
__CU_COMPLEX(cuFloatComplex, float, make_cuFloatComplex, cuCrealf, cuCimagf, cuConjf, cuCaddf, cuCsubf, cuCmulf, cuCdivf, cuCabsf, sqrtf)
__CU_COMPLEX(cuDoubleComplex, double, make_cuDoubleComplex, cuCreal, cuCimag, cuConj, cuCadd, cuCsub, cuCmul, cuCdiv, cuCabs, sqrt)
__host__ __device__ cuComplex make_cuComplex(float x, float y) { return make_cuFloatComplex(x, y); }
