// std::complex.
namespace std {
template <class T> struct complex {
    T _re, _im;
    typedef T value_type;
    complex(T re = T(), T im = T()) : _re(re), _im(im) {}
    T real() const { return _re; }
    T imag() const { return _im; }
    void real(T v) { _re = v; }
    void imag(T v) { _im = v; }
    complex operator-() const { return complex(-_re, -_im); }
    complex operator+(const complex& o) const { return complex(_re + o._re, _im + o._im); }
    complex operator-(const complex& o) const { return complex(_re - o._re, _im - o._im); }
    complex operator*(const complex& o) const { return complex(_re * o._re - _im * o._im, _re * o._im + _im * o._re); }
    complex operator/(const complex& o) const { T d = o._re * o._re + o._im * o._im; return complex((_re * o._re + _im * o._im) / d, (_im * o._re - _re * o._im) / d); }
    complex& operator+=(const complex& o) { _re += o._re; _im += o._im; return *this; }
    complex& operator-=(const complex& o) { _re -= o._re; _im -= o._im; return *this; }
    complex& operator*=(const complex& o) { *this = *this * o; return *this; }
    complex& operator/=(const complex& o) { *this = *this / o; return *this; }
    bool operator==(const complex& o) const { return _re == o._re && _im == o._im; }
    bool operator!=(const complex& o) const { return !(*this == o); }
};
template <class T> complex<T> operator*(T a, const complex<T>& b) { return complex<T>(a * b._re, a * b._im); }
template <class T> complex<T> operator+(T a, const complex<T>& b) { return complex<T>(a + b._re, b._im); }
template <class T> T real(const complex<T>& z) { return z._re; }
template <class T> T imag(const complex<T>& z) { return z._im; }
template <class T> T norm(const complex<T>& z) { return z._re * z._re + z._im * z._im; }
template <class T> T abs(const complex<T>& z) { return hypot(z._re, z._im); }
template <class T> T arg(const complex<T>& z) { return atan2(z._im, z._re); }
template <class T> complex<T> conj(const complex<T>& z) { return complex<T>(z._re, -z._im); }
template <class T> complex<T> polar(T r, T a = T()) { return complex<T>(r * cos(a), r * sin(a)); }
template <class T> complex<T> exp(const complex<T>& z) { T r = ::exp(z._re); return complex<T>(r * cos(z._im), r * sin(z._im)); }
template <class T> complex<T> sqrt(const complex<T>& z) { return std::polar((T)::sqrt(std::abs(z)), (T)(std::arg(z) / 2)); }
}
