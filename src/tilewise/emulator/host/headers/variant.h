// std::variant of up to four alternatives, each in its own member, so that construction is simple.
namespace std {
struct monostate {};
struct __no_1 {}; struct __no_2 {}; struct __no_3 {};
struct bad_variant_access : public exception { const char* what() const { return "bad_variant_access"; } };
template <class A, class B = __no_1, class C = __no_2, class D = __no_3> struct variant {
    A _0; B _1; C _2; D _3; size_t _index;
    variant() : _0(), _1(), _2(), _3(), _index(0) {}
    variant(const A& v) : _0(v), _1(), _2(), _3(), _index(0) {}
    variant(const B& v) : _0(), _1(v), _2(), _3(), _index(1) {}
    variant(const C& v) : _0(), _1(), _2(v), _3(), _index(2) {}
    variant(const D& v) : _0(), _1(), _2(), _3(v), _index(3) {}
    variant& operator=(const A& v) { _0 = v; _index = 0; return *this; }
    variant& operator=(const B& v) { _1 = v; _index = 1; return *this; }
    variant& operator=(const C& v) { _2 = v; _index = 2; return *this; }
    variant& operator=(const D& v) { _3 = v; _index = 3; return *this; }
    size_t index() const { return _index; }
    bool valueless_by_exception() const { return false; }
};
template <int N, class A, class B, class C, class D> struct __alternative {};
template <class A, class B, class C, class D> struct __alternative<0, A, B, C, D> { typedef A type; static A& of(variant<A, B, C, D>& v) { return v._0; } };
template <class A, class B, class C, class D> struct __alternative<1, A, B, C, D> { typedef B type; static B& of(variant<A, B, C, D>& v) { return v._1; } };
template <class A, class B, class C, class D> struct __alternative<2, A, B, C, D> { typedef C type; static C& of(variant<A, B, C, D>& v) { return v._2; } };
template <class A, class B, class C, class D> struct __alternative<3, A, B, C, D> { typedef D type; static D& of(variant<A, B, C, D>& v) { return v._3; } };
template <class T, class A, class B, class C> struct __where { static const int at = is_same<T, A>::value ? 0 : is_same<T, B>::value ? 1 : is_same<T, C>::value ? 2 : 3; };
template <int N, class A, class B, class C, class D> typename __alternative<N, A, B, C, D>::type& get(variant<A, B, C, D>& v) { if (v._index != N) throw bad_variant_access(); return __alternative<N, A, B, C, D>::of(v); }
template <class T, class A, class B, class C, class D> T& get(variant<A, B, C, D>& v) { if (v._index != __where<T, A, B, C>::at) throw bad_variant_access(); return __alternative<__where<T, A, B, C>::at, A, B, C, D>::of(v); }
template <class T, class A, class B, class C, class D> T* get_if(variant<A, B, C, D>* v) { return v && v->_index == __where<T, A, B, C>::at ? &__alternative<__where<T, A, B, C>::at, A, B, C, D>::of(*v) : nullptr; }
template <class T, class A, class B, class C, class D> bool holds_alternative(const variant<A, B, C, D>& v) { return v._index == __where<T, A, B, C>::at; }
template <class A, class B, class C, class D> struct __visited { template <class F> static auto of(F& f, variant<A, B, C, D>& v) { if (v._index == 0) return f(v._0); if (v._index == 1) return f(v._1); if (v._index == 2) return f(v._2); return f(v._3); } };
template <class A, class B, class C> struct __visited<A, B, C, __no_3> { template <class F> static auto of(F& f, variant<A, B, C>& v) { if (v._index == 0) return f(v._0); if (v._index == 1) return f(v._1); return f(v._2); } };
template <class A, class B> struct __visited<A, B, __no_2, __no_3> { template <class F> static auto of(F& f, variant<A, B>& v) { if (v._index == 0) return f(v._0); return f(v._1); } };
template <class A> struct __visited<A, __no_1, __no_2, __no_3> { template <class F> static auto of(F& f, variant<A>& v) { return f(v._0); } };
template <class F, class A, class B, class C, class D> auto visit(F f, variant<A, B, C, D>& v) { return __visited<A, B, C, D>::of(f, v); }
}
