// Device code: thread indices, barriers, atomics, warp shuffles and votes, cooperative groups.
// __wait(1): barrier of the block, __wait(2): of the warp, __wait(4): of its active threads, __wait(8): of the grid.
__device__ uint3 threadIdx; __device__ uint3 blockIdx; __device__ dim3 blockDim; __device__ dim3 gridDim;
__device__ int warpSize;
__device__ unsigned long __lane_values[1024];
__device__ int __votes[1024];
__device__ void __enter_block(unsigned long b) {
    warpSize = 32;
    blockIdx.x = b % gridDim.x; blockIdx.y = b / gridDim.x % gridDim.y; blockIdx.z = b / ((unsigned long)gridDim.x * gridDim.y);
}
__device__ void __enter_thread(unsigned long t) {
    unsigned int n = t;
    if (n < blockDim.x) { threadIdx.x = n; threadIdx.y = 0; threadIdx.z = 0; }
    else {
        unsigned int row = n / blockDim.x;
        threadIdx.x = n - row * blockDim.x;
        if (row < blockDim.y) { threadIdx.y = row; threadIdx.z = 0; }
        else { threadIdx.z = row / blockDim.y; threadIdx.y = row - threadIdx.z * blockDim.y; }
    }
}
__device__ int __thread_number() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
__device__ void __syncthreads() { __wait(1); }
__device__ void __syncwarp(unsigned int mask = 0xffffffff) { __wait(2); }
__device__ void __threadfence() {}
__device__ void __threadfence_block() {}
__device__ void __threadfence_system() {}
__device__ void __nanosleep(unsigned int ns) {}
__device__ long long clock64() { return __now_ns(); }
__device__ void __trap() { __assert_failed("__trap()", "", 0); }
__device__ int __count_in_block(int p) {
    int n = blockDim.x * blockDim.y * blockDim.z; __votes[__thread_number()] = p != 0; __wait(1);
    int sum = 0; for (int i = 0; i < n; ++i) sum += __votes[i]; __wait(1); return sum;
}
__device__ int __syncthreads_count(int p) { return __count_in_block(p); }
__device__ int __syncthreads_or(int p) { return __count_in_block(p) != 0; }
__device__ int __syncthreads_and(int p) { return __count_in_block(!p) == 0; }

template <class T> __device__ T __from_lane(T v, int lane) {
    int t = __thread_number(); *(T*)(__lane_values + t) = v; __wait(2);
    int n = blockDim.x * blockDim.y * blockDim.z; int from = (t & ~31) + lane; if (from >= n) from = t;
    T r = *(T*)(__lane_values + from); __wait(2); return r;
}
template <class T> __device__ T __shfl_sync(unsigned int m, T v, int lane, int width = 32) { int me = __thread_number() & 31; return __from_lane(v, (me & ~(width - 1)) + (lane & (width - 1))); }
template <class T> __device__ T __shfl_down_sync(unsigned int m, T v, unsigned int d, int width = 32) { int me = __thread_number() & 31; int in = me & (width - 1); return __from_lane(v, in + (int)d < width ? me + (int)d : me); }
template <class T> __device__ T __shfl_up_sync(unsigned int m, T v, unsigned int d, int width = 32) { int me = __thread_number() & 31; int in = me & (width - 1); return __from_lane(v, in >= (int)d ? me - (int)d : me); }
template <class T> __device__ T __shfl_xor_sync(unsigned int m, T v, int x, int width = 32) { int me = __thread_number() & 31; int to = me ^ x; return __from_lane(v, (to & ~(width - 1)) <= (me & ~(width - 1)) ? to : me); }
template <class T> __device__ T __shfl(T v, int lane, int width = 32) { return __shfl_sync(0xffffffff, v, lane, width); }
template <class T> __device__ T __shfl_down(T v, unsigned int d, int width = 32) { return __shfl_down_sync(0xffffffff, v, d, width); }
template <class T> __device__ T __shfl_up(T v, unsigned int d, int width = 32) { return __shfl_up_sync(0xffffffff, v, d, width); }
template <class T> __device__ T __shfl_xor(T v, int x, int width = 32) { return __shfl_xor_sync(0xffffffff, v, x, width); }
__device__ unsigned int __ballot_sync(unsigned int m, int p) {
    int t = __thread_number(); __votes[t] = p != 0; __wait(2);
    int n = blockDim.x * blockDim.y * blockDim.z; unsigned int bits = 0; int first = t & ~31;
    for (int i = 0; i < 32 && first + i < n; ++i) if ((m >> i & 1) && __votes[first + i]) bits |= 1u << i;
    __wait(2); return bits;
}
__device__ unsigned int __ballot(int p) { return __ballot_sync(0xffffffff, p); }
__device__ int __any_sync(unsigned int m, int p) { return __ballot_sync(m, p) != 0; }
__device__ int __all_sync(unsigned int m, int p) { return __ballot_sync(m, !p) == 0; }
__device__ int __any(int p) { return __ballot_sync(0xffffffff, p) != 0; }
__device__ int __all(int p) { return __ballot_sync(0xffffffff, !p) == 0; }
#define __REDUCE(name, step) template <class T> __device__ T __reduce##name##sync(unsigned int m, T v) { \
        unsigned int who = __ballot_sync(m, 1); T r = __from_lane(v, __ffs(who) - 1); \
        while (who &= who - 1) { T o = __from_lane(v, __ffs(who) - 1); step; } \
        return r; }
