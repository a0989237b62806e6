// std::vector and std::array.
namespace std {
template <class T> struct allocator {
    typedef T value_type;
    T* allocate(size_t n) { T* p = (T*)__vector_memory(n * sizeof(T)); __vector_size(p, 0, n * sizeof(T)); return p; }
    void deallocate(T* p, size_t n = 0) { __vector_free(p); }
};
// Memory of a vector: only elements may be accessed; in that of a program's allocator, every byte.
template <class T> T* __room(size_t n, allocator<T>*) { return (T*)__vector_memory(n * sizeof(T)); }
template <class T> void __resized(T* p, size_t before, size_t n, allocator<T>*) { __vector_size(p, before * sizeof(T), n * sizeof(T)); }
template <class A> auto __room(size_t n, A* a) { return a->allocate(n); }
template <class T, class A> void __resized(T* p, size_t before, size_t n, A*) {}
template <class T, class A = allocator<T>> class vector {
    T* _data; size_t _size; size_t _room;
    void _grow(size_t room) { _move(_room_for(room), room); }
    void _move(T* fresh, size_t room) {
        for (size_t i = 0; i < _size; ++i) { __make(fresh + i, std::move(_data[i])); __unmake(_data + i); }
        _free();
        _data = fresh; _room = room;
    }
    T* _room_for(size_t n) { A a; return __room(n, &a); }
    void _free() { if (_data) A().deallocate(_data, _room); }
    void _count(size_t n) { A a; if (n != _size) __resized(_data, _size, n, &a); }
    T* _next() {  // memory for one more element: here, or in the larger buffer to which all will be moved
        return _size < _room ? _data : _room_for(_room ? 2 * _room : 1);
    }
    T& _taken(T* fresh) {
        if (fresh != _data) _move(fresh, _room ? 2 * _room : 1);
        return _data[_size++];
    }
    void _copy(const T* from, size_t n) {
        reserve(n);
        for (; _size < n; ++_size) __make(_data + _size, from[_size]);
    }
public:
    typedef T value_type; typedef T* iterator; typedef const T* const_iterator; typedef size_t size_type; typedef T& reference;
    vector() : _data(nullptr), _size(0), _room(0) {}
    explicit vector(size_t n) : _data(nullptr), _size(0), _room(0) { resize(n); }
    vector(size_t n, const T& value) : _data(nullptr), _size(0), _room(0) { resize(n, value); }
    vector(const vector& o) : _data(nullptr), _size(0), _room(0) { _copy(o._data, o._size); }
    vector(vector&& o) : _data(o._data), _size(o._size), _room(o._room) { o._data = nullptr; o._size = 0; o._room = 0; }
    vector(initializer_list<T> l) : _data(nullptr), _size(0), _room(0) { reserve(l.size()); for (T* p = l.begin(); p != l.end(); ++p) push_back(*p); }
    template <class I> vector(I* first, I* last) : _data(nullptr), _size(0), _room(0) { for (; first != last; ++first) push_back(*first); }
    template <class I> vector(reverse_iterator<I> first, reverse_iterator<I> last) : _data(nullptr), _size(0), _room(0) { for (; first != last; ++first) push_back(*first); }
    ~vector() { clear(); _free(); }
    vector& operator=(const vector& o) { if (this != &o) { clear(); _copy(o._data, o._size); } return *this; }
    vector& operator=(vector&& o) { std::swap(_data, o._data); std::swap(_size, o._size); std::swap(_room, o._room); return *this; }
    size_t size() const { return _size; }
    size_t capacity() const { return _room; }
    bool empty() const { return _size == 0; }
    T* data() { return _data; }
    const T* data() const { return _data; }
    T* begin() { return _data; }
    T* end() { return _data + _size; }
    const T* begin() const { return _data; }
    const T* end() const { return _data + _size; }
    const T* cbegin() const { return _data; }
    const T* cend() const { return _data + _size; }
    __REVERSED(T)
    T& operator[](size_t i) { return _data[i]; }
    const T& operator[](size_t i) const { return _data[i]; }
    T& at(size_t i) { if (i >= _size) __out_of_range(i, _size); return _data[i]; }
    const T& at(size_t i) const { if (i >= _size) __out_of_range(i, _size); return _data[i]; }
    T& front() { return _data[0]; }
    T& back() { return _data[_size - 1]; }
    const T& front() const { return _data[0]; }
    const T& back() const { return _data[_size - 1]; }
    void reserve(size_t room) { if (room > _room) _grow(room); }
    void clear() { for (size_t i = 0; i < _size; ++i) __unmake(_data + i); _count(0); _size = 0; }
    void resize(size_t n) {
        if (n > _room) _grow(n);
        for (size_t i = n; i < _size; ++i) __unmake(_data + i);
        _count(n);
        for (size_t i = _size; i < n; ++i) __make(_data + i);
        _size = n;
    }
    void resize(size_t n, const T& value) {
        if (n > _room) _grow(n);
        for (size_t i = n; i < _size; ++i) __unmake(_data + i);
        _count(n);
        for (size_t i = _size; i < n; ++i) __make(_data + i, value);
        _size = n;
    }
    void assign(size_t n, const T& value) { clear(); resize(n, value); }
    template <class I> void assign(I* first, I* last) { clear(); for (; first != last; ++first) push_back(*first); }
    void push_back(const T& value) { T* fresh = _next(); __make(fresh + _size, value); _taken(fresh); }
    void push_back(T&& value) { T* fresh = _next(); __make(fresh + _size, std::move(value)); _taken(fresh); }
    template <class... A> T& emplace_back(A&&... a) { T* fresh = _next(); __make(fresh + _size, std::forward<A>(a)...); return _taken(fresh); }
    void pop_back() { if (!_size) { __empty_pop(); return; } --_size; __drop(_data + _size); }
    T* insert(const T* where, const T& value) {
        size_t at = where - _data; push_back(value);
        for (size_t i = _size - 1; i > at; --i) std::swap(_data[i], _data[i - 1]);
        return _data + at;
    }
    T* erase(const T* where) { size_t at = where - _data; for (size_t i = at; i + 1 < _size; ++i) _data[i] = std::move(_data[i + 1]); pop_back(); return _data + at; }
    T* erase(const T* first, const T* last) {
        size_t at = first - _data, n = last - first;
        for (size_t i = at; i + n < _size; ++i) _data[i] = std::move(_data[i + n]);
        for (size_t i = 0; i < n; ++i) pop_back();
        return _data + at;
    }
    T* insert(const T* where, size_t n, const T& value) { size_t at = where - _data; T kept = value; for (size_t i = 0; i < n; ++i) insert(_data + at, kept); return _data + at; }
    template <class I> T* insert(const T* where, I* first, I* last) { size_t at = where - _data, n = 0; for (; first != last; ++first, ++n) insert(_data + at + n, *first); return _data + at; }
    void assign(initializer_list<T> l) { clear(); for (T* p = l.begin(); p != l.end(); ++p) push_back(*p); }
    vector& operator=(initializer_list<T> l) { assign(l); return *this; }
    bool operator<(const vector& o) const { for (size_t i = 0; i < _size && i < o._size; ++i) { if (_data[i] < o._data[i]) return true; if (o._data[i] < _data[i]) return false; } return _size < o._size; }
    size_t max_size() const { return 1152921504606846975ul; }
    void shrink_to_fit() {}
    void swap(vector& o) { std::swap(_data, o._data); std::swap(_size, o._size); std::swap(_room, o._room); }
    bool operator==(const vector& o) const { if (_size != o._size) return false; for (size_t i = 0; i < _size; ++i) if (!(_data[i] == o._data[i])) return false; return true; }
    bool operator!=(const vector& o) const { return !(*this == o); }
};
template <class T, size_t N> struct array {
    typedef T value_type;
    T _items[N];
    size_t size() const { return N; }
    bool empty() const { return N == 0; }
    T& operator[](size_t i) { return _items[i]; }
    const T& operator[](size_t i) const { return _items[i]; }
    T& at(size_t i) { if (i >= N) __out_of_range(i, N); return _items[i]; }
    const T& at(size_t i) const { if (i >= N) __out_of_range(i, N); return _items[i]; }
    const T* data() const { return _items; }
    T* data() { return _items; }
    T* begin() { return _items; }
    T* end() { return _items + N; }
    const T* begin() const { return _items; }
    const T* end() const { return _items + N; }
    __REVERSED(T)
    T& front() { return _items[0]; }
    T& back() { return _items[N - 1]; }
    void fill(const T& value) { for (size_t i = 0; i < N; ++i) _items[i] = value; }
};
template <class T, size_t N = 0> struct span {
    typedef T value_type; typedef T element_type;
    T* _first; size_t _count;
    span() : _first(nullptr), _count(0) {}
    span(T* p, size_t n) : _first(p), _count(n) {}
    template <class C> span(C& c) : _first(c.data()), _count(c.size()) {}
    T* data() const { return _first; }
    size_t size() const { return _count; }
    size_t size_bytes() const { return _count * sizeof(T); }
    bool empty() const { return _count == 0; }
    T& operator[](size_t i) const { return _first[i]; }
    T* begin() const { return _first; }
    T* end() const { return _first + _count; }
    T& front() const { return _first[0]; }
    T& back() const { return _first[_count - 1]; }
    span<T> subspan(size_t at, size_t n) const { return span<T>(_first + at, n); }
    span<T> first(size_t n) const { return span<T>(_first, n); }
    span<T> last(size_t n) const { return span<T>(_first + (_count - n), n); }
};
}
