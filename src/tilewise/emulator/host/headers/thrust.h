// Thrust on memory of the card, done by the host: what it gives is the same, how long it takes is not told.
void __thrust_copy(void* to, const void* from, size_t size);
void* __thrust_memory(size_t size);
void __thrust_free(void* p);
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
    device_vector(const T* first, const T* last) { _take(last - first); if (_size) __thrust_copy(_data, first, _size * sizeof(T)); }
    device_vector(device_ptr<T> first, device_ptr<T> last) { _take(last.get() - first.get()); if (_size) __thrust_copy(_data, first.get(), _size * sizeof(T)); }
    device_vector(T* first, T* last) { _take(last - first); if (_size) __thrust_copy(_data, first, _size * sizeof(T)); }
    device_vector(counting_iterator<T> first, counting_iterator<T> last) { std::vector<T> v(last - first); for (size_t i = 0; i < v.size(); ++i) v[i] = first[i]; _take(v.size()); if (_size) __thrust_copy(_data, v.data(), _size * sizeof(T)); }
    device_ptr<T> cbegin() const { return device_ptr<T>(_data); }
    device_ptr<T> cend() const { return device_ptr<T>(_data + _size); }
    ~device_vector() { if (_data) __thrust_free(_data); }
    device_vector& operator=(const device_vector& o) { if (this != &o) { if (_data) __thrust_free(_data); _take(o._size); if (_size) __thrust_copy(_data, o._data, _size * sizeof(T)); } return *this; }
    device_vector& operator=(const host_vector<T>& o) { if (_data) __thrust_free(_data); _take(o.size()); if (_size) __thrust_copy(_data, o.data(), _size * sizeof(T)); return *this; }
    device_vector& operator=(const std::vector<T>& o) { if (_data) __thrust_free(_data); _take(o.size()); if (_size) __thrust_copy(_data, o.data(), _size * sizeof(T)); return *this; }
    void _copy_to(T* to, size_t n) const { if (n) __thrust_copy(to, _data, n * sizeof(T)); }
    size_t size() const { return _size; }
    bool empty() const { return _size == 0; }
    void resize(size_t n) { T zero = T(); resize(n, zero); }
    void resize(size_t n, const T& v) { T* old = _data; size_t had = _size; _take(n); _fill(had < n ? had : n, v); if (old) { __thrust_copy(_data, old, (had < n ? had : n) * sizeof(T)); __thrust_free(old); } }
    void clear() { if (_data) __thrust_free(_data); _data = nullptr; _size = 0; }
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
template <class T> struct plus { __host__ __device__ T operator()(const T& a, const T& b) const { return a + b; } };
template <class T> struct minus { __host__ __device__ T operator()(const T& a, const T& b) const { return a - b; } };
template <class T> struct multiplies { __host__ __device__ T operator()(const T& a, const T& b) const { return a * b; } };
template <class T> struct maximum { __host__ __device__ T operator()(const T& a, const T& b) const { return a < b ? b : a; } };
template <class T> struct minimum { __host__ __device__ T operator()(const T& a, const T& b) const { return b < a ? b : a; } };
template <class T> struct greater { __host__ __device__ bool operator()(const T& a, const T& b) const { return b < a; } };
template <class T> struct less { __host__ __device__ bool operator()(const T& a, const T& b) const { return a < b; } };
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
template <class I, class J> void sort_by_key(I first, I last, J values) { __SPAN(a, first, last - first); __SPAN(b, values, last - first); long n = last - first;
    for (long i = 1; i < n; ++i) for (long j = i; j > 0 && a._items[j] < a._items[j - 1]; --j) { std::swap(a._items[j], a._items[j - 1]); std::swap(b._items[j], b._items[j - 1]); } a.back(); b.back(); }
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
