// The usual macros of the CUDA samples.
void __helper_check(cudaError_t e, const char* call, const char* file, int line) {
    if (e != cudaSuccess) {
        fprintf(stderr, "CUDA error at %s:%d code=%d(%s) \"%s\" \n", file, line, (int)e, cudaGetErrorName(e), call);
        exit(EXIT_FAILURE);
    }
}
void __helper_last(const char* message, const char* file, int line) {
    cudaError_t e = cudaGetLastError();
    if (e != cudaSuccess) {
        fprintf(stderr, "%s(%i) : getLastCudaError() CUDA error : %s : (%d) %s.\n", file, line, message, (int)e, cudaGetErrorString(e));
        exit(EXIT_FAILURE);
    }
}
#define checkCudaErrors(v) __helper_check((v), #v, __FILE__, __LINE__)
#define getLastCudaError(m) __helper_last(m, __FILE__, __LINE__)
#define cutilSafeCall(v) __helper_check((v), #v, __FILE__, __LINE__)
#define CUDA_SAFE_CALL(v) __helper_check((v), #v, __FILE__, __LINE__)
#define cutilCheckMsg(m) __helper_last(m, __FILE__, __LINE__)
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define EXIT_WAIVED 2
int findCudaDevice(int argc, const char** argv) { printf("GPU Device 0: \"Turing\" with compute capability 7.5\n\n"); return 0; }
int gpuGetMaxGflopsDeviceId() { return 0; }
int _ConvertSMVer2Cores(int major, int minor) { return major == 7 ? 64 : 128; }
const char* _ConvertSMVer2ArchName(int major, int minor) { return "Turing"; }
bool __flag(int argc, const char** argv, const char* name, const char** value) {
    size_t n = strlen(name);
    for (int i = 1; i < argc; ++i) {
        const char* a = argv[i];
        while (*a == '-') ++a;
        if (strncmp(a, name, n) == 0 && (a[n] == 0 || a[n] == '=')) { *value = a[n] ? a + n + 1 : a + n; return true; }
    }
    return false;
}
bool checkCmdLineFlag(int argc, const char** argv, const char* name) { const char* v; return __flag(argc, argv, name, &v); }
int getCmdLineArgumentInt(int argc, const char** argv, const char* name) { const char* v; return __flag(argc, argv, name, &v) ? atoi(v) : 0; }
struct StopWatchInterface { long start; long total; };
bool sdkCreateTimer(StopWatchInterface** t) { *t = (StopWatchInterface*)malloc(sizeof(StopWatchInterface)); (*t)->start = 0; (*t)->total = 0; return true; }
bool sdkStartTimer(StopWatchInterface** t) { (*t)->start = __now_ns(); return true; }
bool sdkStopTimer(StopWatchInterface** t) { (*t)->total += __now_ns() - (*t)->start; return true; }
bool sdkResetTimer(StopWatchInterface** t) { (*t)->total = 0; return true; }
bool sdkDeleteTimer(StopWatchInterface** t) { free(*t); return true; }
float sdkGetAverageTimerValue(StopWatchInterface** t) { return (float)((*t)->total * 1e-6); }
float sdkGetTimerValue(StopWatchInterface** t) { return (float)((*t)->total * 1e-6); }
char* sdkFindFilePath(const char* name, const char* program) {
    const char* folders[] = {"", "data/", "../data/", "helpers/data/", "Common/data/"};
    for (int i = 0; i < 5; ++i) {
        char* path = (char*)malloc(strlen(folders[i]) + strlen(name) + 1);
        strcpy(path, folders[i]); strcat(path, name);
        FILE* f = fopen(path, "rb");
        if (f) { fclose(f); return path; }
        free(path);
    }
    return nullptr;
}
template <class T> bool sdkLoadPGM(const char* file, T** data, unsigned int* w, unsigned int* h) {
    FILE* f = fopen(file, "rb");
    unsigned int most = 0; int c;
    if (!f) return false;
    if (fgetc(f) != 'P' || fgetc(f) != '5') { fclose(f); return false; }
    unsigned int* numbers[] = {w, h, &most};
    for (int i = 0; i < 3; ++i) {
        while ((c = fgetc(f)) == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '#') if (c == '#') while ((c = fgetc(f)) != '\n' && c != EOF) {}
        for (*numbers[i] = 0; c >= '0' && c <= '9'; c = fgetc(f)) *numbers[i] = *numbers[i] * 10 + (c - '0');
    }
    size_t n = (size_t)*w * *h;
    if (!*data) *data = (T*)malloc(n * sizeof(T));
    for (size_t i = 0; i < n; ++i) { c = fgetc(f); (*data)[i] = sizeof(T) == 1 ? (T)c : (T)(c / 255.0f); }
    fclose(f);
    return true;
}
template <class T> bool sdkSavePGM(const char* file, T* data, unsigned int w, unsigned int h) {
    FILE* f = fopen(file, "wb");
    if (!f) return false;
    fprintf(f, "P5\n%u\n%u\n255\n", w, h);
    for (size_t i = 0; i < (size_t)w * h; ++i) fputc(sizeof(T) == 1 ? (int)data[i] : (int)(unsigned char)(data[i] * 255), f);
    fclose(f);
    return true;
}
// those of "CUDA by Example"
#define HANDLE_ERROR(v) __helper_check((v), #v, __FILE__, __LINE__)
#define HANDLE_NULL(a) { if (a == NULL) { printf("Host memory failed in %s at line %d\n", __FILE__, __LINE__); exit(EXIT_FAILURE); } }
bool getCmdLineArgumentString(int argc, const char** argv, const char* name, char** value) { const char* v; if (!__flag(argc, argv, name, &v)) { *value = 0; return false; } *value = (char*)v; return true; }
float getCmdLineArgumentFloat(int argc, const char** argv, const char* name) { const char* v; return __flag(argc, argv, name, &v) ? (float)atof(v) : 0.0f; }
void* big_random_block(int size) { unsigned char* data = (unsigned char*)malloc(size); for (int i = 0; i < size; ++i) data[i] = rand(); return data; }
int* big_random_block_int(int size) { int* data = (int*)malloc(size * sizeof(int)); for (int i = 0; i < size; ++i) data[i] = rand(); return data; }
