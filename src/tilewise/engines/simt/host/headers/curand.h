// cuRAND's host side: uniform and normal numbers, the same in every run (not the library's own sequence).
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
typedef curandState curandStateXORWOW_t;
typedef curandState curandStatePhilox4_32_10_t;
#define CURAND_CALL(x) (x)
