// wmma: products of small tiles by a warp. A lane computes the M * N / 32 cells whose number modulo 32 is its own; they are in
// one column, since N divides 32. Its fragments hold these cells, the rows of A and the column of B that they need.
namespace nvcuda { namespace wmma {
struct matrix_a { int n; }; struct matrix_b { int n; }; struct accumulator { int n; };
struct row_major { int n; }; struct col_major { int n; };
namespace precision { struct tf32 { float v; }; }
enum layout_t { mem_row_major = 0, mem_col_major = 1 };
template <class L> struct __layout { static const int columns = 0; };
template <> struct __layout<col_major> { static const int columns = 1; };
template <class U, int M, int N, int K> struct __held { static const int cells = M * N / 32; };
template <int M, int N, int K> struct __held<matrix_a, M, N, K> { static const int first = 1; static const int rows = M * N / 32; static const int cells = M * N / 32 * K; };
template <int M, int N, int K> struct __held<matrix_b, M, N, K> { static const int first = 0; static const int rows = 1; static const int cells = K; };
template <class T> struct __cell { typedef T type; };
template <> struct __cell<precision::tf32> { typedef float type; };
template <class U, int M, int N, int K, class T, class L = row_major> struct fragment {
    static const int num_elements = __held<U, M, N, K>::cells;
    typename __cell<T>::type x[__held<U, M, N, K>::cells];
};
template <class U, int M, int N, int K, class T, class L, class V> __device__ void fill_fragment(fragment<U, M, N, K, T, L>& f, V v) {
    for (int i = 0; i < __held<U, M, N, K>::cells; ++i) f.x[i] = v;
}
template <class U, int M, int N, int K, class T, class L, class P> __device__ void load_matrix_sync(fragment<U, M, N, K, T, L>& f, const P* p, unsigned int ld) {
    const int lane = __thread_number() & 31;
    for (int e = 0; e < __held<U, M, N, K>::rows; ++e) {
        const int i = e * (32 / N) + lane / N;
        for (int k = 0; k < K; ++k) { const int r = __held<U, M, N, K>::first ? i : k, c = __held<U, M, N, K>::first ? k : lane % N; const P* at = __layout<L>::columns ? p + c * ld + r : p + r * ld + c; __accessed(at, 0); f.x[e * K + k] = *at; }
    }
    __wait(2);
}
template <int M, int N, int K, class T, class L, class P> __device__ void load_matrix_sync(fragment<accumulator, M, N, K, T, L>& f, const P* p, unsigned int ld, layout_t l) {
    const int lane = __thread_number() & 31, j = lane % N;
    for (int e = 0; e < M * N / 32; ++e) { const int i = e * (32 / N) + lane / N; const P* at = l == mem_col_major ? p + j * ld + i : p + i * ld + j; __accessed(at, 0); f.x[e] = *at; }
    __wait(2);
}
template <int M, int N, int K, class T, class L, class P> __device__ void store_matrix_sync(P* p, const fragment<accumulator, M, N, K, T, L>& f, unsigned int ld, layout_t l) {
    const int lane = __thread_number() & 31, j = lane % N;
    for (int e = 0; e < M * N / 32; ++e) { const int i = e * (32 / N) + lane / N; P* at = l == mem_col_major ? p + j * ld + i : p + i * ld + j; __accessed(at, 1); *at = f.x[e]; }
    __wait(2);
}
template <int M, int N, int K, class A, class LA, class LB, class C, class LC, class LD> __device__ void mma_sync(fragment<accumulator, M, N, K, C, LD>& d, const fragment<matrix_a, M, N, K, A, LA>& a, const fragment<matrix_b, M, N, K, A, LB>& b, const fragment<accumulator, M, N, K, C, LC>& c) {
    for (int e = 0; e < M * N / 32; ++e) {
        float s = (float)c.x[e];
        for (int k = 0; k < K; ++k) s += (float)a.x[e * K + k] * (float)b.x[k];
        d.x[e] = (C)s;
    }
    __wait(2);
}
__device__ float __float_to_tf32(float v) { unsigned int u = (*(unsigned int*)&v + 4096u) & 4294959104u; return *(float*)&u; }
} }