__REDUCE(_add_, r += o) __REDUCE(_min_, if (o < r) r = o) __REDUCE(_max_, if (r < o) r = o)
__REDUCE(_and_, r &= o) __REDUCE(_or_, r |= o) __REDUCE(_xor_, r ^= o)

#define __ATOMIC(T) \
    __device__ T atomicAdd(T* p, T v) { __accessed(p, 2); T o = *p; *p = o + v; return o; } \
    __device__ T atomicExch(T* p, T v) { __accessed(p, 4); T o = *p; *p = v; return o; } \
    __device__ T atomicAdd_block(T* p, T v) { __accessed(p, 2); T o = *p; *p = o + v; return o; } \
    __device__ T atomicAdd_system(T* p, T v) { __accessed(p, 2); T o = *p; *p = o + v; return o; }
#define __ATOMIC_INT(T) __ATOMIC(T) \
    __device__ T atomicSub(T* p, T v) { __accessed(p, 2); T o = *p; *p = o - v; return o; } \
    __device__ T atomicMin(T* p, T v) { __accessed(p, 2); T o = *p; if (v < o) *p = v; return o; } \
    __device__ T atomicMax(T* p, T v) { __accessed(p, 2); T o = *p; if (o < v) *p = v; return o; } \
    __device__ T atomicAnd(T* p, T v) { __accessed(p, 2); T o = *p; *p = o & v; return o; } \
    __device__ T atomicOr(T* p, T v) { __accessed(p, 2); T o = *p; *p = o | v; return o; } \
    __device__ T atomicXor(T* p, T v) { __accessed(p, 2); T o = *p; *p = o ^ v; return o; } \
    __device__ T atomicCAS(T* p, T old, T v) { __accessed(p, 3); T o = *p; if (o == old) *p = v; return o; }
__ATOMIC_INT(int) __ATOMIC_INT(unsigned int) __ATOMIC_INT(unsigned long long) __ATOMIC_INT(long long) __ATOMIC_INT(unsigned long)
__ATOMIC(float) __ATOMIC(double)
__device__ unsigned int atomicInc(unsigned int* p, unsigned int v) { __accessed(p, 2); unsigned int o = *p; *p = o >= v ? 0 : o + 1; return o; }
__device__ unsigned int atomicDec(unsigned int* p, unsigned int v) { __accessed(p, 2); unsigned int o = *p; *p = o == 0 || o > v ? v : o - 1; return o; }

