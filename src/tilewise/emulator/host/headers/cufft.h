// cuFFT reference: transforms of one to three dimensions and batches of them, unscaled.
typedef int cufftHandle; typedef float cufftReal; typedef double cufftDoubleReal; typedef cuComplex cufftComplex; typedef cuDoubleComplex cufftDoubleComplex;
typedef enum { CUFFT_SUCCESS = 0, CUFFT_INVALID_PLAN = 1, CUFFT_ALLOC_FAILED = 2, CUFFT_INVALID_TYPE = 3, CUFFT_INVALID_VALUE = 4, CUFFT_INTERNAL_ERROR = 5, CUFFT_EXEC_FAILED = 6, CUFFT_SETUP_FAILED = 7, CUFFT_INVALID_SIZE = 8 } cufftResult;
typedef cufftResult cufftResult_t;
typedef enum { CUFFT_R2C = 42, CUFFT_C2R = 44, CUFFT_C2C = 41, CUFFT_D2Z = 106, CUFFT_Z2D = 108, CUFFT_Z2Z = 105 } cufftType;
#define CUFFT_FORWARD (-1)
#define CUFFT_INVERSE 1
int __cufft_plan(int kind, int rank, int a, int b, int c, int batch);
int __cufft(int plan, int kind, const void* from, void* to, int direction);
cufftResult __cufft_made(cufftHandle* p, int plan) { *p = plan; return plan > 0 ? CUFFT_SUCCESS : CUFFT_INVALID_SIZE; }
cufftResult cufftPlan1d(cufftHandle* p, int n, cufftType t, int batch) { return __cufft_made(p, __cufft_plan(t, 1, n, 1, 1, batch)); }
cufftResult cufftPlan2d(cufftHandle* p, int a, int b, cufftType t) { return __cufft_made(p, __cufft_plan(t, 2, a, b, 1, 1)); }
cufftResult cufftPlan3d(cufftHandle* p, int a, int b, int c, cufftType t) { return __cufft_made(p, __cufft_plan(t, 3, a, b, c, 1)); }
cufftResult cufftPlanMany(cufftHandle* p, int rank, int* n, int* inembed, int istride, int idist, int* onembed, int ostride, int odist, cufftType t, int batch) {
    if (istride > 1 || ostride > 1) return CUFFT_INVALID_VALUE;
    return __cufft_made(p, __cufft_plan(t, rank, n[0], rank > 1 ? n[1] : 1, rank > 2 ? n[2] : 1, batch));
}
cufftResult cufftCreate(cufftHandle* p) { *p = 0; return CUFFT_SUCCESS; }
cufftResult cufftMakePlan1d(cufftHandle& p, int n, cufftType t, int batch, size_t* size) { if (size) *size = 0; return cufftPlan1d(&p, n, t, batch); }
cufftResult cufftMakePlan2d(cufftHandle& p, int a, int b, cufftType t, size_t* size) { if (size) *size = 0; return cufftPlan2d(&p, a, b, t); }
cufftResult cufftDestroy(cufftHandle p) { return CUFFT_SUCCESS; }
cufftResult cufftSetStream(cufftHandle p, cudaStream_t s) { return CUFFT_SUCCESS; }
cufftResult cufftExecC2C(cufftHandle p, cufftComplex* from, cufftComplex* to, int direction) { return (cufftResult)__cufft(p, CUFFT_C2C, from, to, direction); }
cufftResult cufftExecZ2Z(cufftHandle p, cufftDoubleComplex* from, cufftDoubleComplex* to, int direction) { return (cufftResult)__cufft(p, CUFFT_Z2Z, from, to, direction); }
cufftResult cufftExecR2C(cufftHandle p, cufftReal* from, cufftComplex* to) { return (cufftResult)__cufft(p, CUFFT_R2C, from, to, -1); }
cufftResult cufftExecD2Z(cufftHandle p, cufftDoubleReal* from, cufftDoubleComplex* to) { return (cufftResult)__cufft(p, CUFFT_D2Z, from, to, -1); }
cufftResult cufftExecC2R(cufftHandle p, cufftComplex* from, cufftReal* to) { return (cufftResult)__cufft(p, CUFFT_C2R, from, to, 1); }
cufftResult cufftExecZ2D(cufftHandle p, cufftDoubleComplex* from, cufftDoubleReal* to) { return (cufftResult)__cufft(p, CUFFT_Z2D, from, to, 1); }
