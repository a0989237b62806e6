// CUB's device-wide functions, computed on the host: the first call returns the workspace size, the second one works.
namespace cub {
struct Sum { template <class T> __host__ __device__ T operator()(const T& a, const T& b) const { return a + b; } };
struct Max { template <class T> __host__ __device__ T operator()(const T& a, const T& b) const { return a < b ? b : a; } };
struct Min { template <class T> __host__ __device__ T operator()(const T& a, const T& b) const { return b < a ? b : a; } };
template <class T> struct DoubleBuffer { T* d_buffers[2]; int selector; DoubleBuffer() : selector(0) {} DoubleBuffer(T* a, T* b) : selector(0) { d_buffers[0] = a; d_buffers[1] = b; }
    T* Current() { return d_buffers[selector]; } T* Alternate() { return d_buffers[selector ^ 1]; } };
template <class T> T __kind(T* p) { return T(); }
template <class T> T __kind(const T* p) { return T(); }
#define __CUB_ASKED if (!temporary) { size = 1; return cudaSuccess; }
#define __CUB_SPAN(name, p, n) thrust::__span<decltype(__kind(p))> name(p, n)
struct DeviceReduce {
    template <class I, class O> static cudaError_t Sum(void* temporary, size_t& size, I from, O to, int n, cudaStream_t s = 0) { __CUB_ASKED __CUB_SPAN(a, from, n); __CUB_SPAN(b, to, 1); auto v = __kind(to); for (int i = 0; i < n; ++i) v = v + a._items[i]; b._items[0] = v; b.back(); return cudaSuccess; }
    template <class I, class O> static cudaError_t Max(void* temporary, size_t& size, I from, O to, int n, cudaStream_t s = 0) { __CUB_ASKED __CUB_SPAN(a, from, n); __CUB_SPAN(b, to, 1); b._items[0] = *std::max_element(a._items.begin(), a._items.end()); b.back(); return cudaSuccess; }
    template <class I, class O> static cudaError_t Min(void* temporary, size_t& size, I from, O to, int n, cudaStream_t s = 0) { __CUB_ASKED __CUB_SPAN(a, from, n); __CUB_SPAN(b, to, 1); b._items[0] = *std::min_element(a._items.begin(), a._items.end()); b.back(); return cudaSuccess; }
    template <class I, class O, class F, class T> static cudaError_t Reduce(void* temporary, size_t& size, I from, O to, int n, F f, T v, cudaStream_t s = 0) { __CUB_ASKED __CUB_SPAN(a, from, n); __CUB_SPAN(b, to, 1); for (int i = 0; i < n; ++i) v = f(v, a._items[i]); b._items[0] = v; b.back(); return cudaSuccess; }
};
struct DeviceScan {
    template <class I, class O> static cudaError_t InclusiveSum(void* temporary, size_t& size, I from, O to, int n, cudaStream_t s = 0) { __CUB_ASKED thrust::inclusive_scan(from, from + n, to); return cudaSuccess; }
    template <class I, class O> static cudaError_t ExclusiveSum(void* temporary, size_t& size, I from, O to, int n, cudaStream_t s = 0) { __CUB_ASKED thrust::exclusive_scan(from, from + n, to); return cudaSuccess; }
};
struct DeviceRadixSort {
    template <class K> static cudaError_t SortKeys(void* temporary, size_t& size, const K* from, K* to, int n, int a = 0, int b = 0, cudaStream_t s = 0) { __CUB_ASKED __thrust_copy(to, from, n * sizeof(K)); thrust::sort(to, to + n); return cudaSuccess; }
    template <class K> static cudaError_t SortKeysDescending(void* temporary, size_t& size, const K* from, K* to, int n, int a = 0, int b = 0, cudaStream_t s = 0) { __CUB_ASKED __thrust_copy(to, from, n * sizeof(K)); thrust::sort(to, to + n); thrust::reverse(to, to + n); return cudaSuccess; }
    template <class K, class V> static cudaError_t SortPairs(void* temporary, size_t& size, const K* from, K* to, const V* values, V* sorted, int n, int a = 0, int b = 0, cudaStream_t s = 0) { __CUB_ASKED __thrust_copy(to, from, n * sizeof(K)); __thrust_copy(sorted, values, n * sizeof(V)); thrust::sort_by_key(to, to + n, sorted); return cudaSuccess; }
};
template <class T, int N> struct __storage { T value[N]; };
template <class T, int N = 32> struct WarpReduce {
    typedef __storage<T, N> TempStorage;
    __device__ WarpReduce(TempStorage& t) {}
    template <class F> __device__ T Reduce(T v, F f) { for (int d = N / 2; d > 0; d /= 2) v = f(v, __shfl_down_sync(0xffffffffu, v, d)); return v; }
    __device__ T Sum(T v) { for (int d = N / 2; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d); return v; }
};
template <class T, int N> struct BlockReduce {
    typedef __storage<T, N> TempStorage;
    TempStorage& _t;
    __device__ BlockReduce(TempStorage& t) : _t(t) {}
    template <class F> __device__ T Reduce(T v, F f) { _t.value[threadIdx.x] = v; __syncthreads(); for (int i = 1; threadIdx.x == 0 && i < N; ++i) v = f(v, _t.value[i]); __syncthreads(); return v; }
    __device__ T Sum(T v) { _t.value[threadIdx.x] = v; __syncthreads(); for (int i = 1; threadIdx.x == 0 && i < N; ++i) v = v + _t.value[i]; __syncthreads(); return v; }
};
template <class T, int N> struct BlockScan {
    typedef __storage<T, N> TempStorage;
    TempStorage& _t;
    __device__ BlockScan(TempStorage& t) : _t(t) {}
    __device__ void InclusiveSum(T v, T& out) { _t.value[threadIdx.x] = v; __syncthreads(); T s = _t.value[0]; for (int i = 1; i <= (int)threadIdx.x; ++i) s = s + _t.value[i]; __syncthreads(); out = s; }
    __device__ void ExclusiveSum(T v, T& out) { _t.value[threadIdx.x] = v; __syncthreads(); T s = T(); for (int i = 0; i < (int)threadIdx.x; ++i) s = s + _t.value[i]; __syncthreads(); out = s; }
};
}
