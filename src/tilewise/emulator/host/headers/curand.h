// cuRAND's host API: uniform and normal numbers, deterministic, but not the library's sequence.
typedef void* curandGenerator_t;
typedef enum { CURAND_STATUS_SUCCESS = 0, CURAND_STATUS_LAUNCH_FAILURE = 201 } curandStatus_t;
typedef enum { CURAND_RNG_PSEUDO_DEFAULT = 100, CURAND_RNG_PSEUDO_XORWOW = 101, CURAND_RNG_PSEUDO_MRG32K3A = 121, CURAND_RNG_PSEUDO_MTGP32 = 141, CURAND_RNG_PSEUDO_MT19937 = 142, CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161 } curandRngType_t;
int __curand_fill(void* p, size_t n, int kind, double mean, double dev);
int __curand_seed(unsigned long long seed);
curandStatus_t curandCreateGenerator(curandGenerator_t* g, curandRngType_t t) { *g = (void*)g; return CURAND_STATUS_SUCCESS; }
curandStatus_t curandDestroyGenerator(curandGenerator_t g) { return CURAND_STATUS_SUCCESS; }
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t g, unsigned long long seed) { return (curandStatus_t)__curand_seed(seed); }
curandStatus_t curandGenerateUniform(curandGenerator_t g, float* p, size_t n) { return (curandStatus_t)__curand_fill(p, n, 0, 0, 1); }
curandStatus_t curandGenerateUniformDouble(curandGenerator_t g, double* p, size_t n) { return (curandStatus_t)__curand_fill(p, n, 1, 0, 1); }
curandStatus_t curandGenerateNormal(curandGenerator_t g, float* p, size_t n, float mean, float dev) { return (curandStatus_t)__curand_fill(p, n, 2, mean, dev); }
typedef struct { unsigned int x[12]; } curandState;
typedef curandState curandState_t;
typedef curandState curandStateXORWOW_t; typedef curandState curandStateXORWOW;
typedef curandState curandStatePhilox4_32_10_t;
#define CURAND_CALL(x) (x)
// The device API: one generator for all types (xorwow, but not the library's sequences).
__device__ unsigned int curand(curandState* s) {
    unsigned int t = s->x[0] ^ (s->x[0] >> 2); s->x[0] = s->x[1]; s->x[1] = s->x[2]; s->x[2] = s->x[3]; s->x[3] = s->x[4];
    s->x[4] = (s->x[4] ^ (s->x[4] << 4)) ^ (t ^ (t << 1)); s->x[5] += 362437; return s->x[4] + s->x[5];
}
__device__ void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset, curandState* s) {
    unsigned long z = seed * 6364136223846793005ul + sequence * 1442695040888963407ul + offset + 88172645463325252ul;
    for (int i = 0; i < 12; ++i) { z += 11400714819323198485ul; unsigned long y = (z ^ (z >> 30)) * 13787848793156543929ul; y = (y ^ (y >> 27)) * 10723151780598845931ul; s->x[i] = (unsigned int)(y >> 32) | 1u; }
}
__device__ float curand_uniform(curandState* s) { return (curand(s) >> 8) * 5.9604644775390625e-08f + 5.9604644775390625e-08f; }
__device__ double curand_uniform_double(curandState* s) { return (curand(s) + 1.0) * 2.3283064365386963e-10; }
__device__ float curand_normal(curandState* s) { float u = curand_uniform(s); float v = curand_uniform(s); return sqrtf(-2.0f * logf(u)) * cosf(6.2831853f * v); }
__device__ double curand_normal_double(curandState* s) { double u = curand_uniform_double(s); double v = curand_uniform_double(s); return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v); }
__device__ float4 curand_uniform4(curandState* s) { float4 r; r.x = curand_uniform(s); r.y = curand_uniform(s); r.z = curand_uniform(s); r.w = curand_uniform(s); return r; }
__device__ float4 curand_normal4(curandState* s) { float4 r; r.x = curand_normal(s); r.y = curand_normal(s); r.z = curand_normal(s); r.w = curand_normal(s); return r; }
