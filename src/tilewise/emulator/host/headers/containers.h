// std::map, set and similar as sorted arrays (the unordered ones are sorted by key, with a program's own hash by that), tuple,
// optional, function, deque, list, queue, stack, priority_queue.
namespace std {
template <class K> struct __same_key { static const K& of(const K& k) { return k; } };
template <class K, class V> struct __first_key { static const K& of(const pair<K, V>& p) { return p.first; } };
template <class H, class K> bool __before(const H&, const K& a, const K& b, typename H::__of_library) { return a < b; }
template <class H, class K> bool __before(const H& h, const K& a, const K& b, ...) { return h(a) < h(b); }
template <class K, class H, class E> struct __hashed { H _hash; E _equal;
    __hashed() {}
    __hashed(const H& h, const E& e) : _hash(h), _equal(e) {}
    bool operator()(const K& a, const K& b) const { return __before(_hash, a, b, nullptr); }
};
// of keys of which neither is before the other; overloads are not ordered by specialisation: the first one that fits is taken
template <class K, class H, class E> bool __same(const __hashed<K, H, E>& c, const K& a, const K& b) { return c._equal(a, b); }
template <class C, class K> bool __same(const C&, const K&, const K&) { return true; }
template <class K, class P, class G, class C> struct __sorted {
    vector<P> _items; C _less;
    __sorted() {}
    __sorted(const C& c) : _less(c) {}
    typedef P value_type; typedef K key_type; typedef P* iterator; typedef const P* const_iterator; typedef size_t size_type;
    P* begin() { return _items.begin(); }
    P* end() { return _items.end(); }
    const P* begin() const { return _items.begin(); }
    const P* end() const { return _items.end(); }
    const P* cbegin() const { return _items.begin(); }
    const P* cend() const { return _items.end(); }
    __REVERSED(P)
    size_t size() const { return _items.size(); }
    bool empty() const { return _items.size() == 0; }
    void clear() { _items.clear(); }
    void reserve(size_t n) { _items.reserve(n); }
    size_t _at(const K& k) const {
        size_t a = 0, b = _items.size();
        while (a < b) { size_t m = (a + b) / 2; if (_less(G::of(_items[m]), k)) a = m + 1; else b = m; }
        while (a < _items.size() && !__same(_less, G::of(_items[a]), k) && !_less(k, G::of(_items[a]))) ++a;
        return a;
    }
    bool _has(size_t i, const K& k) const { return i < _items.size() && !_less(k, G::of(_items[i])) && __same(_less, G::of(_items[i]), k); }
    P* lower_bound(const K& k) { return begin() + _at(k); }
    P* upper_bound(const K& k) { size_t i = _at(k); return begin() + i + (_has(i, k) ? 1 : 0); }
    P* find(const K& k) { size_t i = _at(k); return _has(i, k) ? begin() + i : end(); }
    const P* find(const K& k) const { size_t i = _at(k); return _has(i, k) ? begin() + i : end(); }
    size_t count(const K& k) const { return _has(_at(k), k) ? 1 : 0; }
    bool contains(const K& k) const { return _has(_at(k), k); }
    size_t erase(const K& k) { size_t i = _at(k); if (!_has(i, k)) return 0; _items.erase(_items.begin() + i); return 1; }
    P* erase(P* p) { return _items.erase(p); }
    pair<P*, bool> insert(const P& p) { size_t i = _at(G::of(p)); if (_has(i, G::of(p))) return pair<P*, bool>(begin() + i, false); _items.insert(_items.begin() + i, p); return pair<P*, bool>(begin() + i, true); }
};
template <class K, class V, class C = less<K>, class A = int> struct map : public __sorted<K, pair<K, V>, __first_key<K, V>, C> {
    typedef V mapped_type;
    map() {}
    explicit map(const C& c) : __sorted<K, pair<K, V>, __first_key<K, V>, C>(c) {}
    map(initializer_list<pair<K, V> > l) { for (pair<K, V>* p = l.begin(); p != l.end(); ++p) this->insert(*p); }
    V& operator[](const K& k) { size_t i = this->_at(k); if (!this->_has(i, k)) this->_items.insert(this->_items.begin() + i, pair<K, V>(k, V())); return this->_items[i].second; }
    V& at(const K& k) { size_t i = this->_at(k); if (!this->_has(i, k)) __out_of_range(i, this->size()); return this->_items[i].second; }
    const V& at(const K& k) const { size_t i = this->_at(k); if (!this->_has(i, k)) __out_of_range(i, this->size()); return this->_items[i].second; }
    template <class A, class B> pair<pair<K, V>*, bool> emplace(const A& a, const B& b) { return this->insert(pair<K, V>(a, b)); }
};
template <class K, class V, class H = hash<K>, class E = equal_to<K>, class A = int> struct unordered_map : public map<K, V, __hashed<K, H, E> > {
    unordered_map() {}
    explicit unordered_map(size_t, const H& h = H(), const E& e = E()) : map<K, V, __hashed<K, H, E> >(__hashed<K, H, E>(h, e)) {}
    unordered_map(initializer_list<pair<K, V> > l) { for (pair<K, V>* p = l.begin(); p != l.end(); ++p) this->insert(*p); }
};
template <class K, class C = less<K>, class A = int> struct set : public __sorted<K, K, __same_key<K>, C> {
    set() {}
    explicit set(const C& c) : __sorted<K, K, __same_key<K>, C>(c) {}
    set(initializer_list<K> l) { for (K* p = l.begin(); p != l.end(); ++p) this->insert(*p); }
    template <class I> set(I first, I last) { for (; first != last; ++first) this->insert(*first); }
};
template <class K, class H = hash<K>, class E = equal_to<K>, class A = int> struct unordered_set : public set<K, __hashed<K, H, E> > {
    unordered_set() {}
    explicit unordered_set(size_t, const H& h = H(), const E& e = E()) : set<K, __hashed<K, H, E> >(__hashed<K, H, E>(h, e)) {}
    unordered_set(initializer_list<K> l) { for (K* p = l.begin(); p != l.end(); ++p) this->insert(*p); }
    template <class I> unordered_set(I first, I last) { for (; first != last; ++first) this->insert(*first); }
};
template <class T> struct deque : public vector<T> {
    deque() {}
    explicit deque(size_t n) : vector<T>(n) {}
    deque(size_t n, const T& v) : vector<T>(n, v) {}
    void push_front(const T& v) { this->insert(this->begin(), v); }
    void pop_front() { this->erase(this->begin()); }
};
template <class T> struct list : public deque<T> { list() {} };
template <class T, class C = int> struct queue {
    vector<T> _items; size_t _head;  // elements before it are destroyed; erased when they are half of all
    queue() : _head(0) {}
    void push(const T& v) { _items.push_back(v); }
    template <class A> void emplace(A&& a) { _items.emplace_back(std::forward<A>(a)); }
    template <class A, class B> void emplace(A&& a, B&& b) { _items.emplace_back(std::forward<A>(a), std::forward<B>(b)); }
    void pop() {
        if (empty()) { __empty_pop(); return; }
        if (2 * ++_head >= _items.size()) { _items.erase(_items.begin(), _items.begin() + _head); _head = 0; }
    }
    T& front() { return _items[_head]; }
    T& back() { return _items.back(); }
    bool empty() const { return _head == _items.size(); }
    size_t size() const { return _items.size() - _head; }
};
template <class T, class C = int> struct stack {
    vector<T> _items;
    void push(const T& v) { _items.push_back(v); }
    void pop() { _items.pop_back(); }
    T& top() { return _items.back(); }
    bool empty() const { return _items.empty(); }
    size_t size() const { return _items.size(); }
};
template <class T, class C = vector<T>, class F = less<T> > struct priority_queue {
    vector<T> _items; F _less;
    void _rise(size_t hole, const T& v) {  // same order of equal elements as libstdc++
        while (hole > 0 && _less(_items[(hole - 1) / 2], v)) { _items[hole] = _items[(hole - 1) / 2]; hole = (hole - 1) / 2; }
        _items[hole] = v;
    }
    void push(const T& v) { T kept = v; _items.push_back(v); _rise(_items.size() - 1, kept); }
    template <class A> void emplace(A&& a) { push(T(std::forward<A>(a))); }
    template <class A, class B> void emplace(A&& a, B&& b) { push(T(std::forward<A>(a), std::forward<B>(b))); }
    void pop() {
        if (_items.size() > 1) {
            T last = _items.back();
            size_t n = _items.size() - 1, hole = 0;
            while (2 * hole + 2 < n) {
                size_t child = 2 * hole + 2;
                if (_less(_items[child], _items[child - 1])) --child;
                _items[hole] = _items[child]; hole = child;
            }
            if (2 * hole + 2 == n) { _items[hole] = _items[n - 1]; hole = n - 1; }
            _rise(hole, last);
        }
        _items.pop_back();
    }
    const T& top() const { return _items.front(); }
    bool empty() const { return _items.empty(); }
    size_t size() const { return _items.size(); }
};
struct nullopt_t { int n; };
const nullopt_t nullopt = {0};
template <class T> struct optional {
    bool _has; T _value;
    optional() : _has(false), _value() {}
    optional(nullopt_t n) : _has(false), _value() {}
    optional(const T& v) : _has(true), _value(v) {}
    bool has_value() const { return _has; }
    operator bool() const { return _has; }
    T& value() { return _value; }
    T& operator*() { return _value; }
    const T& operator*() const { return _value; }
    T* operator->() { return &_value; }
    T value_or(const T& other) const { return _has ? _value : other; }
};
struct __absent {};
template <class A, class B = __absent, class C = __absent, class D = __absent> struct tuple { A _0; B _1; C _2; D _3; tuple() : _0(), _1(), _2(), _3() {}
    tuple(const A& a) : _0(a), _1(), _2(), _3() {}  // fewer than four members: for `std::tuple t(1, 2.0)`
    tuple(const A& a, const B& b) : _0(a), _1(b), _2(), _3() {}
    tuple(const A& a, const B& b, const C& c) : _0(a), _1(b), _2(c), _3() {}
    tuple(const A& a, const B& b, const C& c, const D& d) : _0(a), _1(b), _2(c), _3(d) {} };
template <class A, class B, class C> struct tuple<A, B, C, __absent> { A _0; B _1; C _2; tuple() : _0(), _1(), _2() {} tuple(const A& a, const B& b, const C& c) : _0(a), _1(b), _2(c) {} };
template <class A, class B> struct tuple<A, B, __absent, __absent> { A _0; B _1; tuple() : _0(), _1() {} tuple(const A& a, const B& b) : _0(a), _1(b) {} };
template <class A> struct tuple<A, __absent, __absent, __absent> { A _0; tuple() : _0() {} tuple(const A& a) : _0(a) {} };
template <int N, class A, class B, class C, class D> struct __part {};
template <class A, class B, class C, class D> struct __part<0, A, B, C, D> { typedef A type; static A& of(tuple<A, B, C, D>& t) { return t._0; } };
template <class A, class B, class C, class D> struct __part<1, A, B, C, D> { typedef B type; static B& of(tuple<A, B, C, D>& t) { return t._1; } };
template <class A, class B, class C, class D> struct __part<2, A, B, C, D> { typedef C type; static C& of(tuple<A, B, C, D>& t) { return t._2; } };
template <class A, class B, class C, class D> struct __part<3, A, B, C, D> { typedef D type; static D& of(tuple<A, B, C, D>& t) { return t._3; } };
template <int N, class A, class B, class C, class D> typename __part<N, A, B, C, D>::type& get(tuple<A, B, C, D>& t) { return __part<N, A, B, C, D>::of(t); }
template <class... A> tuple<A...> make_tuple(A... a) { return tuple<A...>(a...); }
template <class F, class... A> auto invoke(F&& f, A&&... a) { return f(std::forward<A>(a)...); }
template <class F, class A> auto apply(F f, tuple<A> t) { return f(t._0); }
template <class F, class A, class B> auto apply(F f, tuple<A, B> t) { return f(t._0, t._1); }
template <class F, class A, class B, class C> auto apply(F f, tuple<A, B, C> t) { return f(t._0, t._1, t._2); }
template <class F, class A, class B, class C, class D> auto apply(F f, tuple<A, B, C, D> t) { return f(t._0, t._1, t._2, t._3); }

template <class F> F* __kept_copy(const F& f) { F* p = (F*)__vector_memory(sizeof(F)); __vector_size(p, 0, sizeof(F)); __make(p, f); return p; }
template <class F, class R> R __invoke0(void* f) { return (*(F*)f)(); }
template <class F, class R, class A> R __invoke1(void* f, A a) { return (*(F*)f)(a); }
template <class F, class R, class A, class B> R __invoke2(void* f, A a, B b) { return (*(F*)f)(a, b); }
template <class F, class R, class A, class B, class C> R __invoke3(void* f, A a, B b, C c) { return (*(F*)f)(a, b, c); }
template <class F, class R, class A, class B, class C, class D> R __invoke4(void* f, A a, B b, C c, D d) { return (*(F*)f)(a, b, c, d); }
template <class S> struct function { int n; };
#define __FUNCTION_BODY(...) void* _object; __VA_ARGS__ \
    operator bool() const { return _object != nullptr; }
template <class R> struct function<R()> { R (*_call)(void*);
    __FUNCTION_BODY(function() : _object(nullptr) {} template <class F> function(F f) { _object = (void*)__kept_copy(f); _call = &__invoke0<F, R>; })
    R operator()() const { return _call(_object); } };
template <class R, class A> struct function<R(A)> { R (*_call)(void*, A);
    __FUNCTION_BODY(function() : _object(nullptr) {} template <class F> function(F f) { _object = (void*)__kept_copy(f); _call = &__invoke1<F, R, A>; })
    R operator()(A a) const { return _call(_object, a); } };
template <class R, class A, class B> struct function<R(A, B)> { R (*_call)(void*, A, B);
    __FUNCTION_BODY(function() : _object(nullptr) {} template <class F> function(F f) { _object = (void*)__kept_copy(f); _call = &__invoke2<F, R, A, B>; })
    R operator()(A a, B b) const { return _call(_object, a, b); } };
template <class R, class A, class B, class C> struct function<R(A, B, C)> { R (*_call)(void*, A, B, C);
    __FUNCTION_BODY(function() : _object(nullptr) {} template <class F> function(F f) { _object = (void*)__kept_copy(f); _call = &__invoke3<F, R, A, B, C>; })
    R operator()(A a, B b, C c) const { return _call(_object, a, b, c); } };
template <class R, class A, class B, class C, class D> struct function<R(A, B, C, D)> { R (*_call)(void*, A, B, C, D);
    __FUNCTION_BODY(function() : _object(nullptr) {} template <class F> function(F f) { _object = (void*)__kept_copy(f); _call = &__invoke4<F, R, A, B, C, D>; })
    R operator()(A a, B b, C c, D d) const { return _call(_object, a, b, c, d); } };
template <int N> struct __placeholder {};
namespace placeholders { __placeholder<1> _1; __placeholder<2> _2; __placeholder<3> _3; }
template <class T> struct __bound { template <class X, class Y, class Z> static T& of(T& v, X&, Y&, Z&) { return v; } };
template <> struct __bound<__placeholder<1>> { template <class X, class Y, class Z> static X& of(__placeholder<1>&, X& x, Y&, Z&) { return x; } };
template <> struct __bound<__placeholder<2>> { template <class X, class Y, class Z> static Y& of(__placeholder<2>&, X&, Y& y, Z&) { return y; } };
template <> struct __bound<__placeholder<3>> { template <class X, class Y, class Z> static Z& of(__placeholder<3>&, X&, Y&, Z& z) { return z; } };
template <class F> struct __binder { F _f;
    auto operator()() { int no = 0; return _f(no, no, no); }
    template <class X> auto operator()(X x) { int no = 0; return _f(x, no, no); }
    template <class X, class Y> auto operator()(X x, Y y) { int no = 0; return _f(x, y, no); }
    template <class X, class Y, class Z> auto operator()(X x, Y y, Z z) { return _f(x, y, z); } };
template <class F> __binder<F> __bind_calls(F f) { __binder<F> b = {f}; return b; }
template <class F, class... A> auto bind(F f, A... a) { return __bind_calls([=](auto& x, auto& y, auto& z) mutable { return f(__bound<A>::of(a, x, y, z)...); }); }
}
