// cutil, the library of the first CUDA samples: checks, timers, comparisons, files of numbers.
typedef int CUTBoolean;
#define CUTTrue 1
#define CUTFalse 0
#define CUTIL_API
#define CUT_SAFE_CALL(v) do { if (!(v)) { fprintf(stderr, "Cut error in file '%s' in line %i.\n", __FILE__, __LINE__); exit(EXIT_FAILURE); } } while (0)
#define cutilCheckError(v) CUT_SAFE_CALL(v)
#define CUT_CHECK_ERROR(m) __helper_last(m, __FILE__, __LINE__)
#define CUDA_SAFE_CALL_NO_SYNC(v) __helper_check((v), #v, __FILE__, __LINE__)
#define cutilSafeCallNoSync(v) __helper_check((v), #v, __FILE__, __LINE__)
#define cutilSafeThreadSync() __helper_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize", __FILE__, __LINE__)
#define CUT_DEVICE_INIT(argc, argv) cudaSetDevice(0)
#define cutilDeviceInit(argc, argv) 0
#define cutilExit(argc, argv) exit(EXIT_SUCCESS)
#define CUT_EXIT(argc, argv) exit(EXIT_SUCCESS)
#define cutilBankChecker(array, index) array[index]
#define CUT_BANK_CHECKER(array, index) array[index]
int cutGetMaxGflopsDeviceId() { return 0; }
long __cut_started[64]; long __cut_total[64]; unsigned int __cut_timers;
CUTBoolean cutCreateTimer(unsigned int* t) { *t = ++__cut_timers; return *t < 64; }
CUTBoolean cutStartTimer(unsigned int t) { __cut_started[t] = __now_ns(); return 1; }
CUTBoolean cutStopTimer(unsigned int t) { __cut_total[t] += __now_ns() - __cut_started[t]; return 1; }
CUTBoolean cutResetTimer(unsigned int t) { __cut_total[t] = 0; __cut_started[t] = __now_ns(); return 1; }
CUTBoolean cutDeleteTimer(unsigned int t) { __cut_total[t] = 0; return 1; }
float cutGetTimerValue(unsigned int t) { return (float)(__cut_total[t] * 1e-6); }
float cutGetAverageTimerValue(unsigned int t) { return cutGetTimerValue(t); }
CUTBoolean cutComparefe(const float* a, const float* b, unsigned int n, float epsilon) {
    for (unsigned int i = 0; i < n; ++i) if (!(fabsf(a[i] - b[i]) <= epsilon)) return 0;
    return 1;
}
CUTBoolean cutComparef(const float* a, const float* b, unsigned int n) { return cutComparefe(a, b, n, 0.0f); }
CUTBoolean cutComparei(const int* a, const int* b, unsigned int n) { return memcmp(a, b, n * sizeof(int)) == 0; }
CUTBoolean cutCompareL2fe(const float* a, const float* b, unsigned int n, float epsilon) {
    float error = 0, length = 0;
    for (unsigned int i = 0; i < n; ++i) { float d = a[i] - b[i]; error += d * d; length += a[i] * a[i]; }
    return sqrtf(error) <= epsilon * sqrtf(length);
}
template <class T> CUTBoolean __cut_read(const char* name, T** to, unsigned int* n, bool verbose) {
    FILE* f = fopen(name, "r");
    unsigned int found = 0; double v;
    if (!f) { if (verbose) fprintf(stderr, "cutReadFile() : Opening file failed.\n"); return 0; }
    while (fscanf(f, "%lf", &v) == 1) ++found;
    rewind(f);
    if (!*to) { *to = (T*)malloc(found * sizeof(T)); *n = found; }
    for (unsigned int i = 0; i < *n && fscanf(f, "%lf", &v) == 1; ++i) (*to)[i] = (T)v;
    fclose(f);
    return 1;
}
template <class T> CUTBoolean __cut_write(const char* name, const T* from, unsigned int n, double epsilon, bool verbose) {
    FILE* f = fopen(name, "w");
    if (!f) { if (verbose) fprintf(stderr, "cutWriteFile() : Opening file failed.\n"); return 0; }
    if (epsilon) fprintf(f, "# %g\n", epsilon);
    for (unsigned int i = 0; i < n; ++i) fprintf(f, "%g ", (double)from[i]);
    fclose(f);
    return 1;
}
CUTBoolean cutReadFilef(const char* name, float** to, unsigned int* n, bool verbose = false) { return __cut_read(name, to, n, verbose); }
CUTBoolean cutReadFiled(const char* name, double** to, unsigned int* n, bool verbose = false) { return __cut_read(name, to, n, verbose); }
CUTBoolean cutReadFilei(const char* name, int** to, unsigned int* n, bool verbose = false) { return __cut_read(name, to, n, verbose); }
CUTBoolean cutWriteFilef(const char* name, const float* from, unsigned int n, const float epsilon, bool verbose = false) { return __cut_write(name, from, n, epsilon, verbose); }
CUTBoolean cutWriteFilei(const char* name, const int* from, unsigned int n, bool verbose = false) { return __cut_write(name, from, n, 0, verbose); }
char* cutFindFilePath(const char* name, const char* program) { return sdkFindFilePath(name, program); }
void cutFree(void* p) { free(p); }
bool cutCheckCmdLineFlag(int argc, const char** argv, const char* name) { return checkCmdLineFlag(argc, argv, name); }
bool cutGetCmdLineArgumenti(int argc, const char** argv, const char* name, int* v) { *v = checkCmdLineFlag(argc, argv, name) ? getCmdLineArgumentInt(argc, argv, name) : *v; return checkCmdLineFlag(argc, argv, name); }
