// What the C headers declare, as far as programs of courses use it.
#define _GNU_SOURCE 1
#define _XOPEN_SOURCE 700
#define _POSIX_C_SOURCE 200809L
#define NULL 0
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295U
#define LONG_MAX 9223372036854775807L
#define LONG_MIN (-9223372036854775807L - 1L)
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-9223372036854775807LL - 1LL)
#define ULLONG_MAX 18446744073709551615ULL
#define CHAR_BIT 8
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT32_MAX 2147483647
#define INT32_MIN (-2147483647 - 1)
#define UINT32_MAX 4294967295U
#define INT64_MAX 9223372036854775807L
#define UINT64_MAX 18446744073709551615UL
#define UINT8_MAX 255
#define INT16_MAX 32767
#define SIZE_MAX 18446744073709551615UL
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_EPSILON 1.192092896e-07F
#define DBL_MAX 1.7976931348623158e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define LDBL_MAX DBL_MAX
#define LDBL_MIN DBL_MIN
#define LDBL_EPSILON DBL_EPSILON
#define FLT_DIG 6
#define DBL_DIG 15
#define LDBL_DIG 15
#define FLT_MANT_DIG 24
#define DBL_MANT_DIG 53
#define LDBL_MANT_DIG 53
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_E 2.7182818284590452354
#define M_SQRT2 1.41421356237309504880
#define M_LN2 0.69314718055994530942
#define INFINITY (__builtin_inff())
#define HUGE_VAL (__builtin_inf())
#define HUGE_VALF (__builtin_inff())
#define MAXFLOAT FLT_MAX
#define NAN (__builtin_nanf())
#define CLOCKS_PER_SEC 1000000L
#define CLOCK_MONOTONIC 1
#define CLOCK_MONOTONIC_RAW 4
#define CLOCK_PROCESS_CPUTIME_ID 2
#define CLOCK_REALTIME 0
#define EOF (-1)
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
#define _IOFBF 0
#define _IOLBF 1
#define _IONBF 2
#define BUFSIZ 8192
#define assert(e) ((e) ? (void)0 : __assert_failed(#e, __FILE__, __LINE__))
#define PRId64 "ld"
#define PRIu64 "lu"
#define PRIx64 "lx"
#define __func__ "main"
#define __FUNCTION__ "main"
#define __PRETTY_FUNCTION__ "main"
#define PATH_MAX 4096

typedef struct __file { int id; } FILE;
extern FILE* stdin;
extern FILE* stdout;
extern FILE* stderr;
FILE* stdin = __stream(0);
FILE* stdout = __stream(1);
FILE* stderr = __stream(2);
FILE* __stream(int n);
void __assert_failed(const char* text, const char* file, int line);
float __builtin_inff();
double __builtin_inf();
float __builtin_nanf();

int printf(const char* format, ...);
int fprintf(FILE* stream, const char* format, ...);
int sprintf(char* to, const char* format, ...);
int snprintf(char* to, size_t size, const char* format, ...);
int scanf(const char* format, ...);
int fscanf(FILE* stream, const char* format, ...);
int sscanf(const char* text, const char* format, ...);
// variadic arguments: pairs of a tag and eight bytes
struct __va { char* at; long left; };
typedef struct __va va_list;
typedef struct __va __builtin_va_list;
void* __va_next(struct __va* a) { char* p = a->at + 8; a->at += 16; --a->left; return p; }
#define va_start(ap, ...) ((ap).at = __variadic(), (ap).left = __variadic_count())
#define va_arg(ap, T) (*(T*)__va_next(&(ap)))
#define va_copy(to, from) ((to) = (from))
#define va_end(ap) ((void)0)
int __vprintf(const char* format, void* at, long left);
int __vfprintf(FILE* stream, const char* format, void* at, long left);
int __vsprintf(char* to, const char* format, void* at, long left);
int __vsnprintf(char* to, size_t size, const char* format, void* at, long left);
int vprintf(const char* format, va_list a) { return __vprintf(format, a.at, a.left); }
int vfprintf(FILE* stream, const char* format, va_list a) { return __vfprintf(stream, format, a.at, a.left); }
int vsprintf(char* to, const char* format, va_list a) { return __vsprintf(to, format, a.at, a.left); }
int vsnprintf(char* to, size_t size, const char* format, va_list a) { return __vsnprintf(to, size, format, a.at, a.left); }
int puts(const char* text);
int putchar(int c);
int fputs(const char* text, FILE* stream);
int fputc(int c, FILE* stream);
int putc(int c, FILE* stream);
int fflush(FILE* stream);
int getchar();
int getch() { return getchar(); }
int _getch() { return getchar(); }
int fgetc(FILE* stream);
int getc(FILE* stream);
char* fgets(char* to, int size, FILE* stream);
FILE* fopen(const char* name, const char* mode);
int fclose(FILE* stream);
size_t fread(void* to, size_t size, size_t count, FILE* stream);
size_t fwrite(const void* from, size_t size, size_t count, FILE* stream);
int fseek(FILE* stream, long offset, int from);
long ftell(FILE* stream);
void rewind(FILE* stream);
int feof(FILE* stream);
int ferror(FILE* stream);
int remove(const char* name);
void perror(const char* text);
int setvbuf(FILE* stream, char* buffer, int mode, size_t size);

