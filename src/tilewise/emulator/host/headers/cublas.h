// cuBLAS reference: vectors and column-major matrices. Scalars are in host memory.
typedef void* cublasHandle_t;
typedef enum { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_INITIALIZED = 1, CUBLAS_STATUS_ALLOC_FAILED = 3, CUBLAS_STATUS_INVALID_VALUE = 7, CUBLAS_STATUS_ARCH_MISMATCH = 8, CUBLAS_STATUS_MAPPING_ERROR = 11, CUBLAS_STATUS_INTERNAL_ERROR = 14, CUBLAS_STATUS_NOT_SUPPORTED = 15, CUBLAS_STATUS_LICENSE_ERROR = 16, CUBLAS_STATUS_EXECUTION_FAILED = 13 } cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;
typedef enum { CUBLAS_DEFAULT_MATH = 0, CUBLAS_TENSOR_OP_MATH = 1, CUBLAS_PEDANTIC_MATH = 2, CUBLAS_TF32_TENSOR_OP_MATH = 3 } cublasMath_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
int __cublas_gemm(int double_, int ta, int tb, int m, int n, int k, double alpha, const void* a, int lda, const void* b, int ldb, double beta, void* c, int ldc);
int __cublas_vector(int what, int double_, int n, double alpha, const void* x, int incx, void* y, int incy, void* result);
#define CUBLAS_VERSION 120400
cublasStatus_t cublasCreate(cublasHandle_t* h) { *h = (void*)h; return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasDestroy(cublasHandle_t h) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetStream(cublasHandle_t h, cudaStream_t s) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetMathMode(cublasHandle_t h, cublasMath_t m) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSgemm(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const float* alpha, const float* a, int lda, const float* b, int ldb, const float* beta, float* c, int ldc) {
    return (cublasStatus_t)__cublas_gemm(0, ta, tb, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc);
}
cublasStatus_t cublasDgemm(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const double* alpha, const double* a, int lda, const double* b, int ldb, const double* beta, double* c, int ldc) {
    return (cublasStatus_t)__cublas_gemm(1, ta, tb, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc);
}
// cublasGemmEx: scalars have the compute type; a half is passed by its bits.
typedef enum cudaDataType_t { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_8I = 3, CUDA_C_32F = 4, CUDA_C_64F = 5, CUDA_C_16F = 6, CUDA_C_8I = 7, CUDA_R_8U = 8, CUDA_C_8U = 9, CUDA_R_32I = 10, CUDA_C_32I = 11, CUDA_R_32U = 12, CUDA_C_32U = 13, CUDA_R_16BF = 14, CUDA_C_16BF = 15 } cudaDataType;
typedef cudaDataType cublasDataType_t;
typedef enum { CUBLAS_COMPUTE_16F = 64, CUBLAS_COMPUTE_16F_PEDANTIC = 65, CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_PEDANTIC = 69, CUBLAS_COMPUTE_64F = 70, CUBLAS_COMPUTE_64F_PEDANTIC = 71, CUBLAS_COMPUTE_32I = 72, CUBLAS_COMPUTE_32I_PEDANTIC = 73, CUBLAS_COMPUTE_32F_FAST_16F = 74, CUBLAS_COMPUTE_32F_FAST_16BF = 75, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 } cublasComputeType_t;
typedef enum { CUBLAS_GEMM_DFALT = -1, CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_ALGO0 = 0, CUBLAS_GEMM_ALGO1 = 1, CUBLAS_GEMM_ALGO2 = 2, CUBLAS_GEMM_ALGO3 = 3, CUBLAS_GEMM_ALGO4 = 4, CUBLAS_GEMM_ALGO5 = 5, CUBLAS_GEMM_ALGO6 = 6, CUBLAS_GEMM_ALGO7 = 7, CUBLAS_GEMM_ALGO8 = 8, CUBLAS_GEMM_ALGO9 = 9, CUBLAS_GEMM_ALGO10 = 10, CUBLAS_GEMM_ALGO11 = 11, CUBLAS_GEMM_ALGO12 = 12, CUBLAS_GEMM_ALGO13 = 13, CUBLAS_GEMM_ALGO14 = 14, CUBLAS_GEMM_ALGO15 = 15, CUBLAS_GEMM_ALGO16 = 16, CUBLAS_GEMM_ALGO17 = 17, CUBLAS_GEMM_ALGO18 = 18, CUBLAS_GEMM_ALGO19 = 19, CUBLAS_GEMM_ALGO20 = 20, CUBLAS_GEMM_ALGO21 = 21, CUBLAS_GEMM_ALGO22 = 22, CUBLAS_GEMM_ALGO23 = 23, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99, CUBLAS_GEMM_DFALT_TENSOR_OP = 99, CUBLAS_GEMM_ALGO0_TENSOR_OP = 100, CUBLAS_GEMM_ALGO1_TENSOR_OP = 101, CUBLAS_GEMM_ALGO2_TENSOR_OP = 102, CUBLAS_GEMM_ALGO3_TENSOR_OP = 103, CUBLAS_GEMM_ALGO4_TENSOR_OP = 104, CUBLAS_GEMM_ALGO5_TENSOR_OP = 105, CUBLAS_GEMM_ALGO6_TENSOR_OP = 106, CUBLAS_GEMM_ALGO7_TENSOR_OP = 107, CUBLAS_GEMM_ALGO8_TENSOR_OP = 108, CUBLAS_GEMM_ALGO9_TENSOR_OP = 109, CUBLAS_GEMM_ALGO10_TENSOR_OP = 110, CUBLAS_GEMM_ALGO11_TENSOR_OP = 111, CUBLAS_GEMM_ALGO12_TENSOR_OP = 112, CUBLAS_GEMM_ALGO13_TENSOR_OP = 113, CUBLAS_GEMM_ALGO14_TENSOR_OP = 114, CUBLAS_GEMM_ALGO15_TENSOR_OP = 115 } cublasGemmAlgo_t;
int __cublas_gemm_ex(int ta, int tb, int m, int n, int k, double alpha, const void* a, int atype, int lda, const void* b, int btype, int ldb, double beta, void* c, int ctype, int ldc, int compute);
double __cublas_scalar(const void* x, int compute) { return compute == 64 || compute == 65 ? *(const unsigned short*)x : compute == 70 || compute == 71 ? *(const double*)x : compute == 72 || compute == 73 ? *(const int*)x : *(const float*)x; }
cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void* alpha, const void* a, cudaDataType atype, int lda, const void* b, cudaDataType btype, int ldb, const void* beta, void* c, cudaDataType ctype, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t algo) {
    return (cublasStatus_t)__cublas_gemm_ex(ta, tb, m, n, k, __cublas_scalar(alpha, compute), a, atype, lda, b, btype, ldb, __cublas_scalar(beta, compute), c, ctype, ldc, compute);
}
cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void* alpha, const void* a, cudaDataType atype, int lda, const void* b, cudaDataType btype, int ldb, const void* beta, void* c, cudaDataType ctype, int ldc, cudaDataType compute, cublasGemmAlgo_t algo) {
    if (compute != CUDA_R_16F && compute != CUDA_R_32F && compute != CUDA_R_64F && compute != CUDA_R_32I) return CUBLAS_STATUS_NOT_SUPPORTED;
    return cublasGemmEx(h, ta, tb, m, n, k, alpha, a, atype, lda, b, btype, ldb, beta, c, ctype, ldc, compute == CUDA_R_16F ? CUBLAS_COMPUTE_16F : compute == CUDA_R_32F ? CUBLAS_COMPUTE_32F : compute == CUDA_R_64F ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32I, algo);
}
template <class H> cublasStatus_t cublasHgemm(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const H* alpha, const H* a, int lda, const H* b, int ldb, const H* beta, H* c, int ldc) {
    return cublasGemmEx(h, ta, tb, m, n, k, alpha, a, CUDA_R_16F, lda, b, CUDA_R_16F, ldb, beta, c, CUDA_R_16F, ldc, CUBLAS_COMPUTE_16F, CUBLAS_GEMM_DEFAULT);
}
template <class H> cublasStatus_t cublasHgemmStridedBatched(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const H* alpha, const H* a, int lda, long long sa, const H* b, int ldb, long long sb, const H* beta, H* c, int ldc, long long sc, int count) {
    cublasStatus_t r = CUBLAS_STATUS_SUCCESS;
    for (int i = 0; i < count && r == CUBLAS_STATUS_SUCCESS; ++i) r = cublasHgemm(h, ta, tb, m, n, k, alpha, a + i * sa, lda, b + i * sb, ldb, beta, c + i * sc, ldc);
    return r;
}
cublasStatus_t cublasInit() { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasShutdown() { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetVersion(cublasHandle_t h, int* v) { *v = CUBLAS_VERSION; return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetPointerMode(cublasHandle_t h, cublasPointerMode_t m) { return m == CUBLAS_POINTER_MODE_HOST ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED; }
const char* cublasGetStatusString(cublasStatus_t s) { return s == CUBLAS_STATUS_SUCCESS ? "success" : s == CUBLAS_STATUS_INVALID_VALUE ? "an unsupported value or parameter was passed to the function" : "the function failed to launch on the GPU"; }
const char* cublasGetStatusName(cublasStatus_t s) { return s == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : s == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE" : "CUBLAS_STATUS_EXECUTION_FAILED"; }
cublasStatus_t __cublas_copied(cudaError_t e) { return e == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR; }
cublasStatus_t cublasSetVector(int n, int size, const void* x, int incx, void* y, int incy) { return __cublas_copied(__cuda_copy2d(y, (size_t)incy * size, x, (size_t)incx * size, size, n, 1)); }
cublasStatus_t cublasGetVector(int n, int size, const void* x, int incx, void* y, int incy) { return __cublas_copied(__cuda_copy2d(y, (size_t)incy * size, x, (size_t)incx * size, size, n, 2)); }
cublasStatus_t cublasSetMatrix(int rows, int cols, int size, const void* a, int lda, void* b, int ldb) { return __cublas_copied(__cuda_copy2d(b, (size_t)ldb * size, a, (size_t)lda * size, (size_t)rows * size, cols, 1)); }
cublasStatus_t cublasGetMatrix(int rows, int cols, int size, const void* a, int lda, void* b, int ldb) { return __cublas_copied(__cuda_copy2d(b, (size_t)ldb * size, a, (size_t)lda * size, (size_t)rows * size, cols, 2)); }
int __cublas_gemv(int double_, int t, int m, int n, double alpha, const void* a, int lda, const void* x, int incx, double beta, void* y, int incy);
int __cublas_geam(int double_, int ta, int tb, int m, int n, double alpha, const void* a, int lda, double beta, const void* b, int ldb, void* c, int ldc);
#define __CUBLAS(L, l, T, d) \
    cublasStatus_t cublas##L##axpy(cublasHandle_t h, int n, const T* alpha, const T* x, int incx, T* y, int incy) { return (cublasStatus_t)__cublas_vector(0, d, n, *alpha, x, incx, y, incy, 0); } \
    cublasStatus_t cublas##L##scal(cublasHandle_t h, int n, const T* alpha, T* x, int incx) { return (cublasStatus_t)__cublas_vector(1, d, n, *alpha, x, incx, x, incx, 0); } \
    cublasStatus_t cublas##L##copy(cublasHandle_t h, int n, const T* x, int incx, T* y, int incy) { return (cublasStatus_t)__cublas_vector(2, d, n, 0, x, incx, y, incy, 0); } \
    cublasStatus_t cublas##L##swap(cublasHandle_t h, int n, T* x, int incx, T* y, int incy) { return (cublasStatus_t)__cublas_vector(3, d, n, 0, x, incx, y, incy, 0); } \
    cublasStatus_t cublas##L##dot(cublasHandle_t h, int n, const T* x, int incx, const T* y, int incy, T* r) { return (cublasStatus_t)__cublas_vector(4, d, n, 0, x, incx, (void*)y, incy, r); } \
    cublasStatus_t cublas##L##nrm2(cublasHandle_t h, int n, const T* x, int incx, T* r) { return (cublasStatus_t)__cublas_vector(5, d, n, 0, x, incx, (void*)x, incx, r); } \
    cublasStatus_t cublas##L##asum(cublasHandle_t h, int n, const T* x, int incx, T* r) { return (cublasStatus_t)__cublas_vector(6, d, n, 0, x, incx, (void*)x, incx, r); } \
    cublasStatus_t cublasI##l##amax(cublasHandle_t h, int n, const T* x, int incx, int* r) { return (cublasStatus_t)__cublas_vector(7, d, n, 0, x, incx, (void*)x, incx, r); } \
    cublasStatus_t cublasI##l##amin(cublasHandle_t h, int n, const T* x, int incx, int* r) { return (cublasStatus_t)__cublas_vector(8, d, n, 0, x, incx, (void*)x, incx, r); } \
    cublasStatus_t cublas##L##gemv(cublasHandle_t h, cublasOperation_t t, int m, int n, const T* alpha, const T* a, int lda, const T* x, int incx, const T* beta, T* y, int incy) { return (cublasStatus_t)__cublas_gemv(d, t, m, n, *alpha, a, lda, x, incx, *beta, y, incy); } \
    cublasStatus_t cublas##L##geam(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, const T* alpha, const T* a, int lda, const T* beta, const T* b, int ldb, T* c, int ldc) { return (cublasStatus_t)__cublas_geam(d, ta, tb, m, n, *alpha, a, lda, *beta, b, ldb, c, ldc); } \
    cublasStatus_t cublas##L##gemmStridedBatched(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T* alpha, const T* a, int lda, long long sa, const T* b, int ldb, long long sb, const T* beta, T* c, int ldc, long long sc, int count) { int r = 0; for (int i = 0; i < count && r == 0; ++i) r = __cublas_gemm(d, ta, tb, m, n, k, *alpha, a + i * sa, lda, b + i * sb, ldb, *beta, c + i * sc, ldc); return (cublasStatus_t)r; }
__CUBLAS(S, s, float, 0) __CUBLAS(D, d, double, 1)
#define cublasSgemm_v2 cublasSgemm
#define cublasDgemm_v2 cublasDgemm
#define cublasCreate_v2 cublasCreate
#define cublasDestroy_v2 cublasDestroy
#define cublasSetStream_v2 cublasSetStream
