// wmma: products of small tiles by a warp. Here every thread of the warp holds the whole tile and does the whole product, so
// that what is stored is right; how the cells of a tile lie among the threads is nobody's business, as the guide has it.
namespace nvcuda { namespace wmma {
struct matrix_a { int n; }; struct matrix_b { int n; }; struct accumulator { int n; };
struct row_major { int n; }; struct col_major { int n; };
namespace precision { struct tf32 { float v; }; }
enum layout_t { mem_row_major = 0, mem_col_major = 1 };
template <class L> struct __layout { static const int columns = 0; };
template <> struct __layout<col_major> { static const int columns = 1; };
template <class U, int M, int N, int K> struct __tile { static const int rows = M; static const int cols = N; };
template <int M, int N, int K> struct __tile<matrix_a, M, N, K> { static const int rows = M; static const int cols = K; };
template <int M, int N, int K> struct __tile<matrix_b, M, N, K> { static const int rows = K; static const int cols = N; };
template <class T> struct __cell { typedef T type; };
template <> struct __cell<precision::tf32> { typedef float type; };
template <class U, int M, int N, int K, class T, class L = row_major> struct fragment {
    static const int num_elements = __tile<U, M, N, K>::rows * __tile<U, M, N, K>::cols;
    typename __cell<T>::type x[__tile<U, M, N, K>::rows * __tile<U, M, N, K>::cols];
};
template <class U, int M, int N, int K, class T, class L, class V> __device__ void fill_fragment(fragment<U, M, N, K, T, L>& f, V v) {
    for (int i = 0; i < __tile<U, M, N, K>::rows * __tile<U, M, N, K>::cols; ++i) f.x[i] = v;
}
template <class U, int M, int N, int K, class T, class L, class P> __device__ void load_matrix_sync(fragment<U, M, N, K, T, L>& f, const P* p, unsigned int ld) {
    const int rows = __tile<U, M, N, K>::rows, cols = __tile<U, M, N, K>::cols;
    for (int i = 0; i < rows; ++i) for (int j = 0; j < cols; ++j) f.x[i * cols + j] = __layout<L>::columns ? p[j * ld + i] : p[i * ld + j];
    __wait(2);
}
template <int M, int N, int K, class T, class L, class P> __device__ void load_matrix_sync(fragment<accumulator, M, N, K, T, L>& f, const P* p, unsigned int ld, layout_t l) {
    for (int i = 0; i < M; ++i) for (int j = 0; j < N; ++j) f.x[i * N + j] = l == mem_col_major ? p[j * ld + i] : p[i * ld + j];
    __wait(2);
}
template <int M, int N, int K, class T, class L, class P> __device__ void store_matrix_sync(P* p, const fragment<accumulator, M, N, K, T, L>& f, unsigned int ld, layout_t l) {
    for (int i = 0; i < M; ++i) for (int j = 0; j < N; ++j) { if (l == mem_col_major) p[j * ld + i] = f.x[i * N + j]; else p[i * ld + j] = f.x[i * N + j]; }
    __wait(2);
}
template <int M, int N, int K, class A, class LA, class LB, class C, class LC, class LD> __device__ void mma_sync(fragment<accumulator, M, N, K, C, LD>& d, const fragment<matrix_a, M, N, K, A, LA>& a, const fragment<matrix_b, M, N, K, A, LB>& b, const fragment<accumulator, M, N, K, C, LC>& c) {
    for (int i = 0; i < M; ++i) for (int j = 0; j < N; ++j) {
        float s = (float)c.x[i * N + j];
        for (int k = 0; k < K; ++k) s += (float)a.x[i * K + k] * (float)b.x[k * N + j];
        d.x[i * N + j] = (C)s;
    }
    __wait(2);
}
__device__ float __float_to_tf32(float v) { unsigned int u = (*(unsigned int*)&v + 4096u) & 4294959104u; return *(float*)&u; }
} }
