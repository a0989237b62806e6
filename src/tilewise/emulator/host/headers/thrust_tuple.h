// thrust::tuple of two to four, and iterators over several vectors at once.
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
template <class A, class B> __host__ __device__ tuple<A, B> make_tuple(A a, B b) { return tuple<A, B>(a, b); }
template <class A, class B, class C> __host__ __device__ tuple<A, B, C> make_tuple(A a, B b, C c) { return tuple<A, B, C>(a, b, c); }
template <class A, class B, class C, class D> __host__ __device__ tuple<A, B, C, D> make_tuple(A a, B b, C c, D d) { return tuple<A, B, C, D>(a, b, c, d); }
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
template <class A, class B> auto make_zip_iterator(A a, B b) { return make_zip_iterator(thrust::make_tuple(a, b)); }
template <class A, class B, class C> auto make_zip_iterator(A a, B b, C c) { return make_zip_iterator(thrust::make_tuple(a, b, c)); }
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
    template <class F> void each(F f) { for (size_t i = 0; i < _items.size(); ++i) f(__parts(_items[i])); back(); }  // a copy of the tuple still writes
};
template <class T> auto __held(zip_iterator<T> z) { return __zipped<decltype(__kind(z)), zip_iterator<T>>(z, 0); }
}
