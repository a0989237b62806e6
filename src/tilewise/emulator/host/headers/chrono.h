// std::chrono on the program's own clock, in nanoseconds.
namespace std {
template <long N, long D = 1> struct ratio { static const long num = N; static const long den = D; };
typedef ratio<1, 1000> milli; typedef ratio<1, 1000000> micro; typedef ratio<1, 1000000000> nano;
namespace chrono {
template <class T, class R = std::ratio<1, 1> > struct duration {
    T _n;
    duration() : _n(0) {}
    duration(T n) : _n(n) {}
    template <class U, class S> duration(const duration<U, S>& o) { _n = (T)((double)o._n * ((double)S::num / (double)S::den) / ((double)R::num / (double)R::den)); }
    T count() const { return _n; }
    duration operator+(const duration& o) const { return duration(_n + o._n); }
    duration operator-(const duration& o) const { return duration(_n - o._n); }
    duration& operator+=(const duration& o) { _n += o._n; return *this; }
};
typedef duration<long, std::ratio<1, 1000000000> > nanoseconds;
typedef duration<long, std::ratio<1, 1000000> > microseconds;
typedef duration<long, std::ratio<1, 1000> > milliseconds;
typedef duration<long, std::ratio<1, 1> > seconds;
template <class To, class T, class R> To duration_cast(const duration<T, R>& d) { To t(d); return t; }
struct __time_point {
    long _n;
    __time_point() : _n(0) {}
    __time_point(long n) : _n(n) {}
    nanoseconds operator-(const __time_point& o) const { return nanoseconds(_n - o._n); }
    nanoseconds time_since_epoch() const { return nanoseconds(_n); }
    bool operator<(const __time_point& o) const { return _n < o._n; }
};
template <class C, class D = nanoseconds> using time_point = __time_point;
struct high_resolution_clock { typedef std::chrono::__time_point time_point; typedef nanoseconds duration; static std::chrono::__time_point now() { return std::chrono::__time_point(__now_ns()); } };
struct steady_clock { typedef std::chrono::__time_point time_point; typedef nanoseconds duration; static std::chrono::__time_point now() { return std::chrono::__time_point(__now_ns()); } };
struct system_clock { typedef std::chrono::__time_point time_point; typedef nanoseconds duration; static std::chrono::__time_point now() { return std::chrono::__time_point(__now_ns()); }
    static time_t to_time_t(const std::chrono::__time_point& t) { return t._n / 1000000000L; } };
}
}
