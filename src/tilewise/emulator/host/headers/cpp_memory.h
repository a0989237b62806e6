// std::unique_ptr and std::shared_ptr.
namespace std {
template <class T> struct __deleter { void operator()(T* p) const { delete p; } };
template <class T, class D = __deleter<T>> class unique_ptr {
    T* _p; D _d;
public:
    unique_ptr() : _p(nullptr), _d() {}
    explicit unique_ptr(T* p) : _p(p), _d() {}
    unique_ptr(T* p, const D& d) : _p(p), _d(d) {}
    unique_ptr(nullptr_t) : _p(nullptr), _d() {}
    unique_ptr(unique_ptr&& o) : _p(o._p), _d(o._d) { o._p = nullptr; }
    template <class U> unique_ptr(unique_ptr<U>&& o) : _p(o.release()), _d() {}
    ~unique_ptr() { if (_p) _d(_p); }
    unique_ptr& operator=(unique_ptr&& o) { std::swap(_p, o._p); std::swap(_d, o._d); return *this; }
    template <class U> unique_ptr& operator=(unique_ptr<U>&& o) { reset(o.release()); return *this; }
    T* get() const { return _p; }
    T& operator*() const { return *_p; }
    T* operator->() const { return _p; }
    T& operator[](size_t i) const { return _p[i]; }
    operator bool() const { return _p != nullptr; }
    T* release() { T* p = _p; _p = nullptr; return p; }
    void reset(T* p = nullptr) { if (_p) _d(_p); _p = p; }
};
template <class T> class unique_ptr<T[]> {
    T* _p;
public:
    unique_ptr() : _p(nullptr) {}
    explicit unique_ptr(T* p) : _p(p) {}
    unique_ptr(unique_ptr&& o) : _p(o._p) { o._p = nullptr; }
    ~unique_ptr() { if (_p) delete[] _p; }
    unique_ptr& operator=(unique_ptr&& o) { std::swap(_p, o._p); return *this; }
    T* get() const { return _p; }
    T& operator[](size_t i) const { return _p[i]; }
    operator bool() const { return _p != nullptr; }
    T* release() { T* p = _p; _p = nullptr; return p; }
    void reset(T* p = nullptr) { if (_p) delete[] _p; _p = p; }
};
template <class T, class D> class unique_ptr<T[], D> {
    T* _p; D _d;
public:
    unique_ptr() : _p(nullptr), _d() {}
    explicit unique_ptr(T* p) : _p(p), _d() {}
    unique_ptr(T* p, const D& d) : _p(p), _d(d) {}
    unique_ptr(unique_ptr&& o) : _p(o._p), _d(o._d) { o._p = nullptr; }
    ~unique_ptr() { if (_p) _d(_p); }
    unique_ptr& operator=(unique_ptr&& o) { std::swap(_p, o._p); std::swap(_d, o._d); return *this; }
    T* get() const { return _p; }
    T& operator[](size_t i) const { return _p[i]; }
    operator bool() const { return _p != nullptr; }
    T* release() { T* p = _p; _p = nullptr; return p; }
    void reset(T* p = nullptr) { if (_p) _d(_p); _p = p; }
};
template <class T> struct __array_maker { template <class A> static unique_ptr<T> make(A&& a) { return unique_ptr<T>(new T(std::forward<A>(a))); } };
template <class T> struct __array_maker<T[]> { static unique_ptr<T[]> make(size_t n) { return unique_ptr<T[]>(new T[n]()); } };
struct __owner { long n; __owner() : n(1) {} virtual void drop() = 0; virtual ~__owner() {} };
template <class U> struct __owner_of : public __owner { U* p; __owner_of(U* q) : p(q) {} void drop() override { if (p) delete p; } };
template <class U, class D> struct __owner_by : public __owner { U* p; D d; __owner_by(U* q, const D& f) : p(q), d(f) {} void drop() override { d(p); } };
template <class T> class shared_ptr {
public:
    T* _p; __owner* _n;
    void _leave() { if (_n && --_n->n == 0) { _n->drop(); delete _n; } _p = nullptr; _n = nullptr; }
    shared_ptr() : _p(nullptr), _n(nullptr) {}
    shared_ptr(nullptr_t) : _p(nullptr), _n(nullptr) {}
    template <class U> explicit shared_ptr(U* p) : _p(p), _n(new __owner_of<U>(p)) {}
    template <class U, class D> shared_ptr(U* p, D d) : _p(p), _n(new __owner_by<U, D>(p, d)) {}
    template <class D> shared_ptr(nullptr_t, D d) : _p(nullptr), _n(new __owner_by<T, D>((T*)nullptr, d)) {}
    shared_ptr(const shared_ptr& o) : _p(o._p), _n(o._n) { if (_n) ++_n->n; }
    template <class U> shared_ptr(const shared_ptr<U>& o) : _p(o._p), _n(o._n) { if (_n) ++_n->n; }
    ~shared_ptr() { _leave(); }
    shared_ptr& operator=(const shared_ptr& o) { if (o._n) ++o._n->n; _leave(); _p = o._p; _n = o._n; return *this; }
    T* get() const { return _p; }
    T& operator*() const { return *_p; }
    T* operator->() const { return _p; }
    T& operator[](size_t i) const { return _p[i]; }
    operator bool() const { return _p != nullptr; }
    long use_count() const { return _n ? _n->n : 0; }
    void reset() { _leave(); }
    template <class U> void reset(U* p) { _leave(); _p = p; _n = new __owner_of<U>(p); }
};
template <class T> class shared_ptr<T[]> {
public:
    T* _p; long* _n;
    void _leave() { if (_n && --*_n == 0) { delete[] _p; delete _n; } _p = nullptr; _n = nullptr; }
    shared_ptr() : _p(nullptr), _n(nullptr) {}
    explicit shared_ptr(T* p) : _p(p), _n(new long(1)) {}
    shared_ptr(const shared_ptr& o) : _p(o._p), _n(o._n) { if (_n) ++*_n; }
    ~shared_ptr() { _leave(); }
    shared_ptr& operator=(const shared_ptr& o) { if (o._n) ++*o._n; _leave(); _p = o._p; _n = o._n; return *this; }
    T* get() const { return _p; }
    T& operator[](size_t i) const { return _p[i]; }
    operator bool() const { return _p != nullptr; }
    long use_count() const { return _n ? *_n : 0; }
    void reset() { _leave(); }
};
template <class T, class... A> shared_ptr<T> make_shared(A&&... a) { return shared_ptr<T>(new T(std::forward<A>(a)...)); }
template <class T, class A> unique_ptr<T> make_unique(A&& a) { return __array_maker<T>::make(std::forward<A>(a)); }
template <class T, class... A> unique_ptr<T> make_unique(A&&... a) { return unique_ptr<T>(new T(std::forward<A>(a)...)); }
template <class T, class D> bool operator==(const unique_ptr<T, D>& a, nullptr_t) { return a.get() == nullptr; }
template <class T, class D> bool operator!=(const unique_ptr<T, D>& a, nullptr_t) { return a.get() != nullptr; }
template <class T> bool operator==(const shared_ptr<T>& a, nullptr_t) { return a.get() == nullptr; }
template <class T> bool operator!=(const shared_ptr<T>& a, nullptr_t) { return a.get() != nullptr; }
template <class T> bool operator==(const shared_ptr<T>& a, const shared_ptr<T>& b) { return a.get() == b.get(); }
template <class U, class T> shared_ptr<U> static_pointer_cast(const shared_ptr<T>& o) { shared_ptr<U> p; p._p = (U*)o._p; p._n = o._n; if (p._n) ++p._n->n; return p; }
}