template <class T> __device__ T __ldg(const T* p) { return *p; }
template <class T> __device__ T __ldcs(const T* p) { return *p; }
template <class T> __device__ T __ldca(const T* p) { return *p; }
template <class T> __device__ T __ldcg(const T* p) { return *p; }
template <class T> __device__ void __stcs(T* p, T v) { *p = v; }
__device__ float __expf(float x) { return expf(x); }
__device__ float __exp10f(float x) { return powf(10.0f, x); }
__device__ float __logf(float x) { return logf(x); }
__device__ float __log2f(float x) { return log2f(x); }
__device__ float __log10f(float x) { return log10f(x); }
__device__ float __powf(float x, float y) { return powf(x, y); }
__device__ float __sinf(float x) { return sinf(x); }
__device__ float __cosf(float x) { return cosf(x); }
__device__ float __tanf(float x) { return tanf(x); }
__device__ void __sincosf(float x, float* s, float* c) { *s = sinf(x); *c = cosf(x); }
__device__ void sincosf(float x, float* s, float* c) { *s = sinf(x); *c = cosf(x); }
__device__ void sincos(double x, double* s, double* c) { *s = sin(x); *c = cos(x); }
__device__ float __fdividef(float a, float b) { return a / b; }
__device__ float fdividef(float a, float b) { return a / b; }
__device__ float __fsqrt_rn(float x) { return sqrtf(x); }
__device__ float __frcp_rn(float x) { return 1.0f / x; }
__device__ float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
__device__ float rsqrtf(float x) { return 1.0f / sqrtf(x); }
__device__ double rsqrt(double x) { return 1.0 / sqrt(x); }
__device__ float __saturatef(float x) { return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x; }
__device__ float __fadd_rn(float a, float b) { return a + b; }
__device__ float __fmul_rn(float a, float b) { return a * b; }
__device__ float __fsub_rn(float a, float b) { return a - b; }
__device__ float __fdiv_rn(float a, float b) { return a / b; }
__device__ float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
__device__ double __dadd_rn(double a, double b) { return a + b; }
__device__ double __dmul_rn(double a, double b) { return a * b; }
__device__ int __mul24(int a, int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
__device__ unsigned int __umul24(unsigned int a, unsigned int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
__device__ int __mulhi(int a, int b) { return (int)((long)a * b >> 32); }
__device__ unsigned int __umulhi(unsigned int a, unsigned int b) { return (unsigned int)((unsigned long)a * b >> 32); }
__device__ int __popc(unsigned int x) {
    x -= x >> 1 & 0x55555555u; x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    return (int)(((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24);
}
__device__ int __popcll(unsigned long long x) { return __popc((unsigned int)x) + __popc((unsigned int)(x >> 32)); }
__device__ int __clz(int n) { unsigned int x = n; x |= x >> 1; x |= x >> 2; x |= x >> 4; x |= x >> 8; x |= x >> 16; return 32 - __popc(x); }
__device__ int __clzll(long long x) { int high = (int)(x >> 32); return high ? __clz(high) : 32 + __clz((int)x); }
__device__ int __ffs(int x) { return x ? 32 - __clz(x & -x) : 0; }
__device__ unsigned int __brev(unsigned int x) { unsigned int r = 0; for (int i = 0; i < 32; ++i) { r = r << 1 | (x & 1); x >>= 1; } return r; }
__device__ int __float2int_rn(float x) { return (int)rintf(x); }
__device__ int __float2int_rz(float x) { return (int)x; }
__device__ int __float2int_rd(float x) { return (int)floorf(x); }
__device__ int __float2int_ru(float x) { return (int)ceilf(x); }
__device__ unsigned int __float2uint_rn(float x) { return (unsigned int)rintf(x); }
__device__ float __int2float_rn(int x) { return (float)x; }
__device__ float __uint2float_rn(unsigned int x) { return (float)x; }
__device__ int __float_as_int(float x) { return *(int*)&x; }
__device__ unsigned int __float_as_uint(float x) { return *(unsigned int*)&x; }
__device__ float __int_as_float(int x) { return *(float*)&x; }
__device__ float __uint_as_float(unsigned int x) { return *(float*)&x; }
__device__ long long __double_as_longlong(double x) { return *(long long*)&x; }
__device__ double __longlong_as_double(long long x) { return *(double*)&x; }
__device__ double __ulonglong_as_double(unsigned long long x) { return *(double*)&x; }
// of cuda_pipeline.h: copied at once; instrumented kernels report who touches the bytes before the wait
template <class T> __device__ void __pipeline_memcpy_async(T* to, const T* from, size_t size, size_t zeros = 0) {
    for (size_t i = 0; i < size / sizeof(T); ++i) if (i < (size - zeros) / sizeof(T)) to[i] = from[i]; else to[i] = T();
    __async_copy(to, from, size);
}
template <class T, class U> __device__ void __pipeline_memcpy_async(T* to, const U* from, size_t size, size_t zeros = 0) { __pipeline_memcpy_async((int*)to, (const int*)from, size, zeros); }
__device__ void __pipeline_commit() { __async_commit(); }
__device__ void __pipeline_wait_prior(size_t groups) { __async_wait(groups); }

// memcpy, memmove and memset of kernels
template <class T> __device__ void __move(T* to, const T* from, size_t n) {
    for (size_t j = 0; j < n; ++j) { size_t i = to < from ? j : n - 1 - j; __accessed(from + i, 0); __accessed(to + i, 1); to[i] = from[i]; }
}
__device__ void* __device_memmove(void* to, const void* from, size_t n) {
    if ((((size_t)to | (size_t)from | n) & 3) == 0) __move((int*)to, (const int*)from, n / 4); else __move((char*)to, (const char*)from, n);
    return to;
}
__device__ void* __device_memcpy(void* to, const void* from, size_t n) { return __device_memmove(to, from, n); }
__device__ void* __device_memset(void* to, int value, size_t n) {
    for (size_t i = 0; i < n; ++i) { __accessed((char*)to + i, 1); ((char*)to)[i] = (char)value; }
    return to;
}

namespace cooperative_groups {
struct thread_block {
    __device__ void sync() const { __wait(1); }
    __device__ unsigned int thread_rank() const { return __thread_number(); }
    __device__ unsigned int size() const { return blockDim.x * blockDim.y * blockDim.z; }
    __device__ unsigned int num_threads() const { return blockDim.x * blockDim.y * blockDim.z; }
    __device__ dim3 group_index() const { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    __device__ dim3 thread_index() const { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
    __device__ dim3 group_dim() const { return blockDim; }
};
struct thread_group {  // a tile of known size, or the block
    unsigned int _n;
    __device__ thread_group(const thread_block& b) : _n(0) {}
    __device__ thread_group(unsigned int n) : _n(n) {}
    __device__ void sync() const { if (_n) __wait(2); else __wait(1); }
    __device__ unsigned int size() const { return _n ? _n : blockDim.x * blockDim.y * blockDim.z; }
    __device__ unsigned int num_threads() const { return size(); }
    __device__ unsigned int thread_rank() const { return _n ? __thread_number() % _n : __thread_number(); }
    template <class T> __device__ T shfl(T v, int lane) const { return __shfl_sync(0xffffffff, v, lane, _n); }
    template <class T> __device__ T shfl_down(T v, unsigned int d) const { return __shfl_down_sync(0xffffffff, v, d, _n); }
};
__device__ thread_block this_thread_block() { thread_block b; return b; }
template <unsigned int N> struct thread_block_tile {
    __device__ void sync() const { __wait(2); }
    __device__ unsigned int thread_rank() const { return __thread_number() % N; }
    __device__ unsigned int size() const { return N; }
    __device__ unsigned int num_threads() const { return N; }
    __device__ unsigned int meta_group_rank() const { return __thread_number() / N; }
    __device__ unsigned int meta_group_size() const { return (blockDim.x * blockDim.y * blockDim.z + N - 1) / N; }
    template <class T> __device__ T shfl(T v, int lane) const { return __shfl_sync(0xffffffff, v, lane, N); }
    template <class T> __device__ T shfl_down(T v, unsigned int d) const { return __shfl_down_sync(0xffffffff, v, d, N); }
    template <class T> __device__ T shfl_up(T v, unsigned int d) const { return __shfl_up_sync(0xffffffff, v, d, N); }
    template <class T> __device__ T shfl_xor(T v, int x) const { return __shfl_xor_sync(0xffffffff, v, x, N); }
    __device__ int any(int p) const { return (__ballot_sync(0xffffffff, p) >> (__thread_number() % 32 / N * N) & (unsigned int)((1ul << N) - 1)) != 0; }
    __device__ int all(int p) const { return !any(!p); }
    __device__ unsigned int ballot(int p) const { return __ballot_sync(0xffffffff, p) >> (__thread_number() % 32 / N * N) & (unsigned int)((1ul << N) - 1); }
};
template <unsigned int N, class G> __device__ thread_block_tile<N> tiled_partition(const G& g) { thread_block_tile<N> t; return t; }
template <class G> __device__ thread_group tiled_partition(const G& g, unsigned int n) { return thread_group(n); }
template <class G> __device__ void sync(const G& g) { g.sync(); }
template <class G, class T> __device__ void memcpy_async(const G& g, T* to, const T* from, size_t bytes) {
    for (size_t i = g.thread_rank(); i < bytes / sizeof(T); i += g.size()) __pipeline_memcpy_async(to + i, from + i, sizeof(T));
    __pipeline_commit();
}
template <class G, class T> __device__ void memcpy_async(const G& g, T* to, size_t room, const T* from, size_t count) {
    memcpy_async(g, to, from, (room < count ? room : count) * sizeof(T));
}
template <unsigned int N, class G> __device__ void wait_prior(const G& g) { __pipeline_wait_prior(N); g.sync(); }
template <class G> __device__ void wait(const G& g) { __pipeline_wait_prior(0); g.sync(); }
template <class T> struct plus { __device__ T operator()(const T& a, const T& b) const { return a + b; } };
template <class T> struct less { __device__ T operator()(const T& a, const T& b) const { return a < b ? a : b; } };
template <class T> struct greater { __device__ T operator()(const T& a, const T& b) const { return a < b ? b : a; } };
template <unsigned int N, class T, class F> __device__ T reduce(const thread_block_tile<N>& g, T v, F f) { for (unsigned int d = N / 2; d; d /= 2) v = f(v, g.shfl_xor(v, d)); return v; }
}
namespace cuda {
enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };
template <size_t A> struct aligned_size_t { size_t value; __device__ aligned_size_t(size_t n) : value(n) {} __device__ operator size_t() const { return value; } };
template <thread_scope S> struct pipeline {
    size_t _committed, _consumed;
    __device__ pipeline() : _committed(0), _consumed(0) {}
    __device__ void producer_acquire() {}
    __device__ void producer_commit() { __pipeline_commit(); ++_committed; }
    __device__ void consumer_wait() { ++_consumed; __pipeline_wait_prior(_committed - _consumed); }
    __device__ void consumer_release() {}
};
__device__ pipeline<thread_scope_thread> make_pipeline() { return pipeline<thread_scope_thread>(); }
template <size_t N> __device__ void pipeline_consumer_wait_prior(pipeline<thread_scope_thread>& p) { p._consumed = p._committed - N; __pipeline_wait_prior(N); }
template <thread_scope S> struct barrier {  // a copy that a thread issued before it arrives has arrived with it
    int _expected, _arrived; unsigned long _phase;
    typedef unsigned long arrival_token;
    __device__ unsigned long arrive(int n = 1) {
        __pipeline_commit(); __pipeline_wait_prior(0);
        const unsigned long phase = _phase;
        if ((_arrived += n) >= _expected) { _arrived = 0; ++_phase; __async_phase(); }
        return phase;
    }
    __device__ void wait(unsigned long phase) const { while (_phase == phase) __wait(16); }
    __device__ void arrive_and_wait() { wait(arrive()); }
    __device__ void arrive_and_drop() { --_expected; arrive(0); }
};
template <thread_scope S> __device__ void init(barrier<S>* b, int threads) { b->_expected = threads; b->_arrived = 0; b->_phase = 0; }
template <class T, class P> __device__ void memcpy_async(T* to, const T* from, size_t bytes, P& by) { __pipeline_memcpy_async(to, from, bytes); }
template <class G, class T, class P> __device__ void memcpy_async(const G& g, T* to, const T* from, size_t bytes, P& by) {
    for (size_t i = g.thread_rank(); i < bytes / sizeof(T); i += g.size()) __pipeline_memcpy_async(to + i, from + i, sizeof(T));
}
}
__device__ int __here[1024];
__device__ unsigned int __activemask() {
    int t = __thread_number(); __here[t] = 1; __wait(4);
    int n = blockDim.x * blockDim.y * blockDim.z; unsigned int bits = 0; int first = t & ~31;
    for (int i = 0; i < 32 && first + i < n; ++i) if (__here[first + i]) bits |= 1u << i;
    __wait(4); __here[t] = 0; return bits;
}
template <class T> __device__ unsigned int __match_any_sync(unsigned int m, T v) {
    int t = __thread_number(); *(T*)(__lane_values + t) = v; __wait(2);
    int n = blockDim.x * blockDim.y * blockDim.z; unsigned int bits = 0; int first = t & ~31;
    for (int i = 0; i < 32 && first + i < n; ++i) if ((m >> i & 1) && *(T*)(__lane_values + first + i) == v) bits |= 1u << i;
    __wait(2); return bits;
}
template <class T> __device__ unsigned int __match_all_sync(unsigned int m, T v, int* all) { unsigned int bits = __match_any_sync(m, v); *all = bits == m; return *all ? m : 0; }
__device__ unsigned int __funnelshift_l(unsigned int lo, unsigned int hi, unsigned int n) { return (unsigned int)(((unsigned long)hi << 32 | lo) << (n & 31) >> 32); }
__device__ unsigned int __funnelshift_r(unsigned int lo, unsigned int hi, unsigned int n) { return (unsigned int)(((unsigned long)hi << 32 | lo) >> (n & 31)); }
__device__ unsigned int __byte_perm(unsigned int a, unsigned int b, unsigned int s) { unsigned long v = (unsigned long)b << 32 | a; unsigned int r = 0; for (int i = 0; i < 4; ++i) r |= (unsigned int)(v >> (s >> 4 * i & 7) * 8 & 255) << 8 * i; return r; }
__device__ int __dp4a(int a, int b, int c) { for (int i = 0; i < 4; ++i) c += (int)(signed char)(a >> 8 * i) * (int)(signed char)(b >> 8 * i); return c; }
// PTX addresses of shared memory have 32 bits: here, offsets from a __shared__ variable
__device__ char* __shared_base() { __shared__ char base[16]; return base; }
__device__ unsigned long __cvta_generic_to_shared(const void* p) { return (unsigned long)((const char*)p - __shared_base()) & 0xffffffffu; }
__device__ void* __cvta_shared_to_generic(unsigned long a) { return __shared_base() + (int)a; }
__device__ unsigned long __cvta_generic_to_global(const void* p) { return (unsigned long)p; }
__device__ unsigned int __lane_bits(int kind) { unsigned int me = 1u << (__thread_number() & 31); return kind == 0 ? me : kind == 1 ? me - 1 : kind == 2 ? (me - 1) | me : kind == 3 ? ~((me - 1) | me) : ~(me - 1); }
__device__ unsigned int __block_number() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }

namespace cooperative_groups {
struct coalesced_group {  // synchronises only its own threads: others of the warp may have diverged
    unsigned int _mask;
    __device__ void sync() const { __wait(4); }
    __device__ unsigned int size() const { return __popc(_mask); }
    __device__ unsigned int num_threads() const { return __popc(_mask); }
    __device__ unsigned int thread_rank() const { return __popc(_mask & __lane_bits(1)); }
    __device__ int _lane(int rank) const { unsigned int m = _mask; for (int i = 0; i < rank; ++i) m &= m - 1; return m ? __ffs((int)m) - 1 : __thread_number() & 31; }
    template <class T> __device__ T _from(T v, int lane) const { int t = __thread_number(); *(T*)(__lane_values + t) = v; __wait(4); T r = *(T*)(__lane_values + (t & ~31) + lane); __wait(4); return r; }
    template <class T> __device__ T shfl(T v, int rank) const { return _from(v, _lane(rank)); }
    template <class T> __device__ T shfl_down(T v, unsigned int d) const { int r = thread_rank() + d; return _from(v, _lane(r < (int)size() ? r : (int)thread_rank())); }
    template <class T> __device__ T shfl_up(T v, unsigned int d) const { int r = thread_rank(); return _from(v, _lane(r >= (int)d ? r - (int)d : r)); }
    __device__ unsigned int ballot(int p) const {
        int t = __thread_number(); __votes[t] = p != 0; __wait(4); unsigned int bits = 0; int rank = 0;
        for (int i = 0; i < 32; ++i) if (_mask >> i & 1) bits |= (unsigned int)__votes[(t & ~31) + i] << rank++;
        __wait(4); return bits;
    }
    __device__ int any(int p) const { return ballot(p) != 0; }
    __device__ int all(int p) const { return ballot(!p) == 0; }
};
__device__ coalesced_group coalesced_threads() { coalesced_group g; g._mask = __activemask(); return g; }
template <class T, class F> __device__ T reduce(const coalesced_group& g, T v, F f) { T all = g.shfl(v, 0); for (int i = 1; i < (int)g.size(); ++i) all = f(all, g.shfl(v, i)); return all; }
struct grid_group {
    __device__ void sync() const { __wait(8); }
    __device__ unsigned long long thread_rank() const { return (unsigned long long)__block_number() * (blockDim.x * blockDim.y * blockDim.z) + __thread_number(); }
    __device__ unsigned long long size() const { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z * (blockDim.x * blockDim.y * blockDim.z); }
    __device__ unsigned long long num_threads() const { return size(); }
    __device__ unsigned int block_rank() const { return __block_number(); }
    __device__ unsigned int num_blocks() const { return gridDim.x * gridDim.y * gridDim.z; }
    __device__ dim3 group_dim() const { return gridDim; }
    __device__ bool is_valid() const { return true; }
};
__device__ grid_group this_grid() { grid_group g; return g; }
}