void* malloc(size_t size);
void* calloc(size_t count, size_t size);
void* realloc(void* old, size_t size);
void free(void* p);
void* aligned_alloc(size_t align, size_t size);
int posix_memalign(void** p, size_t align, size_t size);
void* memset(void* to, int value, size_t size);
void* memcpy(void* to, const void* from, size_t size);
void* memmove(void* to, const void* from, size_t size);
int memcmp(const void* a, const void* b, size_t size);
size_t strlen(const char* s);
int strcmp(const char* a, const char* b);
int strncmp(const char* a, const char* b, size_t n);
int strcasecmp(const char* a, const char* b);
char* strcpy(char* to, const char* from);
char* strncpy(char* to, const char* from, size_t n);
char* strcat(char* to, const char* from);
char* strchr(const char* s, int c);
char* strrchr(const char* s, int c);
char* strstr(const char* s, const char* part);
char* strtok(char* s, const char* marks);
char* strdup(const char* s);
char* strerror(int code);

void exit(int status);
void _exit(int status);
void _Exit(int status);
void quick_exit(int status);
void abort();
int atexit(void (*f)());
char* getenv(const char* name);
int system(const char* command);
unsigned int __rand_state[31];
int __rand_at = -1;
int __rand_next() {
    int front = __rand_at + 3 < 31 ? __rand_at + 3 : __rand_at - 28;
    unsigned int value = __rand_state[front] + __rand_state[__rand_at];
    __rand_state[front] = value;
    __rand_at = __rand_at + 1 < 31 ? __rand_at + 1 : 0;
    return (int)(value >> 1);
}
void srand(unsigned int seed) {
    int word = seed == 0 ? 1 : (int)seed;
    __rand_state[0] = (unsigned int)word;
    for (int i = 1; i < 31; ++i) {
        long high = word / 127773, low = word % 127773;
        long next = 16807 * low - 2836 * high;
        word = (int)(next < 0 ? next + 2147483647 : next);
        __rand_state[i] = (unsigned int)word;
    }
    __rand_at = 0;
    for (int i = 0; i < 310; ++i) __rand_next();
}
int rand() { if (__rand_at < 0) srand(1); return __rand_next(); }
long random() { return rand(); }
void srandom(unsigned int seed) { srand(seed); }
unsigned long __drand48 = 0;
unsigned long __step48() { return __drand48 = (__drand48 * 0x5DEECE66Dul + 0xBul) & 0xFFFFFFFFFFFFul; }
double drand48() { return __step48() / 281474976710656.0; }
long lrand48() { return __step48() >> 17; }
long mrand48() { return (int)(unsigned int)(__step48() >> 16); }
void srand48(long seed) { __drand48 = ((unsigned long)(unsigned int)seed << 16) + 0x330Eul; }
int rand_r(unsigned int* seed) {
    unsigned int a = *seed * 1103515245u + 12345u, b = a * 1103515245u + 12345u, c = b * 1103515245u + 12345u;
    *seed = c;
    return (int)((((a / 65536 % 2048) << 10 ^ (b / 65536 % 1024)) << 10) ^ (c / 65536 % 1024));
}
int atoi(const char* s);
long atol(const char* s);
long long atoll(const char* s);
double atof(const char* s);
long strtol(const char* s, char** end, int base);
long long strtoll(const char* s, char** end, int base);
unsigned long strtoul(const char* s, char** end, int base);
unsigned long long strtoull(const char* s, char** end, int base);
double strtod(const char* s, char** end);
float strtof(const char* s, char** end);
void qsort(void* base, size_t count, size_t size, int (*compare)(const void*, const void*)) {
    char* a = (char*)base;
    char* t = (char*)malloc(size);
    for (size_t gap = count / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < count; i++) {
            memcpy(t, a + i * size, size);
            size_t j = i;
            while (j >= gap && compare(a + (j - gap) * size, t) > 0) {
                memcpy(a + j * size, a + (j - gap) * size, size);
                j -= gap;
            }
            memcpy(a + j * size, t, size);
        }
    free(t);
}
int isdigit(int c) { return c >= '0' && c <= '9'; }
int isspace(int c) { return c == ' ' || (c >= 9 && c <= 13); }
int isalpha(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
int isalnum(int c) { return isalpha(c) || isdigit(c); }
int isupper(int c) { return c >= 'A' && c <= 'Z'; }
int islower(int c) { return c >= 'a' && c <= 'z'; }
int isprint(int c) { return c >= 32 && c < 127; }
int toupper(int c) { return islower(c) ? c - 32 : c; }
int tolower(int c) { return isupper(c) ? c + 32 : c; }

int abs(int x) { return x < 0 ? -x : x; }
long abs(long x) { return x < 0 ? -x : x; }
long long abs(long long x) { return x < 0 ? -x : x; }
double abs(double x) { return __builtin_fabs(x); }
float abs(float x) { return __builtin_fabsf(x); }
__host__ __device__ long labs(long x) { return x < 0 ? -x : x; }
__host__ __device__ long long llabs(long long x) { return x < 0 ? -x : x; }
double fabs(double x) { return __builtin_fabs(x); }
float fabs(float x) { return __builtin_fabsf(x); }
float fabsf(float x) { return __builtin_fabsf(x); }
double sqrt(double x) { return __builtin_sqrt(x); }
float sqrt(float x) { return __builtin_sqrtf(x); }
float sqrtf(float x) { return __builtin_sqrtf(x); }
#define __MATH1(F) double F(double x); float F##f(float x); float F(float x) { return F##f(x); }
__MATH1(sin) __MATH1(cos) __MATH1(tan) __MATH1(asin) __MATH1(acos) __MATH1(atan) __MATH1(sinh) __MATH1(cosh)
__MATH1(tanh) __MATH1(exp) __MATH1(exp2) __MATH1(expm1) __MATH1(log) __MATH1(log2) __MATH1(log10) __MATH1(log1p)
__MATH1(floor) __MATH1(ceil) __MATH1(round) __MATH1(trunc) __MATH1(rint) __MATH1(nearbyint) __MATH1(cbrt)
__MATH1(erf) __MATH1(erfc) __MATH1(tgamma) __MATH1(lgamma)
#define __MATH2(F) double F(double x, double y); float F##f(float x, float y); \
    float F(float x, float y) { return F##f(x, y); }
__MATH2(pow) __MATH2(fmod) __MATH2(atan2) __MATH2(hypot) __MATH2(fdim) __MATH2(copysign)
#define __LIMIT(F) double F(double x, double y) { return __builtin_##F(x, y); } float F##f(float x, float y) { return __builtin_##F##f(x, y); } \
    float F(float x, float y) { return __builtin_##F##f(x, y); }
__LIMIT(fmin) __LIMIT(fmax)
double pow(double x, int n) { return pow(x, (double)n); }
double pow(float x, int n) { return pow((double)x, (double)n); }
double pow(float x, double n) { return pow((double)x, n); }
double fma(double x, double y, double z);
float fmaf(float x, float y, float z);
double ldexp(double x, int n);
__host__ __device__ long lround(double x) { return (long)round(x); }
__host__ __device__ long lroundf(float x) { return (long)roundf(x); }
__host__ __device__ long lrint(double x) { return (long)rint(x); }
__host__ __device__ long lrintf(float x) { return (long)rintf(x); }
__host__ __device__ bool isnan(double x) { return x != x; }
__host__ __device__ bool isinf(double x) { return fabs(x) > 1.7976931348623157e308; }
__host__ __device__ bool isfinite(double x) { return fabs(x) <= 1.7976931348623157e308; }
bool signbit(double x) { return copysign(1.0, x) < 0; }
float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }

struct timeval { long tv_sec; long tv_usec; };
struct timespec { long tv_sec; long tv_nsec; };
struct timezone { int tz_minuteswest; int tz_dsttime; };
struct tm { int tm_sec; int tm_min; int tm_hour; int tm_mday; int tm_mon; int tm_year; int tm_wday; int tm_yday; int tm_isdst; };
time_t time(time_t* t);
clock_t clock();
long __now_ns();
int gettimeofday(struct timeval* t, void* zone) {
    long n = __now_ns();
    t->tv_sec = n / 1000000000L;
    t->tv_usec = n % 1000000000L / 1000;
    return 0;
}
int clock_gettime(int which, struct timespec* t) {
    long n = __now_ns();
    t->tv_sec = n / 1000000000L;
    t->tv_nsec = n % 1000000000L;
    return 0;
}
#define timercmp(a, b, how) \
    ((a)->tv_sec == (b)->tv_sec ? (a)->tv_usec how (b)->tv_usec : (a)->tv_sec how (b)->tv_sec)
#define timerisset(t) ((t)->tv_sec || (t)->tv_usec)
#define timerclear(t) ((t)->tv_sec = (t)->tv_usec = 0)
void timeradd(const struct timeval* a, const struct timeval* b, struct timeval* sum) {
    long sec = a->tv_sec + b->tv_sec, usec = a->tv_usec + b->tv_usec;
    sum->tv_sec = usec >= 1000000 ? sec + 1 : sec;
    sum->tv_usec = usec >= 1000000 ? usec - 1000000 : usec;
}
void timersub(const struct timeval* a, const struct timeval* b, struct timeval* difference) {
    long sec = a->tv_sec - b->tv_sec, usec = a->tv_usec - b->tv_usec;
    difference->tv_sec = usec < 0 ? sec - 1 : sec;
    difference->tv_usec = usec < 0 ? usec + 1000000 : usec;
}
double difftime(time_t a, time_t b) { return (double)(a - b); }
// the time zone is UTC; the civil date by counting from 1 March of year 0, in eras of 400 years
struct tm* gmtime_r(const time_t* t, struct tm* x) {
    long days = *t / 86400, rest = *t % 86400;
    if (rest < 0) { rest += 86400; --days; }
    x->tm_hour = rest / 3600; x->tm_min = rest / 60 % 60; x->tm_sec = rest % 60; x->tm_wday = (days % 7 + 11) % 7; x->tm_isdst = 0;
    const long z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, doe = z - era * 146097;
    const long yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365, doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    x->tm_mday = doy - (153 * mp + 2) / 5 + 1; x->tm_mon = mp < 10 ? mp + 2 : mp - 10;
    const long year = yoe + era * 400 + (x->tm_mon < 2), leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    x->tm_year = year - 1900; x->tm_yday = x->tm_mon < 2 ? doy - 306 : doy + 59 + leap;
    return x;
}
struct tm* localtime_r(const time_t* t, struct tm* x) { return gmtime_r(t, x); }
struct tm* gmtime(const time_t* t) { static struct tm x; return gmtime_r(t, &x); }
struct tm* localtime(const time_t* t) { return gmtime(t); }
time_t mktime(struct tm* x) {
    long y = x->tm_year + 1900l + x->tm_mon / 12, m = x->tm_mon % 12;
    if (m < 0) { m += 12; --y; }
    y -= m < 2;
    const long era = (y >= 0 ? y : y - 399) / 400, yoe = y - era * 400, doy = (153 * (m + (m > 1 ? -2 : 10)) + 2) / 5 + x->tm_mday - 1;
    time_t t = ((era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468) * 24 + x->tm_hour) * 3600 + x->tm_min * 60l + x->tm_sec;
    gmtime_r(&t, x);
    return t;
}
size_t strftime(char* to, size_t size, const char* format, const struct tm* t) {
    const char* days = "SundayMondayTuesdayWednesdayThursdayFridaySaturday";
    const char* months = "JanuaryFebruaryMarchAprilMayJuneJulyAugustSeptemberOctoberNovemberDecember";
    const int day[] = {0, 6, 12, 19, 28, 36, 42, 50}, month[] = {0, 7, 15, 20, 25, 28, 32, 36, 42, 51, 58, 66, 74};
    size_t n = 0;
    char part[64];
    for (; *format; ++format) {
        part[0] = *format; part[1] = 0;
        if (*format == '%') {
            const char c = *++format; const int hour = t->tm_hour % 12 ? t->tm_hour % 12 : 12;
            if (c == 'Y') snprintf(part, 64, "%d", t->tm_year + 1900);
            else if (c == 'F') snprintf(part, 64, "%d-%02d-%02d", t->tm_year + 1900, t->tm_mon + 1, t->tm_mday);
            else if (c == 'T' || c == 'X') snprintf(part, 64, "%02d:%02d:%02d", t->tm_hour, t->tm_min, t->tm_sec);
            else if (c == 'D' || c == 'x') snprintf(part, 64, "%02d/%02d/%02d", t->tm_mon + 1, t->tm_mday, t->tm_year % 100);
            else if (c == 'R') snprintf(part, 64, "%02d:%02d", t->tm_hour, t->tm_min);
            else if (c == 'j') snprintf(part, 64, "%03d", t->tm_yday + 1);
            else if (c == 'e') snprintf(part, 64, "%2d", t->tm_mday);
            else if (c == 'Z') snprintf(part, 64, "UTC");
            else if (c == 'z') snprintf(part, 64, "+0000");
            else if (c == 'p') snprintf(part, 64, "%s", t->tm_hour < 12 ? "AM" : "PM");
            else if (c == 'u' || c == 'w') snprintf(part, 64, "%d", c == 'u' && !t->tm_wday ? 7 : t->tm_wday);
            else if (c == 'a' || c == 'A') snprintf(part, 64, "%.*s", c == 'a' ? 3 : day[t->tm_wday + 1] - day[t->tm_wday], days + day[t->tm_wday]);
            else if (c == 'b' || c == 'h' || c == 'B') snprintf(part, 64, "%.*s", c != 'B' ? 3 : month[t->tm_mon + 1] - month[t->tm_mon], months + month[t->tm_mon]);
            else if (c == 'c') strftime(part, 64, "%a %b %e %T %Y", t);
            else if (c == '%' || c == 0) part[1] = 0;
            else if (c == 'n' || c == 't') part[0] = c == 'n' ? '\n' : '\t';
            else snprintf(part, 64, "%02d", c == 'm' ? t->tm_mon + 1 : c == 'd' ? t->tm_mday : c == 'H' ? t->tm_hour : c == 'I' ? hour : c == 'M' ? t->tm_min : c == 'S' ? t->tm_sec : t->tm_year % 100);
            if (c == 0) break;
        }
        const size_t length = strlen(part);
        if (n + length >= size) return 0;
        strcpy(to + n, part);
        n += length;
    }
    if (size) to[n] = 0;
    return n;
}
char* asctime(const struct tm* t) { static char text[64]; strftime(text, 64, "%c\n", t); return text; }
char* ctime(const time_t* t) { return asctime(localtime(t)); }
unsigned int sleep(unsigned int seconds);
int usleep(unsigned int microseconds);
int getpid() { return 4242; }
#define SYS_gettid 186
#define SYS_getpid 39
long syscall(long number, ...) { return number == SYS_gettid || number == SYS_getpid ? getpid() : -1; }
double omp_get_wtime() { return __now_ns() * 1e-9; }
int omp_get_max_threads() { return 1; }
int omp_get_num_threads() { return 1; }
int omp_get_thread_num() { return 0; }
int omp_get_num_procs() { return 1; }
void omp_set_num_threads(int n) {}
