// std::unique_ptr.
namespace std {
template <class T> class unique_ptr {
    T* _p;
public:
    unique_ptr() : _p(nullptr) {}
    explicit unique_ptr(T* p) : _p(p) {}
    unique_ptr(unique_ptr&& o) : _p(o._p) { o._p = nullptr; }
    ~unique_ptr() { if (_p) delete _p; }
    unique_ptr& operator=(unique_ptr&& o) { std::swap(_p, o._p); return *this; }
    T* get() const { return _p; }
    T& operator*() const { return *_p; }
    T* operator->() const { return _p; }
    T& operator[](size_t i) const { return _p[i]; }
    operator bool() const { return _p != nullptr; }
    T* release() { T* p = _p; _p = nullptr; return p; }
    void reset(T* p = nullptr) { if (_p) delete _p; _p = p; }
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
template <class T> struct __array_maker { template <class A> static unique_ptr<T> make(const A& a) { return unique_ptr<T>(new T(a)); } };
template <class T> struct __array_maker<T[]> { static unique_ptr<T[]> make(size_t n) { return unique_ptr<T[]>(new T[n]()); } };
template <class T> class shared_ptr {
public:
    T* _p; long* _n;
    void _leave() { if (_n && --*_n == 0) { if (_p) delete _p; __vector_free(_n); } _p = nullptr; _n = nullptr; }
    void _join(T* p) { _p = p; _n = (long*)__vector_memory(8); __vector_size(_n, 8); *_n = 1; }
    shared_ptr() : _p(nullptr), _n(nullptr) {}
    explicit shared_ptr(T* p) { _join(p); }
    shared_ptr(const shared_ptr& o) : _p(o._p), _n(o._n) { if (_n) ++*_n; }
    ~shared_ptr() { _leave(); }
    shared_ptr& operator=(const shared_ptr& o) { if (o._n) ++*o._n; _leave(); _p = o._p; _n = o._n; return *this; }
    T* get() const { return _p; }
    T& operator*() const { return *_p; }
    T* operator->() const { return _p; }
    operator bool() const { return _p != nullptr; }
    long use_count() const { return _n ? *_n : 0; }
    void reset() { _leave(); }
};
template <class T> shared_ptr<T> make_shared() { return shared_ptr<T>(new T()); }
template <class T, class A> shared_ptr<T> make_shared(const A& a) { return shared_ptr<T>(new T(a)); }
template <class T, class A, class B> shared_ptr<T> make_shared(const A& a, const B& b) { return shared_ptr<T>(new T(a, b)); }
template <class T> unique_ptr<T> make_unique() { return unique_ptr<T>(new T()); }
template <class T, class A> unique_ptr<T> make_unique(const A& a) { return __array_maker<T>::make(a); }
template <class T, class A, class B> unique_ptr<T> make_unique(const A& a, const B& b) { return unique_ptr<T>(new T(a, b)); }
}
