// Thrust with a policy in front, and what few programs use of it: read only where it is named.
namespace thrust {
template <class T> struct constant_iterator { T _v; long _i; constant_iterator(T v, long i = 0) : _v(v), _i(i) {} T operator*() const { return _v; } T operator[](long i) const { return _v; }
    constant_iterator operator+(long n) const { return constant_iterator(_v, _i + n); } long operator-(const constant_iterator& o) const { return _i - o._i; } };
template <class T> constant_iterator<T> make_constant_iterator(T v) { return constant_iterator<T>(v); }
template <class T> T __kind(constant_iterator<T> p) { return T(); }
template <class T> struct identity { __host__ __device__ T operator()(const T& a) const { return a; } };
template <class T> struct modulus { __host__ __device__ T operator()(const T& a, const T& b) const { return a % b; } };
template <class T> struct divides { __host__ __device__ T operator()(const T& a, const T& b) const { return a / b; } };
template <class T> struct equal_to { __host__ __device__ bool operator()(const T& a, const T& b) const { return a == b; } };
template <class T> struct logical_not { __host__ __device__ bool operator()(const T& a) const { return !a; } };
template <class I, class T, class U> void sequence(I first, I last, T v, U step) { __SPAN(a, first, last - first); for (size_t i = 0; i < a._items.size(); ++i) a._items[i] = v + step * i; a.back(); }
template <class I, class T> void fill_n(I first, long n, const T& v) { thrust::fill(first, first + n, v); }
template <class I, class F> void tabulate(I first, I last, F f) { __SPAN(a, first, last - first); for (size_t i = 0; i < a._items.size(); ++i) a._items[i] = f(i); a.back(); }
template <class I> I unique(I first, I last) { __SPAN(a, first, last - first); long n = std::unique(a._items.begin(), a._items.end()) - a._items.begin(); a.back(); return first + n; }
template <class I, class F> I remove_if(I first, I last, F f) { __SPAN(a, first, last - first); long n = 0; for (size_t i = 0; i < a._items.size(); ++i) if (!f(a._items[i])) a._items[n++] = a._items[i]; a.back(); return first + n; }
template <class I, class O, class F> O copy_if(I first, I last, O to, F f) { long n = 0, k = last - first; __SPAN(a, first, k); for (long i = 0; i < k; ++i) if (f(a._items[i])) ++n; __SPAN(b, to, n); n = 0; for (long i = 0; i < k; ++i) if (f(a._items[i])) b._items[n++] = a._items[i]; b.back(); return to + n; }
template <class I, class F, class T> void replace_if(I first, I last, F f, const T& v) { __SPAN(a, first, last - first); for (size_t i = 0; i < a._items.size(); ++i) if (f(a._items[i])) a._items[i] = v; a.back(); }
template <class I, class T> void replace(I first, I last, const T& old, const T& v) { __SPAN(a, first, last - first); for (size_t i = 0; i < a._items.size(); ++i) if (a._items[i] == old) a._items[i] = v; a.back(); }
template <class I, class J, class O> O gather(I first, I last, J from, O to) { long n = last - first, most = 0; __SPAN(at, first, n); for (long i = 0; i < n; ++i) if (at._items[i] >= most) most = at._items[i] + 1; __SPAN(a, from, most); __SPAN(b, to, n); for (long i = 0; i < n; ++i) b._items[i] = a._items[at._items[i]]; b.back(); return to + n; }
template <class I, class J, class O> void scatter(I first, I last, J where, O to) { long n = last - first, most = 0; __SPAN(at, where, n); for (long i = 0; i < n; ++i) if (at._items[i] >= most) most = at._items[i] + 1; __SPAN(a, first, n); __SPAN(b, to, most); for (long i = 0; i < n; ++i) b._items[at._items[i]] = a._items[i]; b.back(); }
template <class I, class O> O adjacent_difference(I first, I last, O to) { long n = last - first; __SPAN(a, first, n); __SPAN(b, to, n); for (long i = 0; i < n; ++i) b._items[i] = i ? a._items[i] - a._items[i - 1] : a._items[i]; b.back(); return to + n; }
template <class I, class J, class O, class P> pair<O, P> reduce_by_key(I first, I last, J values, O keys, P sums) {
    long n = last - first, k = 0; __SPAN(a, first, n); __SPAN(v, values, n);
    for (long i = 0; i < n; ++i) if (i == 0 || !(a._items[i] == a._items[i - 1])) ++k;
    __SPAN(x, keys, k); __SPAN(y, sums, k); k = -1;
    for (long i = 0; i < n; ++i) { if (i == 0 || !(a._items[i] == a._items[i - 1])) { ++k; x._items[k] = a._items[i]; y._items[k] = v._items[i]; } else y._items[k] = y._items[k] + v._items[i]; }
    x.back(); y.back(); return pair<O, P>(keys + (k + 1), sums + (k + 1));
}
template <class I, class T> I find(I first, I last, const T& v) { __SPAN(a, first, last - first); return first + (std::find(a._items.begin(), a._items.end(), v) - a._items.begin()); }
template <class I, class T> bool binary_search(I first, I last, const T& v) { __SPAN(a, first, last - first); for (size_t i = 0; i < a._items.size(); ++i) if (a._items[i] == v) return true; return false; }
template <class I, class F> bool any_of(I first, I last, F f) { return thrust::count_if(first, last, f) > 0; }
template <class I, class F> bool all_of(I first, I last, F f) { return thrust::count_if(first, last, f) == last - first; }
template <class I, class F> bool none_of(I first, I last, F f) { return thrust::count_if(first, last, f) == 0; }
template <class I, class J, class F, class T, class G> T inner_product(I first, I last, J other, T s, F f, G g) { __SPAN(a, first, last - first); __SPAN(b, other, last - first); for (size_t i = 0; i < a._items.size(); ++i) s = f(s, g(a._items[i], b._items[i])); return s; }
template <class I, class O, class F> O inclusive_scan(I first, I last, O to, F f) { long n = last - first; __SPAN(a, first, n); __SPAN(c, to, n); for (long i = 0; i < n; ++i) c._items[i] = i ? f(c._items[i - 1], a._items[i]) : a._items[i]; c.back(); return to + n; }
template <class I, class O, class T, class F> O exclusive_scan(I first, I last, O to, T s, F f) { long n = last - first; __SPAN(a, first, n); __SPAN(c, to, n); for (long i = 0; i < n; ++i) { auto v = a._items[i]; c._items[i] = s; s = f(s, v); } c.back(); return to + n; }
#define __POLICIES(P) \
    template <class I, class F> void sort(P e, I first, I last, F f) { thrust::sort(first, last, f); } \
    template <class I> void stable_sort(P e, I first, I last) { thrust::stable_sort(first, last); } \
    template <class I, class J> void sort_by_key(P e, I first, I last, J values) { thrust::sort_by_key(first, last, values); } \
    template <class I> void reverse(P e, I first, I last) { thrust::reverse(first, last); } \
    template <class I> void sequence(P e, I first, I last) { thrust::sequence(first, last); } \
    template <class I, class T> void fill(P e, I first, I last, const T& v) { thrust::fill(first, last, v); } \
    template <class I, class F> void for_each(P e, I first, I last, F f) { thrust::for_each(first, last, f); } \
    template <class I, class F> void generate(P e, I first, I last, F f) { thrust::generate(first, last, f); } \
    template <class I, class F> void tabulate(P e, I first, I last, F f) { thrust::tabulate(first, last, f); } \
    template <class I, class O> O copy(P e, I first, I last, O to) { return thrust::copy(first, last, to); } \
    template <class I, class T> T reduce(P e, I first, I last, T s) { return thrust::reduce(first, last, s); } \
    template <class I, class T, class F> T reduce(P e, I first, I last, T s, F f) { return thrust::reduce(first, last, s, f); } \
    template <class I, class F, class T, class G> T transform_reduce(P e, I first, I last, F f, T s, G g) { return thrust::transform_reduce(first, last, f, s, g); } \
    template <class I, class J, class T> T inner_product(P e, I first, I last, J other, T s) { return thrust::inner_product(first, last, other, s); } \
    template <class I, class O, class F> O transform(P e, I first, I last, O to, F f) { return thrust::transform(first, last, to, f); } \
    template <class I, class J, class O, class F> O transform(P e, I first, I last, J other, O to, F f) { return thrust::transform(first, last, other, to, f); } \
    template <class I, class O, class F> O copy_if(P e, I first, I last, O to, F f) { return thrust::copy_if(first, last, to, f); } \
    template <class I> I max_element(P e, I first, I last) { return thrust::max_element(first, last); } \
    template <class I> I min_element(P e, I first, I last) { return thrust::min_element(first, last); } \
    template <class I, class T> long count(P e, I first, I last, const T& v) { return thrust::count(first, last, v); } \
    template <class I, class F> long count_if(P e, I first, I last, F f) { return thrust::count_if(first, last, f); } \
    template <class I, class J> bool equal(P e, I first, I last, J other) { return thrust::equal(first, last, other); } \
    template <class I> I unique(P e, I first, I last) { return thrust::unique(first, last); }
__POLICIES(device_t) __POLICIES(host_t)
template <class I> void sort(host_t e, I first, I last) { thrust::sort(first, last); }
template <class I> auto reduce(host_t e, I first, I last) { return thrust::reduce(first, last); }
template <class I, class O> O inclusive_scan(host_t e, I first, I last, O to) { return thrust::inclusive_scan(first, last, to); }
template <class I, class O> O exclusive_scan(host_t e, I first, I last, O to) { return thrust::exclusive_scan(first, last, to); }
namespace cuda { const device_t par = {0}; }
template <class A, class R> struct unary_function { typedef A argument_type; typedef R result_type; };
template <class A, class B, class R> struct binary_function { typedef A first_argument_type; typedef B second_argument_type; typedef R result_type; };
}
