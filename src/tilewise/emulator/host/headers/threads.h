// std::thread: threads run sequentially, when they are created; mutexes, futures, atomics.
namespace std {
struct mutex { void lock() {} void unlock() {} bool try_lock() { return true; } };
template <class M> struct lock_guard { lock_guard(M& m) {} };
template <class M> struct unique_lock { unique_lock(M& m) {} void lock() {} void unlock() {} };
struct condition_variable { void notify_one() {} void notify_all() {} template <class L> void wait(L& l) {} template <class L, class F> void wait(L& l, F f) {} };
template <class M> struct scoped_lock { scoped_lock(M& m) {} };
template <class T> struct atomic {
    T _value;
    atomic() : _value() {}
    atomic(T v) : _value(v) {}
    T load() const { return _value; }
    void store(T v) { _value = v; }
    T exchange(T v) { T o = _value; _value = v; return o; }
    T fetch_add(T v) { T o = _value; _value += v; return o; }
    T fetch_sub(T v) { T o = _value; _value -= v; return o; }
    operator T() const { return _value; }
    T operator=(T v) { _value = v; return v; }
    T operator++() { return ++_value; }
    T operator++(int) { return _value++; }
    T operator--() { return --_value; }
    T operator--(int) { return _value--; }
    T operator+=(T v) { return _value += v; }
    T operator-=(T v) { return _value -= v; }
};
typedef atomic<int> atomic_int; typedef atomic<bool> atomic_bool;
struct thread {
    bool _made;
    thread() : _made(false) {}
    template <class F, class... A> explicit thread(F f, A... a) : _made(true) { f(a...); }
    void join() { _made = false; }
    void detach() { _made = false; }
    bool joinable() const { return _made; }
    static unsigned int hardware_concurrency() { return 8; }
};
namespace this_thread { template <class D> void sleep_for(const D& d) {} void yield() {} }
}
