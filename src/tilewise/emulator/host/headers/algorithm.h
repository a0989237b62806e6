// Parts of <algorithm>, <numeric>, <utility>, <functional> and <limits>.
namespace std {
template <class T> struct remove_reference { typedef T type; };
template <class T> T&& move(T& x) { return static_cast<T&&>(x); }
template <class T> T&& forward(T& x) { return static_cast<T&&>(x); }
template <class T, unsigned long N> T* begin(T (&a)[N]) { return a; }
template <class T, unsigned long N> T* end(T (&a)[N]) { return a + N; }
template <class T, unsigned long N> unsigned long size(const T (&a)[N]) { return N; }
template <class C> auto begin(C& c) { return c.begin(); }
template <class C> auto end(C& c) { return c.end(); }
template <class C> unsigned long size(const C& c) { return c.size(); }
template <class T, class U = T> T exchange(T& a, U&& b) { T t = std::move(a); a = std::forward<U>(b); return t; }
template <class T> void swap(T& a, T& b) { T t = std::move(a); a = std::move(b); b = std::move(t); }
template <class T> const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T> const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T, class F> const T& min(const T& a, const T& b, F less) { return less(b, a) ? b : a; }
template <class T, class F> const T& max(const T& a, const T& b, F less) { return less(a, b) ? b : a; }
template <class T> const T& clamp(const T& x, const T& low, const T& high) { return x < low ? low : high < x ? high : x; }
template <class I> struct reverse_iterator;
template <class T> struct reverse_iterator<T*> {
    typedef T value_type;
    T* _at;
    reverse_iterator() {}
    explicit reverse_iterator(T* at) : _at(at) {}
    T* base() const { return _at; }
    T& operator*() const { return *(_at - 1); }
    T* operator->() const { return _at - 1; }
    T& operator[](long n) const { return *(_at - 1 - n); }
    reverse_iterator& operator++() { --_at; return *this; }
    reverse_iterator operator++(int) { reverse_iterator old = *this; --_at; return old; }
    reverse_iterator& operator--() { ++_at; return *this; }
    reverse_iterator operator--(int) { reverse_iterator old = *this; ++_at; return old; }
    reverse_iterator& operator+=(long n) { _at -= n; return *this; }
    reverse_iterator& operator-=(long n) { _at += n; return *this; }
    reverse_iterator operator+(long n) const { return reverse_iterator(_at - n); }
    reverse_iterator operator-(long n) const { return reverse_iterator(_at + n); }
    long operator-(const reverse_iterator& o) const { return o._at - _at; }
    bool operator==(const reverse_iterator& o) const { return _at == o._at; }
    bool operator!=(const reverse_iterator& o) const { return _at != o._at; }
    bool operator<(const reverse_iterator& o) const { return o._at < _at; }
};
template <class I> reverse_iterator<I> make_reverse_iterator(I at) { return reverse_iterator<I>(at); }
#define __REVERSED(T) auto rbegin() { return std::reverse_iterator<T*>(end()); } auto rend() { return std::reverse_iterator<T*>(begin()); } \
    auto rbegin() const { return std::reverse_iterator<const T*>(end()); } auto rend() const { return std::reverse_iterator<const T*>(begin()); } \
    auto crbegin() const { return rbegin(); } auto crend() const { return rend(); }
template <class T> struct initializer_list {
    T* first; size_t count;
    T* begin() const { return first; }
    T* end() const { return first + count; }
    size_t size() const { return count; }
};
template <class T> T min(initializer_list<T> l) { T m = *l.begin(); for (T* p = l.begin(); p != l.end(); ++p) if (*p < m) m = *p; return m; }
template <class T> T max(initializer_list<T> l) { T m = *l.begin(); for (T* p = l.begin(); p != l.end(); ++p) if (m < *p) m = *p; return m; }
template <class A, class B> struct pair {
    typedef A first_type; typedef B second_type;
    A first; B second;
    pair() : first(), second() {}
    pair(const A& a, const B& b) : first(a), second(b) {}
    template <class C, class D> pair(const pair<C, D>& o) : first(o.first), second(o.second) {}
    bool operator==(const pair& o) const { return first == o.first && second == o.second; }
    bool operator!=(const pair& o) const { return !(*this == o); }
    bool operator<(const pair& o) const { return first < o.first || (!(o.first < first) && second < o.second); }
};
template <class A, class B> pair<A, B> make_pair(A a, B b) { return pair<A, B>(a, b); }
int remove(const char* name);
template <class I, class T> I remove(I first, I last, const T& value) { I to = first; for (; first != last; ++first) if (!(*first == value)) { *to = *first; ++to; } return to; }
template <class I, class T> void fill(I first, I last, const T& value) { for (; first != last; ++first) *first = value; }
template <class I, class T> I fill_n(I first, size_t n, const T& value) { for (; n > 0; --n, ++first) *first = value; return first; }
template <class I, class F> void generate(I first, I last, F f) { for (; first != last; ++first) *first = f(); }
template <class I, class F> I generate_n(I first, size_t n, F f) { for (; n > 0; --n, ++first) *first = f(); return first; }
template <class I, class F> F for_each(I first, I last, F f) { for (; first != last; ++first) f(*first); return f; }
template <class I, class O> O copy(I first, I last, O to) { for (; first != last; ++first, ++to) *to = *first; return to; }
template <class I, class O> O copy_n(I first, size_t n, O to) { for (; n > 0; --n, ++first, ++to) *to = *first; return to; }
template <class I, class O, class F> O transform(I first, I last, O to, F f) { for (; first != last; ++first, ++to) *to = f(*first); return to; }
template <class I, class J, class O, class F> O transform(I first, I last, J other, O to, F f) { for (; first != last; ++first, ++other, ++to) *to = f(*first, *other); return to; }
template <class I, class T> T accumulate(I first, I last, T sum) { for (; first != last; ++first) sum = sum + *first; return sum; }
template <class I, class T, class F> T accumulate(I first, I last, T sum, F f) { for (; first != last; ++first) sum = f(sum, *first); return sum; }
template <class I, class T> T reduce(I first, I last, T sum) { for (; first != last; ++first) sum = sum + *first; return sum; }
template <class I> auto reduce(I first, I last) { auto sum = *first; sum = 0; return std::reduce(first, last, sum); }
template <class I, class J, class T> T inner_product(I first, I last, J other, T sum) { for (; first != last; ++first, ++other) sum = sum + *first * *other; return sum; }
template <class I, class T> void iota(I first, I last, T value) { for (; first != last; ++first, ++value) *first = value; }
template <class I, class O> O partial_sum(I first, I last, O to) { if (first == last) return to; auto sum = *first; *to = sum; while (++first != last) { sum = sum + *first; *++to = sum; } return ++to; }
template <class I, class J> bool equal(I first, I last, J other) { for (; first != last; ++first, ++other) if (!(*first == *other)) return false; return true; }
template <class I, class J, class F> bool equal(I first, I last, J other, F f) { for (; first != last; ++first, ++other) if (!f(*first, *other)) return false; return true; }
template <class I, class T> I find(I first, I last, const T& value) { for (; first != last; ++first) if (*first == value) return first; return last; }
template <class I, class F> I find_if(I first, I last, F f) { for (; first != last; ++first) if (f(*first)) return first; return last; }
template <class I, class T> long count(I first, I last, const T& value) { long n = 0; for (; first != last; ++first) if (*first == value) ++n; return n; }
template <class I, class F> long count_if(I first, I last, F f) { long n = 0; for (; first != last; ++first) if (f(*first)) ++n; return n; }
template <class I, class F> bool all_of(I first, I last, F f) { for (; first != last; ++first) if (!f(*first)) return false; return true; }
template <class I, class F> bool any_of(I first, I last, F f) { for (; first != last; ++first) if (f(*first)) return true; return false; }
template <class I, class F> bool none_of(I first, I last, F f) { return !any_of(first, last, f); }
template <class I> I max_element(I first, I last) { I best = first; for (; first != last; ++first) if (*best < *first) best = first; return best; }
template <class I> I min_element(I first, I last) { I best = first; for (; first != last; ++first) if (*first < *best) best = first; return best; }
template <class I, class F> I max_element(I first, I last, F less) { I best = first; for (; first != last; ++first) if (less(*best, *first)) best = first; return best; }
template <class I, class F> I min_element(I first, I last, F less) { I best = first; for (; first != last; ++first) if (less(*first, *best)) best = first; return best; }
template <class I> void reverse(I first, I last) { while (first != last) { --last; if (first == last) return; std::swap(*first, *last); ++first; } }
#define __FUNCTION_OBJECT(name, R, expression) template <class T = void> struct name { __host__ __device__ R operator()(const T& a, const T& b) const { return expression; } }; \
    template <> struct name<void> { template <class A, class B> __host__ __device__ auto operator()(const A& a, const B& b) const { return expression; } };
__FUNCTION_OBJECT(plus, T, a + b) __FUNCTION_OBJECT(minus, T, a - b) __FUNCTION_OBJECT(multiplies, T, a * b) __FUNCTION_OBJECT(greater, bool, b < a)
__FUNCTION_OBJECT(less, bool, a < b) __FUNCTION_OBJECT(logical_and, bool, a && b) __FUNCTION_OBJECT(logical_or, bool, a || b)
__FUNCTION_OBJECT(bit_xor, T, a ^ b) __FUNCTION_OBJECT(bit_and, T, a & b) __FUNCTION_OBJECT(bit_or, T, a | b) __FUNCTION_OBJECT(divides, T, a / b)
__FUNCTION_OBJECT(modulus, T, a % b) __FUNCTION_OBJECT(equal_to, bool, a == b) __FUNCTION_OBJECT(greater_equal, bool, a >= b)
__FUNCTION_OBJECT(less_equal, bool, a <= b)
template <class I> I rotate(I first, I middle, I last) { std::reverse(first, middle); std::reverse(middle, last); std::reverse(first, last); return first + (last - middle); }
template <class I, class F> void __sift(I a, long at, long n, F& less) {
    while (true) {
        long child = 2 * at + 1;
        if (child >= n) return;
        if (child + 1 < n && less(a[child], a[child + 1])) ++child;
        if (!less(a[at], a[child])) return;
        std::swap(a[at], a[child]);
        at = child;
    }
}
template <class I, class F> void sort(I first, I last, F less) {
    long n = last - first;
    for (long i = n / 2 - 1; i >= 0; --i) __sift(first, i, n, less);
    for (long i = n - 1; i > 0; --i) { std::swap(first[0], first[i]); __sift(first, 0L, i, less); }
}
template <class I> void sort(I first, I last) { std::sort(first, last, less<>()); }
template <class I, class T, class F> I lower_bound(I first, I last, const T& v, F less) {
    long n = last - first;
    while (n > 0) { long half = n / 2; if (less(first[half], v)) { first += half + 1; n -= half + 1; } else n = half; }
    return first;
}
template <class I, class T, class F> I upper_bound(I first, I last, const T& v, F less) {
    long n = last - first;
    while (n > 0) { long half = n / 2; if (!less(v, first[half])) { first += half + 1; n -= half + 1; } else n = half; }
    return first;
}
template <class I, class T> I lower_bound(I first, I last, const T& v) { return std::lower_bound(first, last, v, less<>()); }
template <class I, class T> I upper_bound(I first, I last, const T& v) { return std::upper_bound(first, last, v, less<>()); }
// merges two sorted halves in place: the middle parts change places, and each side is merged again
template <class I, class F> void __merge(I first, I middle, I last, F& less) {
    long left = middle - first, right = last - middle;
    if (left == 0 || right == 0 || !less(*middle, *(middle - 1))) return;
    if (left + right == 2) { std::swap(*first, *middle); return; }
    I from = first + left / 2, to = middle + right / 2;
    if (left > right) to = std::lower_bound(middle, last, *from, less);
    else from = std::upper_bound(first, middle, *to, less);
    I met = from + (to - middle);
    std::rotate(from, middle, to);
    __merge(first, from, met, less);
    __merge(met, to, last, less);
}
template <class I, class F> void stable_sort(I first, I last, F less) {
    long n = last - first, run = 16;
    for (long start = 0; start < n; start += run)
        for (long i = start + 1; i < n && i < start + run; ++i)
            for (long j = i; j > start && less(first[j], first[j - 1]); --j) std::swap(first[j], first[j - 1]);
    for (; run < n; run *= 2)
        for (long start = 0; start + run < n; start += 2 * run) __merge(first + start, first + start + run, first + (start + 2 * run < n ? start + 2 * run : n), less);
}
template <class I> void stable_sort(I first, I last) { std::stable_sort(first, last, less<>()); }
template <class I> bool is_sorted(I first, I last) { if (first == last) return true; I next = first; for (++next; next != last; ++first, ++next) if (*next < *first) return false; return true; }
template <class I> I unique(I first, I last) { if (first == last) return last; I to = first; while (++first != last) if (!(*to == *first)) *++to = *first; return ++to; }
template <class I> long distance(I first, I last) { return last - first; }
template <class I> I next(I at, long n = 1) { return at + n; }
template <class I> I prev(I at, long n = 1) { return at - n; }
template <class I, class G> void shuffle(I first, I last, G& g) { for (long i = (last - first) - 1; i > 0; --i) std::swap(first[i], first[g() % (i + 1)]); }
template <class T> struct numeric_limits { static T max() { return T(); } static T min() { return T(); } static T lowest() { return T(); } };
#define __LIMITS(T, low, high, tiny) template <> struct numeric_limits<T> { static T max() { return high; } static T min() { return tiny; } \
    static T lowest() { return low; } static T epsilon() { return (T)(sizeof(T) == 4 ? 1.1920928955078125e-07 : 2.220446049250313e-16); } \
    static T infinity() { return (T)__builtin_inf(); } static T quiet_NaN() { return (T)__builtin_nanf(); } static const int digits10 = sizeof(T) == 4 ? 6 : 15; \
    static const int max_digits10 = sizeof(T) == 4 ? 9 : 17; };
