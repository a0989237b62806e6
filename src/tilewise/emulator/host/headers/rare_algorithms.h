// What few programs use of <algorithm>, <numeric>, <functional>, <iterator> and <type_traits>: read only where it is named.
namespace std {
template <class I, class T> bool binary_search(I first, I last, const T& v) { I at = std::lower_bound(first, last, v); return at != last && !(v < *at); }
template <class I, class T> I upper_bound(I first, I last, const T& v) { while (first != last && !(v < *first)) ++first; return first; }
template <class I> void nth_element(I first, I nth, I last) { std::sort(first, last); }
template <class I, class F> void nth_element(I first, I nth, I last, F f) { std::sort(first, last, f); }
template <class I> void partial_sort(I first, I middle, I last) { std::sort(first, last); }
template <class I, class F> void partial_sort(I first, I middle, I last, F f) { std::sort(first, last, f); }
template <class I, class F> I find_if_not(I first, I last, F f) { for (; first != last; ++first) if (!f(*first)) return first; return last; }
template <class I, class O, class F> O copy_if(I first, I last, O to, F f) { for (; first != last; ++first) if (f(*first)) { *to = *first; ++to; } return to; }
template <class I, class O> O adjacent_difference(I first, I last, O to) { if (first == last) return to; auto before = *first; *to = before; while (++first != last) { auto now = *first; *++to = now - before; before = now; } return ++to; }
template <class I> pair<I, I> minmax_element(I first, I last) { return pair<I, I>(std::min_element(first, last), std::max_element(first, last)); }
template <class T> pair<T, T> minmax(const T& a, const T& b) { return b < a ? pair<T, T>(b, a) : pair<T, T>(a, b); }
template <class I> I rotate(I first, I middle, I last) { std::reverse(first, middle); std::reverse(middle, last); std::reverse(first, last); return first + (last - middle); }
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
template <class T> struct logical_and { bool operator()(const T& a, const T& b) const { return a && b; } };
template <class T> struct logical_or { bool operator()(const T& a, const T& b) const { return a || b; } };
template <class T> struct bit_xor { T operator()(const T& a, const T& b) const { return a ^ b; } };
template <class T> struct bit_and { T operator()(const T& a, const T& b) const { return a & b; } };
template <class T> struct bit_or { T operator()(const T& a, const T& b) const { return a | b; } };
template <class T> struct divides { T operator()(const T& a, const T& b) const { return a / b; } };
template <class T> struct modulus { T operator()(const T& a, const T& b) const { return a % b; } };
template <class T> struct equal_to { bool operator()(const T& a, const T& b) const { return a == b; } };
template <class T> struct greater_equal { bool operator()(const T& a, const T& b) const { return a >= b; } };
template <class T> struct less_equal { bool operator()(const T& a, const T& b) const { return a <= b; } };
template <class I, class T, class F, class G> T transform_reduce(I first, I last, T sum, F f, G g) { for (; first != last; ++first) sum = f(sum, g(*first)); return sum; }
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
template <class T> struct hash { size_t operator()(const T& v) const { return (size_t)v; } };
template <class A, class R> struct unary_function { typedef A argument_type; typedef R result_type; };
template <class A, class B, class R> struct binary_function { typedef A first_argument_type; typedef B second_argument_type; typedef R result_type; };
}
