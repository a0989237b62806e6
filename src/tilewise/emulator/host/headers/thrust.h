// Thrust on memory of the card, computed on the host; its time is not simulated.
void __thrust_copy(void* to, const void* from, size_t size);
void* __thrust_memory(size_t size);
void __vector_free(void* p);
namespace thrust {
template <class T> T __load(const T* p) { T v; __thrust_copy(&v, p, sizeof(T)); return v; }
template <class T> struct device_ptr;
template <class T> struct device_reference {
    T* _p;
    device_ptr<T> operator&() const { return device_ptr<T>(_p); }
    device_reference(T* p) : _p(p) {}
    operator T() const { return __load(_p); }
    device_reference& operator=(const T& v) { __thrust_copy(_p, &v, sizeof(T)); return *this; }
    device_reference& operator=(const device_reference& o) { T v = __load(o._p); __thrust_copy(_p, &v, sizeof(T)); return *this; }
    device_reference& operator+=(const T& v) { T n = __load(_p) + v; __thrust_copy(_p, &n, sizeof(T)); return *this; }
};
template <class T> struct device_ptr {
    T* _p;
    typedef T value_type;
    device_ptr() : _p(nullptr) {}
    explicit device_ptr(T* p) : _p(p) {}
    T* get() const { return _p; }
    device_reference<T> operator*() const { return device_reference<T>(_p); }
    device_reference<T> operator[](long i) const { return device_reference<T>(_p + i); }
    device_ptr operator+(long n) const { return device_ptr(_p + n); }
    device_ptr operator-(long n) const { return device_ptr(_p - n); }
    long operator-(const device_ptr& o) const { return _p - o._p; }
    device_ptr& operator++() { ++_p; return *this; }
    device_ptr& operator+=(long n) { _p += n; return *this; }
    bool operator==(const device_ptr& o) const { return _p == o._p; }
    bool operator!=(const device_ptr& o) const { return _p != o._p; }
    bool operator<(const device_ptr& o) const { return _p < o._p; }
};
template <class T> device_ptr<T> device_pointer_cast(T* p) { return device_ptr<T>(p); }
template <class T> T* raw_pointer_cast(device_ptr<T> p) { return p._p; }
template <class T> T* raw_pointer_cast(T* p) { return p; }
template <class T> struct device_vector;
template <class T> struct counting_iterator;
template <class T> struct host_vector : public std::vector<T> {
    host_vector() {}
    explicit host_vector(size_t n) : std::vector<T>(n) {}
    host_vector(size_t n, const T& v) : std::vector<T>(n, v) {}
    host_vector(const host_vector& o) : std::vector<T>(o.size()) { o._copy_to(this->data(), o.size()); }
    host_vector(const device_vector<T>& o) : std::vector<T>(o.size()) { o._copy_to(this->data(), o.size()); }
    host_vector(const std::vector<T>& o) : std::vector<T>(o) {}
    host_vector(std::initializer_list<T> l) : std::vector<T>(l) {}
    template <class I> host_vector(I* first, I* last) : std::vector<T>(first, last) {}
    host_vector(device_ptr<T> first, device_ptr<T> last) : std::vector<T>(last.get() - first.get()) { if (this->size()) __thrust_copy(this->data(), first.get(), this->size() * sizeof(T)); }
    host_vector& operator=(const host_vector& o) { this->resize(o.size()); o._copy_to(this->data(), o.size()); return *this; }
    host_vector& operator=(const device_vector<T>& o) { this->resize(o.size()); o._copy_to(this->data(), o.size()); return *this; }
    void _copy_to(T* to, size_t n) const { if (n) __thrust_copy(to, this->data(), n * sizeof(T)); }
};
template <class T> struct device_vector {
    T* _data; size_t _size;
    typedef T value_type; typedef device_ptr<T> iterator;
    void _take(size_t n) { _size = n; _data = n ? (T*)__thrust_memory(n * sizeof(T)) : nullptr; }
    void _fill(size_t from, const T& v) {
        if (from >= _size) return;
        T* to = _data + from; size_t n = _size - from;
        __thrust_copy(to, &v, sizeof(T));
        for (size_t done = 1; done < n; done *= 2) __thrust_copy(to + done, to, (done < n - done ? done : n - done) * sizeof(T));
    }
    device_vector() : _data(nullptr), _size(0) {}
    explicit device_vector(size_t n) { _take(n); T zero = T(); _fill(0, zero); }
    device_vector(size_t n, const T& v) { _take(n); _fill(0, v); }
    device_vector(const device_vector& o) { _take(o._size); if (_size) __thrust_copy(_data, o._data, _size * sizeof(T)); }
    device_vector(const std::vector<T>& o) { _take(o.size()); if (_size) __thrust_copy(_data, o.data(), _size * sizeof(T)); }
    device_vector(const host_vector<T>& o) { _take(o.size()); if (_size) __thrust_copy(_data, o.data(), _size * sizeof(T)); }
    device_vector(std::initializer_list<T> l) { _take(l.size()); if (_size) __thrust_copy(_data, l.begin(), _size * sizeof(T)); }
    device_vector(const T* first, const T* last) { _take(last - first); if (_size) __thrust_copy(_data, first, _size * sizeof(T)); }
    device_vector(device_ptr<T> first, device_ptr<T> last) { _take(last.get() - first.get()); if (_size) __thrust_copy(_data, first.get(), _size * sizeof(T)); }
    device_vector(T* first, T* last) { _take(last - first); if (_size) __thrust_copy(_data, first, _size * sizeof(T)); }
    device_vector(counting_iterator<T> first, counting_iterator<T> last) { std::vector<T> v(last - first); for (size_t i = 0; i < v.size(); ++i) v[i] = first[i]; _take(v.size()); if (_size) __thrust_copy(_data, v.data(), _size * sizeof(T)); }
    device_ptr<T> cbegin() const { return device_ptr<T>(_data); }
    device_ptr<T> cend() const { return device_ptr<T>(_data + _size); }
    ~device_vector() { if (_data) __vector_free(_data); }
    device_vector& operator=(const device_vector& o) { if (this != &o) { if (_data) __vector_free(_data); _take(o._size); if (_size) __thrust_copy(_data, o._data, _size * sizeof(T)); } return *this; }
    device_vector& operator=(const host_vector<T>& o) { if (_data) __vector_free(_data); _take(o.size()); if (_size) __thrust_copy(_data, o.data(), _size * sizeof(T)); return *this; }
    device_vector& operator=(const std::vector<T>& o) { if (_data) __vector_free(_data); _take(o.size()); if (_size) __thrust_copy(_data, o.data(), _size * sizeof(T)); return *this; }
    void _copy_to(T* to, size_t n) const { if (n) __thrust_copy(to, _data, n * sizeof(T)); }
    size_t size() const { return _size; }
    bool empty() const { return _size == 0; }
    void resize(size_t n) { T zero = T(); resize(n, zero); }
    void resize(size_t n, const T& v) { T* old = _data; size_t had = _size; _take(n); _fill(had < n ? had : n, v); if (old) { __thrust_copy(_data, old, (had < n ? had : n) * sizeof(T)); __vector_free(old); } }
    void clear() { if (_data) __vector_free(_data); _data = nullptr; _size = 0; }
    void shrink_to_fit() {}
    void reserve(size_t n) {}
    size_t capacity() const { return _size; }
    void push_back(const T& v) { resize(_size + 1, v); }
    void pop_back() { resize(_size - 1); }
    void assign(size_t n, const T& v) { resize(n); _fill(0, v); }
    void swap(device_vector& o) { T* d = _data; _data = o._data; o._data = d; size_t n = _size; _size = o._size; o._size = n; }
    device_ptr<T> data() const { return device_ptr<T>(_data); }
    device_ptr<T> begin() const { return device_ptr<T>(_data); }
    device_ptr<T> end() const { return device_ptr<T>(_data + _size); }
    device_reference<T> operator[](size_t i) const { return device_reference<T>(_data + i); }
    device_reference<T> front() const { return device_reference<T>(_data); }
    device_reference<T> back() const { return device_reference<T>(_data + _size - 1); }
};
template <class T> struct counting_iterator;
template <class T> struct __span { std::vector<T> _items; T* _p;
    __span(const counting_iterator<T>& first, long n) : _items(n), _p(nullptr) { for (long i = 0; i < n; ++i) _items[i] = first[i]; }
    __span(device_ptr<T> first, long n) : _items(n), _p(first._p) { if (n) __thrust_copy(_items.data(), _p, n * sizeof(T)); }
    __span(T* first, long n) : _items(n), _p(first) { if (n) __thrust_copy(_items.data(), _p, n * sizeof(T)); }
    void back() { if (_p && _items.size()) __thrust_copy(_p, _items.data(), _items.size() * sizeof(T)); }
    template <class F> void each(F f) { for (size_t i = 0; i < _items.size(); ++i) f(_items[i]); back(); } };
template <class T> T __kind(device_ptr<T> p) { return T(); }
template <class T> T __kind(T* p) { return T(); }
template <class T> T __kind(const T* p) { return T(); }
template <class T> struct counting_iterator {
    T _at;
    explicit counting_iterator(T v) : _at(v) {}
    T operator*() const { return _at; }
    T operator[](long i) const { return _at + (T)i; }
    counting_iterator operator+(long n) const { return counting_iterator(_at + (T)n); }
    counting_iterator& operator++() { ++_at; return *this; }
    long operator-(const counting_iterator& o) const { return (long)(_at - o._at); }
    bool operator!=(const counting_iterator& o) const { return _at != o._at; }
};
template <class T> counting_iterator<T> make_counting_iterator(T v) { return counting_iterator<T>(v); }
template <class T> T __kind(counting_iterator<T> p) { return T(); }
template <class T> __span<T> __held(device_ptr<T> p) { return __span<T>(p, 0); }
template <class T> __span<T> __held(T* p) { return __span<T>(p, 0); }
template <class T> __span<T> __held(const T* p) { return __span<T>(p, 0); }
template <class T> __span<T> __held(counting_iterator<T> p) { return __span<T>(p, 0); }
#define __SPAN(name, first, n) decltype(__held(first)) name(first, n)
struct device_t { int n; device_t on(void* s) const { return *this; } }; struct host_t { int n; };
const device_t device = {0}; const host_t host = {0}; const device_t seq = {0};
using std::plus; using std::minus; using std::multiplies; using std::greater; using std::less;
template <class T> struct maximum { __host__ __device__ T operator()(const T& a, const T& b) const { return a < b ? b : a; } };
template <class T> struct minimum { __host__ __device__ T operator()(const T& a, const T& b) const { return b < a ? b : a; } };
template <class T> struct negate { __host__ __device__ T operator()(const T& a) const { return -a; } };
template <class T> struct square { __host__ __device__ T operator()(const T& a) const { return a * a; } };
template <class I, class O> O copy(I first, I last, O to) { long n = last - first; __SPAN(a, first, n); __SPAN(b, to, n); b._items = a._items; b.back(); return to + n; }
template <class I, class T> void fill(I first, I last, const T& v) { __SPAN(a, first, last - first); for (size_t i = 0; i < a._items.size(); ++i) a._items[i] = v; a.back(); }
template <class I> void sequence(I first, I last) { __SPAN(a, first, last - first); for (size_t i = 0; i < a._items.size(); ++i) a._items[i] = i; a.back(); }
template <class I, class T> void sequence(I first, I last, T v) { __SPAN(a, first, last - first); for (size_t i = 0; i < a._items.size(); ++i) a._items[i] = v + i; a.back(); }
template <class I, class F> void generate(I first, I last, F f) { __SPAN(a, first, last - first); for (size_t i = 0; i < a._items.size(); ++i) a._items[i] = f(); a.back(); }
template <class I> void sort(I first, I last) { __SPAN(a, first, last - first); std::sort(a._items.begin(), a._items.end()); a.back(); }
template <class I, class F> void sort(I first, I last, F f) { __SPAN(a, first, last - first); std::sort(a._items.begin(), a._items.end(), f); a.back(); }
template <class I> void stable_sort(I first, I last) { __SPAN(a, first, last - first); std::stable_sort(a._items.begin(), a._items.end()); a.back(); }
template <class I> void reverse(I first, I last) { __SPAN(a, first, last - first); std::reverse(a._items.begin(), a._items.end()); a.back(); }
template <class I, class J, class F> void stable_sort_by_key(I first, I last, J values, F less) { __SPAN(a, first, last - first); __SPAN(b, values, last - first);
    auto keys = a._items; auto kept = b._items; std::vector<long> order(keys.size()); std::iota(order.begin(), order.end(), 0L);
    std::stable_sort(order.begin(), order.end(), [&](long i, long j) { return less(keys[i], keys[j]); });
    for (size_t i = 0; i < order.size(); ++i) { a._items[i] = keys[order[i]]; b._items[i] = kept[order[i]]; } a.back(); b.back(); }
template <class I, class J> void stable_sort_by_key(I first, I last, J values) { thrust::stable_sort_by_key(first, last, values, thrust::less<>()); }
template <class I, class J> void sort_by_key(I first, I last, J values) { thrust::stable_sort_by_key(first, last, values, thrust::less<>()); }
template <class I, class J, class F> void sort_by_key(I first, I last, J values, F less) { thrust::stable_sort_by_key(first, last, values, less); }
template <class I, class F> void stable_sort(I first, I last, F less) { __SPAN(a, first, last - first); std::stable_sort(a._items.begin(), a._items.end(), less); a.back(); }
template <class I, class T> I lower_bound(I first, I last, const T& v) { __SPAN(a, first, last - first); return first + (std::lower_bound(a._items.begin(), a._items.end(), v) - a._items.begin()); }
template <class I, class T> I upper_bound(I first, I last, const T& v) { __SPAN(a, first, last - first); return first + (std::upper_bound(a._items.begin(), a._items.end(), v) - a._items.begin()); }
template <class I> auto reduce(I first, I last) { __SPAN(a, first, last - first); auto s = __kind(first); for (size_t i = 0; i < a._items.size(); ++i) s = s + a._items[i]; return s; }
template <class I, class T> T reduce(I first, I last, T s) { __SPAN(a, first, last - first); for (size_t i = 0; i < a._items.size(); ++i) s = s + a._items[i]; return s; }
template <class I, class T, class F> T reduce(I first, I last, T s, F f) { __SPAN(a, first, last - first); for (size_t i = 0; i < a._items.size(); ++i) s = f(s, a._items[i]); return s; }
template <class I, class F, class T, class G> T transform_reduce(I first, I last, F f, T s, G g) { __SPAN(a, first, last - first); for (size_t i = 0; i < a._items.size(); ++i) s = g(s, f(a._items[i])); return s; }
template <class I, class J, class T> T inner_product(I first, I last, J other, T s) { __SPAN(a, first, last - first); __SPAN(b, other, last - first); for (size_t i = 0; i < a._items.size(); ++i) s = s + a._items[i] * b._items[i]; return s; }
template <class I, class O, class F> O transform(I first, I last, O to, F f) { long n = last - first; __SPAN(a, first, n); __SPAN(c, to, n); for (long i = 0; i < n; ++i) c._items[i] = f(a._items[i]); c.back(); return to + n; }
template <class I, class J, class O, class F> O transform(I first, I last, J other, O to, F f) { long n = last - first; __SPAN(a, first, n); __SPAN(b, other, n); __SPAN(c, to, n); for (long i = 0; i < n; ++i) c._items[i] = f(a._items[i], b._items[i]); c.back(); return to + n; }
template <class I, class O> O inclusive_scan(I first, I last, O to) { long n = last - first; __SPAN(a, first, n); __SPAN(c, to, n); for (long i = 0; i < n; ++i) c._items[i] = i ? c._items[i - 1] + a._items[i] : a._items[i]; c.back(); return to + n; }
template <class I, class O> O exclusive_scan(I first, I last, O to) { long n = last - first; __SPAN(a, first, n); __SPAN(c, to, n); auto s = __kind(first); for (long i = 0; i < n; ++i) { auto v = a._items[i]; c._items[i] = s; s = s + v; } c.back(); return to + n; }
template <class I, class O, class T> O exclusive_scan(I first, I last, O to, T s) { long n = last - first; __SPAN(a, first, n); __SPAN(c, to, n); for (long i = 0; i < n; ++i) { auto v = a._items[i]; c._items[i] = s; s = s + v; } c.back(); return to + n; }
template <class I> I max_element(I first, I last) { __SPAN(a, first, last - first); return first + (std::max_element(a._items.begin(), a._items.end()) - a._items.begin()); }
template <class I, class F> I max_element(I first, I last, F less) { __SPAN(a, first, last - first); return first + (std::max_element(a._items.begin(), a._items.end(), less) - a._items.begin()); }
template <class I> I min_element(I first, I last) { __SPAN(a, first, last - first); return first + (std::min_element(a._items.begin(), a._items.end()) - a._items.begin()); }
template <class I, class F> I min_element(I first, I last, F less) { __SPAN(a, first, last - first); return first + (std::min_element(a._items.begin(), a._items.end(), less) - a._items.begin()); }
template <class I, class T> long count(I first, I last, const T& v) { __SPAN(a, first, last - first); return std::count(a._items.begin(), a._items.end(), v); }
template <class I, class F> long count_if(I first, I last, F f) { __SPAN(a, first, last - first); return std::count_if(a._items.begin(), a._items.end(), f); }
template <class I, class J> bool equal(I first, I last, J other) { __SPAN(a, first, last - first); __SPAN(b, other, last - first); return a._items == b._items; }
template <class I> bool is_sorted(I first, I last) { __SPAN(a, first, last - first); return std::is_sorted(a._items.begin(), a._items.end()); }
template <class I, class F> void for_each(I first, I last, F f) { __SPAN(a, first, last - first); a.each(f); }
template <class I, class O> O copy_n(I first, long n, O to) { return thrust::copy(first, first + n, to); }
template <class I> void sort(device_t e, I first, I last) { thrust::sort(first, last); }
template <class I, class O> O inclusive_scan(device_t e, I first, I last, O to) { return thrust::inclusive_scan(first, last, to); }
template <class I, class O> O exclusive_scan(device_t e, I first, I last, O to) { return thrust::exclusive_scan(first, last, to); }
template <class I> auto reduce(device_t e, I first, I last) { return thrust::reduce(first, last); }
template <class A, class B> using pair = std::pair<A, B>;
}
namespace thrust {
struct null_type {};
template <class A, class B, class C = null_type, class D = null_type> struct tuple {
    A _0; B _1; C _2; D _3;
    __host__ __device__ tuple() : _0(), _1(), _2(), _3() {}
    tuple(const device_reference<tuple<A, B, C, D>>& r) { *this = __load(r._p); }
    template <class E, class F, class G, class H> __host__ __device__ tuple(const tuple<E, F, G, H>& o) : _0(o._0), _1(o._1), _2(o._2), _3(o._3) {}
    __host__ __device__ tuple(const A& a, const B& b) : _0(a), _1(b), _2(), _3() {}
    __host__ __device__ tuple(const A& a, const B& b, const C& c) : _0(a), _1(b), _2(c), _3() {}
    __host__ __device__ tuple(const A& a, const B& b, const C& c, const D& d) : _0(a), _1(b), _2(c), _3(d) {}
};
template <int N, class T> struct tuple_element {};
template <class A, class B, class C, class D> struct tuple_element<0, tuple<A, B, C, D>> { typedef A type; __host__ __device__ static A& _of(tuple<A, B, C, D>& t) { return t._0; } __host__ __device__ static const A& _of_const(const tuple<A, B, C, D>& t) { return t._0; } };
template <class A, class B, class C, class D> struct tuple_element<1, tuple<A, B, C, D>> { typedef B type; __host__ __device__ static B& _of(tuple<A, B, C, D>& t) { return t._1; } __host__ __device__ static const B& _of_const(const tuple<A, B, C, D>& t) { return t._1; } };
template <class A, class B, class C, class D> struct tuple_element<2, tuple<A, B, C, D>> { typedef C type; __host__ __device__ static C& _of(tuple<A, B, C, D>& t) { return t._2; } __host__ __device__ static const C& _of_const(const tuple<A, B, C, D>& t) { return t._2; } };
template <class A, class B, class C, class D> struct tuple_element<3, tuple<A, B, C, D>> { typedef D type; __host__ __device__ static D& _of(tuple<A, B, C, D>& t) { return t._3; } __host__ __device__ static const D& _of_const(const tuple<A, B, C, D>& t) { return t._3; } };
template <int N, class A, class B, class C, class D> __host__ __device__ typename tuple_element<N, tuple<A, B, C, D>>::type& get(tuple<A, B, C, D>& t) { return tuple_element<N, tuple<A, B, C, D>>::_of(t); }
template <int N, class A, class B, class C, class D> __host__ __device__ const typename tuple_element<N, tuple<A, B, C, D>>::type& get(const tuple<A, B, C, D>& t) { return tuple_element<N, tuple<A, B, C, D>>::_of_const(t); }
template <class... A> __host__ __device__ tuple<A...> make_tuple(A... a) { return tuple<A...>(a...); }
null_type operator+(null_type a, long n) { return a; }
template <class T> struct zip_iterator {
    T _at;
    explicit zip_iterator(const T& at) : _at(at) {}
    zip_iterator operator+(long n) const { return zip_iterator(T(_at._0 + n, _at._1 + n, _at._2 + n, _at._3 + n)); }
    zip_iterator& operator++() { _at = (*this + 1)._at; return *this; }
    long operator-(const zip_iterator& o) const { return _at._0 - o._at._0; }
    bool operator==(const zip_iterator& o) const { return *this - o == 0; }
    bool operator!=(const zip_iterator& o) const { return *this - o != 0; }
};
template <class T> zip_iterator<T> make_zip_iterator(T at) { return zip_iterator<T>(at); }
template <class... A> auto make_zip_iterator(A... a) { return make_zip_iterator(thrust::make_tuple(a...)); }
struct __nothing { null_type _it; null_type& operator[](long i) { return _it; } };
struct __no_span { __nothing _items; __no_span(null_type first, long n) {} void back() {} };
null_type __kind(null_type p) { return p; }
__no_span __held(null_type p) { return __no_span(p, 0); }
template <class A, class B, class C, class D> auto __kind(zip_iterator<tuple<A, B, C, D>> z) { return thrust::make_tuple(__kind(z._at._0), __kind(z._at._1), __kind(z._at._2), __kind(z._at._3)); }
template <class T> struct __of { typedef T& type; };
template <> struct __of<null_type> { typedef null_type type; };
template <class A, class B, class C, class D> auto __parts(tuple<A, B, C, D>& t) { return tuple<typename __of<A>::type, typename __of<B>::type, typename __of<C>::type, typename __of<D>::type>(t._0, t._1, t._2, t._3); }
template <class T, class I> struct __zipped {
    std::vector<T> _items; I _at;
    __zipped(const I& first, long n) : _items(n), _at(first) {
        auto at = first._at;
        __SPAN(a, at._0, n); __SPAN(b, at._1, n); __SPAN(c, at._2, n); __SPAN(d, at._3, n);
        for (long i = 0; i < n; ++i) _items[i] = T(a._items[i], b._items[i], c._items[i], d._items[i]);
    }
    void back() {
        long n = _items.size(); auto at = _at._at;
        __SPAN(a, at._0, n); __SPAN(b, at._1, n); __SPAN(c, at._2, n); __SPAN(d, at._3, n);
        for (long i = 0; i < n; ++i) { a._items[i] = _items[i]._0; b._items[i] = _items[i]._1; c._items[i] = _items[i]._2; d._items[i] = _items[i]._3; }
        a.back(); b.back(); c.back(); d.back();
    }
    template <class F> void each(F f) { for (size_t i = 0; i < _items.size(); ++i) f(__parts(_items[i])); back(); }  // a copy of the tuple also writes
};
template <class T> auto __held(zip_iterator<T> z) { return __zipped<decltype(__kind(z)), zip_iterator<T>>(z, 0); }
}
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
    template <class I, class J, class F> void sort_by_key(P e, I first, I last, J values, F less) { thrust::sort_by_key(first, last, values, less); } \
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