__LIMITS(int, INT_MIN, INT_MAX, INT_MIN) __LIMITS(unsigned int, 0, UINT_MAX, 0) __LIMITS(long, LONG_MIN, LONG_MAX, LONG_MIN)
__LIMITS(unsigned long, 0, ULONG_MAX, 0) __LIMITS(long long, LLONG_MIN, LLONG_MAX, LLONG_MIN) __LIMITS(float, -FLT_MAX, FLT_MAX, FLT_MIN)
__LIMITS(double, -DBL_MAX, DBL_MAX, DBL_MIN) __LIMITS(char, CHAR_MIN, CHAR_MAX, CHAR_MIN) __LIMITS(unsigned char, 0, UCHAR_MAX, 0)
__LIMITS(short, SHRT_MIN, SHRT_MAX, SHRT_MIN) __LIMITS(unsigned long long, 0, ULLONG_MAX, 0)
template <class A, class B> struct is_same { static const bool value = false; };
template <class A> struct is_same<A, A> { static const bool value = true; };
struct nothrow_t { int n; };
}
void* __vector_memory(size_t size);
void __vector_free(void* p);
void __vector_size(void* p, size_t before, size_t size);
void __out_of_range(size_t i, size_t n);
void __empty_pop();
namespace std {
template <class I, class T> bool binary_search(I first, I last, const T& v) { I at = std::lower_bound(first, last, v); return at != last && !(v < *at); }
template <class I> void nth_element(I first, I nth, I last) { std::sort(first, last); }
template <class I, class F> void nth_element(I first, I nth, I last, F f) { std::sort(first, last, f); }
template <class I> void partial_sort(I first, I middle, I last) { std::sort(first, last); }
template <class I, class F> void partial_sort(I first, I middle, I last, F f) { std::sort(first, last, f); }
template <class I, class F> I find_if_not(I first, I last, F f) { for (; first != last; ++first) if (!f(*first)) return first; return last; }
template <class I, class O, class F> O copy_if(I first, I last, O to, F f) { for (; first != last; ++first) if (f(*first)) { *to = *first; ++to; } return to; }
template <class I, class O> O adjacent_difference(I first, I last, O to) { if (first == last) return to; auto before = *first; *to = before; while (++first != last) { auto now = *first; *++to = now - before; before = now; } return ++to; }
template <class I> pair<I, I> minmax_element(I first, I last) { return pair<I, I>(std::min_element(first, last), std::max_element(first, last)); }
template <class T> pair<T, T> minmax(const T& a, const T& b) { return b < a ? pair<T, T>(b, a) : pair<T, T>(a, b); }
template <class I> void random_shuffle(I first, I last) { for (long i = 1; i < last - first; ++i) { long j = rand() % (i + 1); if (i != j) std::swap(first[i], first[j]); } }
template <class I, class F> I remove_if(I first, I last, F f) { I to = first; for (; first != last; ++first) if (!f(*first)) { *to = *first; ++to; } return to; }
template <class I, class T> void replace(I first, I last, const T& old, const T& v) { for (; first != last; ++first) if (*first == old) *first = v; }
template <class I, class F, class T> void replace_if(I first, I last, F f, const T& v) { for (; first != last; ++first) if (f(*first)) *first = v; }
template <class I, class J> pair<I, J> mismatch(I first, I last, J other) { while (first != last && *first == *other) { ++first; ++other; } return pair<I, J>(first, other); }
template <class I, class J> bool lexicographical_compare(I a, I b, J c, J d) { for (; a != b && c != d; ++a, ++c) { if (*a < *c) return true; if (*c < *a) return false; } return a == b && c != d; }
template <class I> bool next_permutation(I first, I last) {
    if (last - first < 2) return false;
    I i = last - 1;
    while (i != first && !(*(i - 1) < *i)) --i;
    if (i == first) { std::reverse(first, last); return false; }
    I j = last - 1;
    while (!(*(i - 1) < *j)) --j;
    std::swap(*(i - 1), *j);
    std::reverse(i, last);
    return true;
}
template <class I, class J, class O> O merge(I a, I b, J c, J d, O to) { while (a != b || c != d) { if (c == d || (a != b && !(*c < *a))) { *to = *a; ++a; } else { *to = *c; ++c; } ++to; } return to; }
template <class I, class J, class O> O set_intersection(I a, I b, J c, J d, O to) { while (a != b && c != d) { if (*a < *c) ++a; else if (*c < *a) ++c; else { *to = *a; ++to; ++a; ++c; } } return to; }
template <class I, class J, class O> O set_difference(I a, I b, J c, J d, O to) { while (a != b) { if (c == d || *a < *c) { *to = *a; ++to; ++a; } else if (*c < *a) ++c; else { ++a; ++c; } } return to; }
template <class I, class J, class O> O set_union(I a, I b, J c, J d, O to) { while (a != b || c != d) { if (c == d || (a != b && *a < *c)) { *to = *a; ++a; } else if (a == b || *c < *a) { *to = *c; ++c; } else { *to = *a; ++a; ++c; } ++to; } return to; }
template <class I, class F> I partition(I first, I last, F f) { while (first != last) { while (first != last && f(*first)) ++first; if (first == last) return first; --last; while (first != last && !f(*last)) --last; if (first == last) return first; std::swap(*first, *last); ++first; } return first; }
template <class I> void make_heap(I first, I last) { long n = last - first; for (long i = n / 2 - 1; i >= 0; --i) __sift(first, i, n); }
template <class I> void pop_heap(I first, I last) { long n = last - first; if (n > 1) { std::swap(first[0], first[n - 1]); __sift(first, 0L, n - 1); } }
template <class I> void push_heap(I first, I last) { std::make_heap(first, last); }
template <class I, class N> void advance(I& at, N n) { at = at + n; }
template <class T> struct __adder { T* _to; __adder(T& c) : _to(&c) {} __adder& operator*() { return *this; } __adder& operator++() { return *this; } template <class V> __adder& operator=(const V& v) { _to->push_back(v); return *this; } };
template <class T> __adder<T> back_inserter(T& c) { return __adder<T>(c); }
template <class I, class T, class F, class G> T transform_reduce(I first, I last, T sum, F f, G g) { for (; first != last; ++first) sum = f(sum, g(*first)); return sum; }
template <class I, class J, class T> T transform_reduce(I first, I last, J other, T sum) { return std::inner_product(first, last, other, sum); }
template <class T, class U> auto gcd(T a, U b) { auto x = a < 0 ? -a : a; auto y = b < 0 ? -b : b; while (y) { auto r = x % y; x = y; y = r; } return x; }
template <class T, class U> auto lcm(T a, U b) { auto m = a && b ? a / std::gcd(a, b) * b : a * b; return m < 0 ? -m : m; }
template <class I, class O> O inclusive_scan(I first, I last, O to) { return std::partial_sum(first, last, to); }
template <class I, class O, class T> O exclusive_scan(I first, I last, O to, T sum) { for (; first != last; ++first, ++to) { T v = *first; *to = sum; sum = sum + v; } return to; }
template <class T> struct __yes { static const bool value = true; };
#define __TRAIT(name) template <class T> struct name { static const bool value = false; };
#define __IS(name, T) template <> struct name<T> { static const bool value = true; };
__TRAIT(is_floating_point) __IS(is_floating_point, float) __IS(is_floating_point, double)
__TRAIT(is_integral) __IS(is_integral, int) __IS(is_integral, unsigned int) __IS(is_integral, long) __IS(is_integral, unsigned long) __IS(is_integral, long long)
__IS(is_integral, unsigned long long) __IS(is_integral, char) __IS(is_integral, unsigned char) __IS(is_integral, signed char) __IS(is_integral, short) __IS(is_integral, unsigned short) __IS(is_integral, bool)
template <class T> struct is_arithmetic { static const bool value = is_floating_point<T>::value || is_integral<T>::value; };
template <class T> struct is_signed { static const bool value = (T)-1 < (T)0; };
template <class T> struct is_unsigned { static const bool value = !((T)-1 < (T)0); };
template <class T> struct is_pointer { static const bool value = false; };
template <class T> struct is_pointer<T*> { static const bool value = true; };
template <bool B, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <bool B, class T, class F> struct conditional { typedef T type; };
template <class T, class F> struct conditional<false, T, F> { typedef F type; };
template <class A, class B> constexpr bool is_same_v = is_same<A, B>::value;
template <class T> constexpr bool is_integral_v = is_integral<T>::value;
template <class T> constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T> constexpr bool is_arithmetic_v = is_arithmetic<T>::value;
template <class T> constexpr bool is_pointer_v = is_pointer<T>::value;
template <class T> struct remove_const { typedef T type; };
template <class T> struct remove_cv { typedef T type; };
template <class T> struct remove_pointer { typedef T type; };
template <class T> struct remove_pointer<T*> { typedef T type; };
template <bool B, class T = void> using enable_if_t = typename enable_if<B, T>::type;
template <bool B, class T, class F> using conditional_t = typename conditional<B, T, F>::type;
template <class T> struct decay { typedef T type; };
template <class T> struct decay<T&> { typedef T type; };
template <class T> struct remove_reference<T&> { typedef T type; };
template <class T> using decay_t = typename decay<T>::type;
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> using remove_cvref_t = typename remove_reference<T>::type;
template <class T> using remove_pointer_t = typename remove_pointer<T>::type;
template <class T> struct make_unsigned { typedef unsigned int type; };
template <class T> struct hash { typedef void* __of_library; size_t operator()(const T& v) const { return (size_t)v; } };
template <class T> struct reference_wrapper {
    T* _p; reference_wrapper(T& v) : _p(&v) {}
    operator T&() const { return *_p; }
    T& get() const { return *_p; }
    template <class... A> auto operator()(A&&... a) const { return (*_p)(std::forward<A>(a)...); }
};
template <class T> reference_wrapper<T> ref(T& v) { return reference_wrapper<T>(v); }
template <class T> reference_wrapper<const T> cref(const T& v) { return reference_wrapper<const T>(v); }
template <class A, class R> struct unary_function { typedef A argument_type; typedef R result_type; };
template <class A, class B, class R> struct binary_function { typedef A first_argument_type; typedef B second_argument_type; typedef R result_type; };
}
