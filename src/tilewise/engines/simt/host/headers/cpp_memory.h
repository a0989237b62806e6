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
template <class T> unique_ptr<T> make_unique() { return unique_ptr<T>(new T()); }
template <class T, class A> unique_ptr<T> make_unique(const A& a) { return unique_ptr<T>(new T(a)); }
template <class T, class A, class B> unique_ptr<T> make_unique(const A& a, const B& b) { return unique_ptr<T>(new T(a, b)); }
}
