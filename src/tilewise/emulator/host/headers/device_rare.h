// What few kernels use: who of a warp is here, groups of those, the whole grid, matching values, words of the hardware.
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
// shared memory has addresses of 32 bits in PTX: they count from a variable that lies there
__device__ char* __shared_base() { __shared__ char base[16]; return base; }
__device__ unsigned long __cvta_generic_to_shared(const void* p) { return (unsigned long)((const char*)p - __shared_base()) & 0xffffffffu; }
__device__ void* __cvta_shared_to_generic(unsigned long a) { return __shared_base() + (int)a; }
__device__ unsigned long __cvta_generic_to_global(const void* p) { return (unsigned long)p; }
__device__ unsigned int __lane_bits(int kind) { unsigned int me = 1u << (__thread_number() & 31); return kind == 0 ? me : kind == 1 ? me - 1 : kind == 2 ? (me - 1) | me : kind == 3 ? ~((me - 1) | me) : ~(me - 1); }
__device__ unsigned int __block_number() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }

namespace cooperative_groups {
struct coalesced_group {  // its threads wait for each other alone: the others of the warp may be elsewhere
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
