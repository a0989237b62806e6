// More of CUDA C behind a C++ compiler, for kernels of one block shape and a grid of blocks.
#include "fibers.h"
#include <sys/mman.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define __global__ static
#define __device__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __noinline__
#define __maxnreg__(...)
#define __restrict__
#define __grid_constant__
#define __cluster_dims__(...)

struct float2 { float x, y; };
struct float4 { float x, y, z, w; };
struct double2 { double x, y; };
struct int2 { int x, y; };
struct int4 { int x, y, z, w; };
static int2 make_int2(int x, int y) { return {x, y}; }
struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
template <typename T> static T __ldg(const T* at) {
    if ((size_t)at % sizeof(T)) fprintf(stderr, "a misaligned address\n"), abort();  // which a card does not forgive
    return *at;
}
// Where a word is stored, which a card does not forgive either (`behind_a_compiler.py` puts it around such stores).
template <typename T> static T* on_a_boundary(const volatile void* at) {
    if ((size_t)at % sizeof(T)) fprintf(stderr, "a store of %zu bytes on others\n", sizeof(T)), abort();
    return (T*)at;
}
static int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static unsigned __byte_perm(unsigned x, unsigned y, unsigned which) {
    unsigned long long both = x | (unsigned long long)y << 32;
    unsigned made = 0;
    for (int i = 0; i < 4; ++i) made |= (unsigned)(both >> (which >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    return made;
}
static unsigned __funnelshift_r(unsigned low, unsigned high, int by) {
    return (unsigned)(((unsigned long long)high << 32 | low) >> (by & 31));
}
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static float2 make_float2(float x, float y) { return {x, y}; }
static double2 make_double2(double x, double y) { return {x, y}; }

template <typename To, typename From> static To same_bits(From x) { To y; memcpy(&y, &x, sizeof y); return y; }
static float __uint_as_float(unsigned x) { return same_bits<float>(x); }
static unsigned __float_as_uint(float x) { return same_bits<unsigned>(x); }
static float __int_as_float(int x) { return same_bits<float>(x); }
static int __float_as_int(float x) { return same_bits<int>(x); }
static float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
static float __fadd_rn(float x, float y) { return x + y; }
static double __dadd_rn(double x, double y) { return x + y; }
static double __longlong_as_double(long long x) { return same_bits<double>(x); }
#ifdef __aarch64__  // g++ has no _Float16 in C++ there before version 13; __fp16 converts alike, and is no parameter
typedef __fp16 half_number;
#else
typedef _Float16 half_number;
#endif
static float half_bits_to_float(unsigned short x) { half_number half; memcpy(&half, &x, sizeof half); return half; }
static unsigned short float_to_half_bits(float x) {
    half_number half = x;
    unsigned short bits;
    memcpy(&bits, &half, sizeof bits);
    return bits;
}
static unsigned f16_bits(float x) { return float_to_half_bits(x); }
static unsigned bf16_bits(float x) {  // to the nearest, ties to even
    unsigned bits = __float_as_uint(x);
    return x != x ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}
static float bf16_value(unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }

template <typename T> static T min(T a, T b) { return b < a ? b : a; }
template <typename T> static T max(T a, T b) { return a < b ? b : a; }
static int atomicExch(int* at, int x) { int before = *at; *at = x; return before; }
static void atomicMax(unsigned long long* at, unsigned long long x) { *at = max(*at, x); }
static int __viaddmin_s32(int a, int b, int c) { return min((int)((unsigned)a + b), c); }
static int __viaddmax_s32(int a, int b, int c) { return max((int)((unsigned)a + b), c); }
static unsigned __viaddmin_u32(unsigned a, unsigned b, unsigned c) { return min(a + b, c); }
static unsigned __viaddmax_u32(unsigned a, unsigned b, unsigned c) { return max(a + b, c); }
static int __vimin3_s32(int a, int b, int c) { return min(min(a, b), c); }
static int __vimax3_s32(int a, int b, int c) { return max(max(a, b), c); }
template <typename T, bool LEAST> static unsigned two_shorts(unsigned a, unsigned b, unsigned c) {
    unsigned made = 0;
    for (int s = 0; s < 32; s += 16) {
        T sum = (T)((a >> s) + (b >> s)), old = (T)(c >> s);
        made |= (unsigned)(unsigned short)(LEAST ? min(sum, old) : max(sum, old)) << s;
    }
    return made;
}
static unsigned __viaddmin_s16x2(unsigned a, unsigned b, unsigned c) { return two_shorts<short, true>(a, b, c); }
static unsigned __viaddmax_s16x2(unsigned a, unsigned b, unsigned c) { return two_shorts<short, false>(a, b, c); }
static unsigned __viaddmin_u16x2(unsigned a, unsigned b, unsigned c) { return two_shorts<unsigned short, true>(a, b, c); }
static unsigned __viaddmax_u16x2(unsigned a, unsigned b, unsigned c) { return two_shorts<unsigned short, false>(a, b, c); }

static unsigned char memory[256 << 10] __attribute__((aligned(4096)));
// A launch's shared memory in whole pages; what lies behind them cannot be read or written.
static size_t reachable = sizeof memory;
extern "C" void guard(size_t bytes) {
    reachable = (bytes + 4095) / 4096 * 4096;
    if (reachable > sizeof memory || mprotect(memory, sizeof memory, PROT_READ | PROT_WRITE) ||
        mprotect(memory + reachable, sizeof memory - reachable, PROT_NONE))
        fprintf(stderr, "%zu bytes of shared memory cannot be guarded\n", bytes), abort();
}
static void spoil_shared() { memset(memory, 0xff, reachable); }
// Where copies may read: within one of these, or anywhere where there are none.
static struct { const char* low; const char* high; } readable[8];
static unsigned readables = 0;
extern "C" void allow(const char* low, const char* high) {
    if (low)
        readable[readables++ % 8] = {low, high};
    else
        readables = 0;
}
static void check_read(const void* from, size_t bytes) {
    bool inside = !readables;
    for (unsigned i = 0; i < readables; ++i)
        inside |= (const char*)from >= readable[i].low && (const char*)from + bytes <= readable[i].high;
    if (!inside) fprintf(stderr, "a copy of %zu bytes reaches beside an operand\n", bytes), abort();
}

static unsigned char kept_memory[16][sizeof memory] __attribute__((aligned(128)));  // of a cluster's blocks
static void keep_shared(unsigned block) { memcpy(kept_memory[block], memory, reachable); }
static void bring_shared(unsigned block) { memcpy(memory, kept_memory[block], reachable); }
static int atomicAdd(int* at, int by) { int was = *at; *at += by; return was; }
static void __syncwarp() { take_turns(); }
// every lane of the warp comes here, so a turn on each side makes an exchange of it
static unsigned exchanged[1024];
static unsigned __shfl_xor_sync(unsigned, unsigned x, int apart) {
    unsigned me = threadIdx.x;
    exchanged[me] = x;
    take_turns();
    unsigned made = exchanged[me ^ apart];
    take_turns();
    return made;
}
static float __shfl_xor_sync(unsigned, float x, int apart) {
    return __uint_as_float(__shfl_xor_sync(~0u, __float_as_uint(x), apart));
}

static unsigned __shfl_sync(unsigned, unsigned x, int lane) {
    unsigned me = threadIdx.x;
    exchanged[me] = x;
    take_turns();
    unsigned made = exchanged[me / 32 * 32 + (lane & 31)];
    take_turns();
    return made;
}
static int __shfl_sync(unsigned, int x, int lane) { return (int)__shfl_sync(~0u, (unsigned)x, lane); }
static float __shfl_sync(unsigned, float x, int lane) { return __uint_as_float(__shfl_sync(~0u, __float_as_uint(x), lane)); }
static void atomicMax(unsigned* at, unsigned x) { *at = max(*at, x); }
static unsigned __reduce_max_sync(unsigned, unsigned x) {
    for (int apart = 16; apart; apart /= 2) x = max(x, __shfl_xor_sync(~0u, x, apart));
    return x;
}

static int __syncthreads_or(int x) {
    unsigned me = threadIdx.y * blockDim.x + threadIdx.x, made = 0;
    exchanged[me] = x;
    __syncthreads();
    for (unsigned other = 0; other < blockDim.x * blockDim.y; ++other) made |= exchanged[other];
    __syncthreads();
    return made != 0;
}

static unsigned __ballot_sync(unsigned, bool x) {
    unsigned me = threadIdx.y * blockDim.x + threadIdx.x, made = 0;
    exchanged[me] = x;
    take_turns();
    for (unsigned lane = 0; lane < 32; ++lane) made |= (exchanged[me / 32 * 32 + lane] & 1u) << lane;
    take_turns();
    return made;
}
