// C functions that few programs use.
typedef unsigned char u_char; typedef unsigned short u_short; typedef unsigned int u_int; typedef unsigned long u_long;
extern int __errno_value;
int __errno_value = 0;
#define errno __errno_value
#define EINTR 4
#define ENOENT 2
#define ENOMEM 12
#define EACCES 13
#define EEXIST 17
#define EINVAL 22
#define ERANGE 34
double remainder(double x, double y);
double nan(const char* text) { return __builtin_nanf(); }
float nanf(const char* text) { return __builtin_nanf(); }
__host__ __device__ long long llround(double x) { return (long long)round(x); }
__host__ __device__ long long llroundf(float x) { return (long long)roundf(x); }
__host__ __device__ long long llrint(double x) { return (long long)rint(x); }
__host__ __device__ long long llrintf(float x) { return (long long)rintf(x); }
double modf(double x, double* whole) { *whole = trunc(x); return copysign(x - *whole, x); }
float modff(float x, float* whole) { *whole = truncf(x); return copysignf(x - *whole, x); }
double frexp(double x, int* e) {
    *e = 0;
    if (x == 0 || !isfinite(x)) return x;
    while (fabs(x) >= 1) { x /= 2; ++*e; }
    while (fabs(x) < 0.5) { x *= 2; --*e; }
    return x;
}
float frexpf(float x, int* e) { return (float)frexp(x, e); }
float ldexpf(float x, int n) { return (float)ldexp(x, n); }
double exp10(double x) { return pow(10.0, x); }
template <class T, class U> double pow(T x, U y) { return pow((double)x, (double)y); }
float exp10f(float x) { return powf(10.0f, x); }
void sincos(double x, double* s, double* c) { *s = sin(x); *c = cos(x); }
void sincosf(float x, float* s, float* c) { *s = sinf(x); *c = cosf(x); }
typedef struct { int quot; int rem; } div_t;
typedef struct { long quot; long rem; } ldiv_t;
div_t div(int a, int b) { div_t r; r.quot = a / b; r.rem = a % b; return r; }
ldiv_t ldiv(long a, long b) { ldiv_t r; r.quot = a / b; r.rem = a % b; return r; }
void* bsearch(const void* key, const void* base, size_t count, size_t size, int (*compare)(const void*, const void*)) {
    size_t a = 0, b = count;
    while (a < b) {
        size_t m = (a + b) / 2;
        const char* p = (const char*)base + m * size;
        int c = compare(key, p);
        if (c == 0) return (void*)p;
        if (c < 0) b = m; else a = m + 1;
    }
    return 0;
}
int setenv(const char* name, const char* value, int overwrite) { return 0; }
int putenv(char* text) { return 0; }
int unsetenv(const char* name) { return 0; }
void* memalign(size_t align, size_t size) { return aligned_alloc(align, size); }
void* _aligned_malloc(size_t size, size_t align) { return aligned_alloc(align, size); }
void _aligned_free(void* p) { free(p); }
void* memchr(const void* s, int c, size_t n) {
    const unsigned char* p = (const unsigned char*)s;
    for (size_t i = 0; i < n; ++i) if (p[i] == (unsigned char)c) return (void*)(p + i);
    return 0;
}
char* strncat(char* to, const char* from, size_t n) {
    size_t at = strlen(to), i = 0;
    for (; i < n && from[i]; ++i) to[at + i] = from[i];
    to[at + i] = 0;
    return to;
}
int strncasecmp(const char* a, const char* b, size_t n) {
    for (size_t i = 0; i < n; ++i) { int d = tolower((unsigned char)a[i]) - tolower((unsigned char)b[i]); if (d || !a[i]) return d; }
    return 0;
}
char* strndup(const char* s, size_t n) {
    size_t length = 0;
    while (length < n && s[length]) ++length;
    char* p = (char*)malloc(length + 1);
    memcpy(p, s, length);
    p[length] = 0;
    return p;
}
size_t strnlen(const char* s, size_t n) { size_t i = 0; while (i < n && s[i]) ++i; return i; }
size_t strcspn(const char* s, const char* marks) { size_t i = 0; while (s[i] && !strchr(marks, s[i])) ++i; return i; }
size_t strspn(const char* s, const char* marks) { size_t i = 0; while (s[i] && strchr(marks, s[i])) ++i; return i; }
char* strpbrk(const char* s, const char* marks) { s += strcspn(s, marks); return *s ? (char*)s : 0; }
char* strtok_r(char* s, const char* marks, char** rest) {
    if (!s) s = *rest;
    s += strspn(s, marks);
    if (!*s) { *rest = s; return 0; }
    char* end = s + strcspn(s, marks);
    if (*end) *end++ = 0;
    *rest = end;
    return s;
}
int ispunct(int c) { return isprint(c) && c != ' ' && !isalnum(c); }
int isxdigit(int c) { return isdigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
int isgraph(int c) { return c > 32 && c < 127; }
int iscntrl(int c) { return c < 32 || c == 127; }
int ungetc(int c, FILE* stream);
void clearerr(FILE* stream);
void setbuf(FILE* stream, char* buffer) {}
int fseeko(FILE* stream, long offset, int from) { return fseek(stream, offset, from); }
long ftello(FILE* stream) { return ftell(stream); }
int fopen_s(FILE** stream, const char* name, const char* mode) { *stream = fopen(name, mode); return *stream ? 0 : 2; }
int strcpy_s(char* to, size_t size, const char* from) { if (strlen(from) >= size) return 34; strcpy(to, from); return 0; }
int strcat_s(char* to, size_t size, const char* from) { if (strlen(to) + strlen(from) >= size) return 34; strcat(to, from); return 0; }
#define sprintf_s snprintf
#define scanf_s scanf
#define _snprintf snprintf
#define _strdup strdup
#define printf_s printf
int nanosleep(const struct timespec* t, struct timespec* left) { return usleep((unsigned int)(t->tv_nsec / 1000)); }
char* getcwd(char* to, size_t size) { if (to && size > 1) { to[0] = '.'; to[1] = 0; } return to; }
int gethostname(char* to, size_t size) { strncpy(to, "localhost", size); return 0; }
#define F_OK 0
#define R_OK 4
int access(const char* name, int how) { FILE* f = fopen(name, "r"); if (!f) return -1; fclose(f); return 0; }
#define _SC_NPROCESSORS_ONLN 84
#define _SC_PAGESIZE 30
long sysconf(int what) { return what == _SC_PAGESIZE ? 4096 : 2; }
typedef void (*__handler)(int);
#define SIGINT 2
#define SIGABRT 6
#define SIGFPE 8
#define SIGSEGV 11
#define SIGTERM 15
#define SIG_DFL ((__handler)0)
#define SIG_IGN ((__handler)1)
__handler signal(int number, __handler f) { return (__handler)0; }
typedef union { struct { unsigned int LowPart; int HighPart; }; long long QuadPart; } LARGE_INTEGER;
int QueryPerformanceFrequency(LARGE_INTEGER* f) { f->QuadPart = 10000000; return 1; }
int QueryPerformanceCounter(LARGE_INTEGER* c) { c->QuadPart = __now_ns() / 100; return 1; }
unsigned int GetTickCount() { return (unsigned int)(__now_ns() / 1000000); }
unsigned long long GetTickCount64() { return __now_ns() / 1000000; }
unsigned int timeGetTime() { return (unsigned int)(__now_ns() / 1000000); }
void Sleep(unsigned int ms) { usleep(ms * 1000); }
int _kbhit() { return 0; }
// file descriptors
#define O_RDONLY 0
#define O_WRONLY 1
#define O_RDWR 2
#define O_CREAT 64
#define O_TRUNC 512
#define O_APPEND 1024
#define STDIN_FILENO 0
#define STDOUT_FILENO 1
#define STDERR_FILENO 2
FILE* __numbered[64];
FILE* __by_number(int n) { return n == 0 ? stdin : n == 1 ? stdout : n == 2 ? stderr : n > 2 && n < 64 ? __numbered[n] : 0; }
int open(const char* name, int flags, int mode = 0) {
    FILE* f = fopen(name, (flags & 3) == O_RDONLY ? "rb" : flags & O_APPEND ? "ab" : flags & O_TRUNC ? "wb" : "rb+");
    if (!f) return -1;
    for (int i = 3; i < 64; ++i) if (!__numbered[i]) { __numbered[i] = f; return i; }
    return -1;
}
int close(int n) { FILE* f = __by_number(n); if (n < 3 || !f) return n >= 0 && n < 3 ? 0 : -1; fclose(f); __numbered[n] = 0; return 0; }
long read(int n, void* to, size_t size) { FILE* f = __by_number(n); return f ? (long)fread(to, 1, size, f) : -1; }
long write(int n, const void* from, size_t size) { FILE* f = __by_number(n); return f ? (long)fwrite(from, 1, size, f) : -1; }
long lseek(int n, long offset, int from) { FILE* f = __by_number(n); return f && fseek(f, offset, from) == 0 ? ftell(f) : -1; }
int fileno(FILE* f) { return f == stdin ? 0 : f == stdout ? 1 : f == stderr ? 2 : 3; }
char* strerror_r(int code, char* to, size_t n) { return strerror(code); }
long __builtin_expect(long x, long likely) { return x; }
void __builtin_unreachable() { abort(); }
void __builtin_assume(bool x) {}
int __builtin_popcount(unsigned int x) { int n = 0; while (x) { x &= x - 1; ++n; } return n; }
int __builtin_popcountl(unsigned long x) { int n = 0; while (x) { x &= x - 1; ++n; } return n; }
int __builtin_popcountll(unsigned long long x) { return __builtin_popcountl(x); }
int __builtin_clz(unsigned int x) { int n = 32; while (x) { x >>= 1; --n; } return n; }
int __builtin_clzll(unsigned long long x) { int n = 64; while (x) { x >>= 1; --n; } return n; }
int __builtin_ctz(unsigned int x) { int n = 0; while (n < 32 && !(x >> n & 1)) ++n; return n; }
int __builtin_ctzll(unsigned long long x) { int n = 0; while (n < 64 && !(x >> n & 1)) ++n; return n; }
int __builtin_ffs(int x) { return x ? __builtin_ctz(x) + 1 : 0; }
