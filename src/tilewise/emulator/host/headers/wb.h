// The library of the UIUC labs. Without data files, imports generate small data of fixed sizes.
typedef struct { int argc; char** argv; } wbArg_t;
enum __wb_level { OFF, FATAL, ERROR, WARN, INFO, DEBUG, TRACE };
enum __wb_timer { Generic, IO, GPU, Compute, Copy, Driver, CopyAsync };
wbArg_t wbArg_read(int argc, char** argv) { wbArg_t a; a.argc = argc; a.argv = argv; return a; }
const char* __wb_names[4] = {"0 of the data set", "1 of the data set", "2 of the data set", "3 of the data set"};
void __wb_made_up(const char* file) { FILE* f = fopen(file, "r"); if (f) fclose(f); } // noted as a file that is missing
char* wbArg_getInputFile(wbArg_t a, int i) { return (char*)__wb_names[i < 4 ? i : 3]; }
char* wbArg_getOutputFile(wbArg_t a) { return (char*)__wb_names[3]; }
unsigned int __wb_seed = 12345;
float __wb_value() { __wb_seed = __wb_seed * 1103515245u + 12345u; return (float)((__wb_seed >> 16) % 97) / 8.0f - 6.0f; }
void* __wb_floats(long n) { float* p = (float*)malloc(n * sizeof(float)); for (long i = 0; i < n; ++i) p[i] = __wb_value(); return p; }
void* wbImport(const char* file, int* rows, int* cols) {
    __wb_made_up(file);
    if (file[0] == '0') { *rows = 53; *cols = 41; } else if (file[0] == '1') { *rows = 41; *cols = 67; } else { *rows = 53; *cols = 67; }
    return __wb_floats((long)*rows * *cols);
}
void* wbImport(const char* file, int* length) { __wb_made_up(file); *length = 1000; return __wb_floats(*length); }
void* wbImport(const char* file, int* length, const char* kind) {
    __wb_made_up(file);
    *length = 1000;
    if (kind[0] == 'I' || kind[0] == 'i') { unsigned int* p = (unsigned int*)malloc(4 * *length); for (int i = 0; i < *length; ++i) p[i] = (unsigned int)(i * 37 % 101); return p; }
    return __wb_floats(*length);
}
void* wbImport(const char* file, int* rows, int* cols, const char* kind) { return wbImport(file, rows, cols); }
bool wbSolution(wbArg_t a, void* data, int n) { return true; }
bool wbSolution(wbArg_t a, void* data, int rows, int cols) { return true; }
bool wbSolution(wbArg_t a, void* data, int rows, int cols, int depth) { return true; }
typedef struct __wb_timer_node { long elapsedTime; } *wbTimerNode_t;
struct __wb_timer_node __wb_node;
#define wbTime_start(...) (&__wb_node)
#define wbTime_stop(...) ((void)0)
#define wbLog(level, ...) __wb_log(#level, __VA_ARGS__)
template <class... A> void __wb_log(const char* l, const A&... a) { std::cout << l << " "; (std::cout << ... << a) << std::endl; }
#define wbCheck(v) do { cudaError_t __e = v; if (__e != cudaSuccess) { wbLog(ERROR, "Failed to run stmt ", #v); return -1; } } while (0)
typedef struct __wb_image { int width, height, channels; float* data; } *wbImage_t;
wbImage_t wbImage_new(int w, int h, int c = 3) { wbImage_t i = (wbImage_t)malloc(sizeof(struct __wb_image)); i->width = w; i->height = h; i->channels = c; i->data = (float*)calloc((long)w * h * c, sizeof(float)); return i; }
wbImage_t wbImport(const char* file) { __wb_made_up(file); wbImage_t i = wbImage_new(61, 43); for (int k = 0; k < 61 * 43 * 3; ++k) i->data[k] = (__wb_value() + 6.0f) / 13.0f; return i; }
int wbImage_getWidth(wbImage_t i) { return i->width; }
int wbImage_getHeight(wbImage_t i) { return i->height; }
int wbImage_getChannels(wbImage_t i) { return i->channels; }
float* wbImage_getData(wbImage_t i) { return i->data; }
void wbImage_delete(wbImage_t i) { free(i->data); free(i); }
void wbImage_setData(wbImage_t i, float* data) { i->data = data; }
bool wbSolution(wbArg_t a, wbImage_t i) { return true; }
