// std::mt19937 and the distributions, with libstdc++'s sequences.
namespace std {
class seed_seq {
    unsigned int* _v; size_t _n;
public:
    typedef unsigned int result_type;
    seed_seq() : _v(nullptr), _n(0) {}
    seed_seq(initializer_list<unsigned int> l) : _v(new unsigned int[l.size()]), _n(0) { for (unsigned int* p = l.begin(); p != l.end(); ++p) _v[_n++] = *p; }
    template <class I> seed_seq(I first, I last) : _v(new unsigned int[last - first]), _n(0) { while (first != last) _v[_n++] = (unsigned int)*first++; }
    ~seed_seq() { delete[] _v; }
    size_t size() const { return _n; }
    template <class I> void generate(I first, I last) {
        size_t n = last - first, t = n >= 623 ? 11 : n >= 68 ? 7 : n >= 39 ? 5 : n >= 7 ? 3 : (n - 1) / 2, p = (n - t) / 2, q = p + t, m = _n + 1 > n ? _n + 1 : n;
        for (size_t i = 0; i < n; ++i) first[i] = 0x8b8b8b8bu;
        for (size_t k = 0; n && k < m; ++k) {
            unsigned int x = (unsigned int)first[k % n] ^ (unsigned int)first[(k + p) % n] ^ (unsigned int)first[(k + n - 1) % n];
            unsigned int r = 1664525u * (x ^ (x >> 27)), s = r + (unsigned int)(k == 0 ? _n : k <= _n ? k % n + _v[k - 1] : k % n);
            first[(k + p) % n] = (unsigned int)first[(k + p) % n] + r; first[(k + q) % n] = (unsigned int)first[(k + q) % n] + s; first[k % n] = s;
        }
        for (size_t k = m; n && k < m + n; ++k) {
            unsigned int x = (unsigned int)first[k % n] + (unsigned int)first[(k + p) % n] + (unsigned int)first[(k + n - 1) % n];
            unsigned int r = 1566083941u * (x ^ (x >> 27)), s = r - (unsigned int)(k % n);
            first[(k + p) % n] = (unsigned int)first[(k + p) % n] ^ r; first[(k + q) % n] = (unsigned int)first[(k + q) % n] ^ s; first[k % n] = s;
        }
    }
};
class mt19937 {
    unsigned int _s[624]; int _at;
public:
    typedef unsigned int result_type;
    static const unsigned int default_seed = 5489u;
    mt19937(unsigned int seed_ = 5489u) { seed(seed_); }
    mt19937(seed_seq& q) { seed(q); }
    void seed(seed_seq& q) {
        q.generate(_s, _s + 624);
        bool zero = (_s[0] & 0x80000000u) == 0;
        for (int i = 1; i < 624; ++i) zero = zero && _s[i] == 0;
        if (zero) _s[0] = 0x80000000u;
        _at = 624;
    }
    void seed(unsigned int x) { _s[0] = x; for (int i = 1; i < 624; ++i) _s[i] = 1812433253u * (_s[i - 1] ^ (_s[i - 1] >> 30)) + i; _at = 624; }
    static unsigned int min() { return 0; }
    static unsigned int max() { return 4294967295u; }
    unsigned int operator()() {
        if (_at == 624) {
            for (int i = 0; i < 624; ++i) { unsigned int y = (_s[i] & 0x80000000u) | (_s[(i + 1) % 624] & 0x7fffffffu); _s[i] = _s[(i + 397) % 624] ^ (y >> 1) ^ ((y & 1) ? 0x9908b0dfu : 0u); }
            _at = 0;
        }
        unsigned int y = _s[_at++];
        y ^= y >> 11; y ^= (y << 7) & 0x9d2c5680u; y ^= (y << 15) & 0xefc60000u; y ^= y >> 18;
        return y;
    }
    unsigned long __bits() { return (*this)(); }
};
class mt19937_64 {
    unsigned long _s[312]; int _at;
public:
    typedef unsigned long result_type;
    static unsigned long min() { return 0; }
    static unsigned long max() { return 18446744073709551615ul; }
    mt19937_64(unsigned long x = 5489ul) { seed(x); }
    mt19937_64(seed_seq& q) { seed(q); }
    void seed(seed_seq& q) {
        unsigned int a[624];
        q.generate(a, a + 624);
        bool zero = true;
        for (int i = 0; i < 312; ++i) { _s[i] = a[2 * i] + ((unsigned long)a[2 * i + 1] << 32); zero = zero && (i ? _s[i] : _s[i] >> 31) == 0; }
        if (zero) _s[0] = 0x8000000000000000ul;
        _at = 312;
    }
    void seed(unsigned long x) { _s[0] = x; for (int i = 1; i < 312; ++i) _s[i] = 6364136223846793005ul * (_s[i - 1] ^ (_s[i - 1] >> 62)) + i; _at = 312; }
    unsigned long operator()() {
        if (_at == 312) {
            for (int i = 0; i < 312; ++i) { unsigned long y = (_s[i] & 0xffffffff80000000ul) | (_s[(i + 1) % 312] & 0x7ffffffful); _s[i] = _s[(i + 156) % 312] ^ (y >> 1) ^ ((y & 1) ? 0xb5026f5aa96619e9ul : 0ul); }
            _at = 0;
        }
        unsigned long y = _s[_at++];
        y ^= (y >> 29) & 0x5555555555555555ul; y ^= (y << 17) & 0x71d67fffeda60000ul; y ^= (y << 37) & 0xfff7eee000000000ul; y ^= y >> 43;
        return y;
    }
};
class minstd_rand0 {
    unsigned int _x;
public:
    minstd_rand0(unsigned int x = 1) : _x(x % 2147483647u ? x % 2147483647u : 1) {}
    minstd_rand0(seed_seq& q) { seed(q); }
    void seed(unsigned int x) { _x = x % 2147483647u ? x % 2147483647u : 1; }
    void seed(seed_seq& q) { unsigned int a[4]; q.generate(a, a + 4); seed(a[3]); }
    unsigned int operator()() { _x = (unsigned int)((unsigned long)_x * 16807ul % 2147483647ul); return _x; }
    static unsigned int min() { return 1; }
    static unsigned int max() { return 2147483646u; }
};
typedef minstd_rand0 default_random_engine;
class random_device { public: int _n; random_device() : _n(0) {} unsigned int operator()() { return 2463534242u + 40503u * _n++; } double entropy() const { return 0; } };
double __span(mt19937& g) { return 4294967296.0; }
double __span(mt19937_64& g) { return 18446744073709551616.0; }
double __span(minstd_rand0& g) { return 2147483646.0; }
double __span(random_device& g) { return 4294967296.0; }
double __least(mt19937& g) { return 0; }
double __least(mt19937_64& g) { return 0; }
double __least(minstd_rand0& g) { return 1; }
double __least(random_device& g) { return 0; }
template <class G> double __canonical(G& g, double unused) {
    double r = __span(g);
    if (r > 1e19) { double d = (double)g() / r; return d < 1.0 ? d : 0.99999999999999989; }
    double a = (double)g() - __least(g); double b = (double)g() - __least(g);
    double d = (a + b * r) / (r * r);
    return d < 1.0 ? d : 0.99999999999999989;
}
template <class G> float __canonical(G& g, float unused) {
    float r = (float)__span(g);
    float f = (float)((float)(g() - (unsigned int)__least(g)) / r);
    return f < 1.0f ? f : 0.99999994f;
}
template <class T = double> class uniform_real_distribution {
    T _a, _b;
public:
    uniform_real_distribution(T a = 0, T b = 1) : _a(a), _b(b) {}
    template <class G> T operator()(G& g) { T u = __canonical(g, (T)0); return u * (_b - _a) + _a; }
    T min() const { return _a; }
    T max() const { return _b; }
    void reset() {}
};
unsigned long __most(mt19937& g) { return 4294967295ul; }
unsigned long __most(mt19937_64& g) { return 18446744073709551615ul; }
unsigned long __most(minstd_rand0& g) { return 2147483645ul; }
unsigned long __most(random_device& g) { return 4294967295ul; }
unsigned long __upper(unsigned long a, unsigned long b) {
    unsigned long al = a & 0xfffffffful, ah = a >> 32, bl = b & 0xfffffffful, bh = b >> 32;
    unsigned long middle = ah * bl + (al * bl >> 32), other = al * bh + (middle & 0xfffffffful);
    return ah * bh + (middle >> 32) + (other >> 32);
}
template <class G> unsigned long __below(G& g, unsigned long range) {
    unsigned long most = __most(g), least = (unsigned long)__least(g);
    if (most > range) {
        unsigned long n = range + 1;
        if (most == 4294967295ul) {
            unsigned int r = (unsigned int)n;
            unsigned long product = (unsigned long)g() * r;
            unsigned int low = (unsigned int)product;
            if (low < r) { unsigned int limit = -r % r; while (low < limit) { product = (unsigned long)g() * r; low = (unsigned int)product; } }
            return product >> 32;
        }
        if (most == 18446744073709551615ul) {
            unsigned long x = g(), low = x * n;
            if (low < n) { unsigned long limit = (0ul - n) % n; while (low < limit) { x = g(); low = x * n; } }
            return __upper(x, n);
        }
        unsigned long scaling = most / n, past = n * scaling, x;
        do x = (unsigned long)g() - least; while (x >= past);
        return x / scaling;
    }
    if (most == range) return (unsigned long)g() - least;
    unsigned long part, x;
    do { part = (most + 1) * __below(g, range / (most + 1)); x = part + ((unsigned long)g() - least); } while (x > range || x < part);
    return x;
}
template <class T = int> class uniform_int_distribution {
    T _a, _b;
public:
    uniform_int_distribution(T a = 0, T b = numeric_limits<T>::max()) : _a(a), _b(b) {}
    template <class G> T operator()(G& g) { return (T)((unsigned long)_a + __below(g, (unsigned long)_b - (unsigned long)_a)); }
    T min() const { return _a; }
    T max() const { return _b; }
};
template <class T = double> class normal_distribution {
    T _mean, _dev, _saved; bool _has;
public:
    normal_distribution(T mean = 0, T dev = 1) : _mean(mean), _dev(dev), _saved(0), _has(false) {}
    template <class G> T operator()(G& g) {
        if (_has) { _has = false; return _saved * _dev + _mean; }
        T x, y, r;
        do { x = (T)2 * __canonical(g, (T)0) - (T)1; y = (T)2 * __canonical(g, (T)0) - (T)1; r = x * x + y * y; } while (r > (T)1 || r == (T)0);
        T m = sqrt((T)-2 * log(r) / r);
        _saved = x * m; _has = true;
        return y * m * _dev + _mean;
    }
};
}
