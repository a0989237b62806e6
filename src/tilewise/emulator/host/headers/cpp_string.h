// std::string and exceptions, as far as programs of courses use them.
size_t __word_size();
void __word_copy(char* to);
void __real_text(double value);
namespace std {
class string_view;
class string {
    char* _data; size_t _size; size_t _room;
    void _set(const char* from, size_t n) {
        if (n + 1 > _room) { size_t room = n + 1 < 16 ? 16 : 2 * n + 2; char* fresh = (char*)__vector_memory(room); __vector_size(fresh, 0, room);
            if (n) memmove(fresh, from, n); if (_data) __vector_free(_data); _data = fresh; _room = room; }
        else if (n) memmove(_data, from, n);
        _size = n; _data[n] = 0;
    }
public:
    typedef char* iterator; typedef size_t size_type; typedef char value_type;
    static const size_t npos = 18446744073709551615UL;
    string() : _data(nullptr), _size(0), _room(0) { _set("", 0); }
    string(const char* s) : _data(nullptr), _size(0), _room(0) { _set(s, strlen(s)); }
    string(const char* s, size_t n) : _data(nullptr), _size(0), _room(0) { _set(s, n); }
    // in streams.h
    explicit string(const string_view& v); string& operator=(const string_view& v); string& operator+=(const string_view& v); string& append(const string_view& v);
    string(const string& o) : _data(nullptr), _size(0), _room(0) { _set(o._data, o._size); }
    string(string&& o) : _data(nullptr), _size(0), _room(0) { _set("", 0); std::swap(_data, o._data); std::swap(_size, o._size); std::swap(_room, o._room); }
    string(const char* first, const char* last) : _data(nullptr), _size(0), _room(0) { _set(first, last - first); }
    template <class I> string(reverse_iterator<I> first, reverse_iterator<I> last) : _data(nullptr), _size(0), _room(0) { _set("", 0); for (; first != last; ++first) push_back(*first); }
    string(size_t n, char c) : _data(nullptr), _size(0), _room(0) { _set("", 0); for (size_t i = 0; i < n; ++i) push_back(c); }
    ~string() { if (_data) __vector_free(_data); }
    string& operator=(const string& o) { if (this != &o) _set(o._data, o._size); return *this; }
    string& operator=(const char* s) { _set(s, strlen(s)); return *this; }
    size_t size() const { return _size; }
    size_t length() const { return _size; }
    bool empty() const { return _size == 0; }
    const char* c_str() const { return _data; }
    const char* data() const { return _data; }
    char* begin() { return _data; }
    char* end() { return _data + _size; }
    const char* begin() const { return _data; }
    const char* end() const { return _data + _size; }
    __REVERSED(char)
    char& operator[](size_t i) { return _data[i]; }
    const char& operator[](size_t i) const { return _data[i]; }
    char& at(size_t i) { if (i >= _size) __out_of_range(i, _size); return _data[i]; }
    char& back() { return _data[_size - 1]; }
    char& front() { return _data[0]; }
    void clear() { _set("", 0); }
    void reserve(size_t n) {}
    void resize(size_t n) { while (_size < n) push_back(0); _size = n; _data[n] = 0; }
    void _append(const char* s, size_t n) { if (n && s >= _data && s < _data + _size) { string own(s, n); _append(own._data, n); return; }
        size_t old = _size; size_t m = old + n;
        if (m + 1 > _room) { size_t room = 2 * m + 2; char* fresh = (char*)__vector_memory(room); __vector_size(fresh, 0, room); memmove(fresh, _data, old);
            memmove(fresh + old, s, n); __vector_free(_data); _data = fresh; _room = room; }
        else memmove(_data + old, s, n);
        _size = m; _data[m] = 0; }
    void push_back(char c) { char t[2]; t[0] = c; t[1] = 0; _append(t, 1); }
    void pop_back() { if (!_size) { __empty_pop(); return; } --_size; _data[_size] = 0; }
    string& operator+=(const string& o) { _append(o._data, o._size); return *this; }
    string& operator+=(const char* s) { _append(s, strlen(s)); return *this; }
    string& operator+=(char c) { push_back(c); return *this; }
    string& append(const string& o) { _append(o._data, o._size); return *this; }
    string& append(const char* s) { _append(s, strlen(s)); return *this; }
    string& append(size_t n, char c) { for (size_t i = 0; i < n; ++i) push_back(c); return *this; }
    string& append(const char* s, size_t n) { _append(s, n); return *this; }
    string& assign(const string& o) { if (this != &o) _set(o._data, o._size); return *this; }
    string& assign(size_t n, char c) { clear(); return append(n, c); }
    string& erase(size_t at = 0, size_t n = 18446744073709551615UL) { if (at > _size) __out_of_range(at, _size); size_t m = _size - at; if (n < m) m = n;
        memmove(_data + at, _data + at + m, _size - at - m); _size -= m; _data[_size] = 0; return *this; }
    char* erase(char* first, char* last) { size_t at = first - _data; erase(at, last - first); return _data + at; }
    char* erase(char* where) { return erase(where, where + 1); }
    string& insert(size_t at, const string& o) { string rest(_data + at, _size - at); _size = at; _data[at] = 0; _append(o._data, o._size); _append(rest._data, rest._size); return *this; }
    string& insert(size_t at, size_t n, char c) { return insert(at, string(n, c)); }
    char* insert(const char* where, char c) { size_t at = where - _data; insert(at, 1, c); return _data + at; }
    string& replace(size_t at, size_t n, const string& o) { erase(at, n); return insert(at, o); }
    string substr(size_t at, size_t n = 18446744073709551615UL) const { if (at > _size) __out_of_range(at, _size); size_t m = _size - at; if (n < m) m = n; return string(_data + at, m); }
    size_t find(const string& o, size_t from = 0) const { for (size_t i = from; i + o._size <= _size; ++i) if (memcmp(_data + i, o._data, o._size) == 0) return i; return npos; }
    size_t find(char c, size_t from = 0) const { for (size_t i = from; i < _size; ++i) if (_data[i] == c) return i; return npos; }
    size_t rfind(const string& o, size_t from) const { if (o._size > _size) return npos; size_t i = _size - o._size; if (from < i) i = from; for (++i; i > 0; --i) if (memcmp(_data + i - 1, o._data, o._size) == 0) return i - 1; return npos; }
    size_t rfind(const string& o) const { return rfind(o, npos); }
    size_t rfind(char c) const { for (size_t i = _size; i > 0; --i) if (_data[i - 1] == c) return i - 1; return npos; }
    bool _has(char c) const { for (size_t i = 0; i < _size; ++i) if (_data[i] == c) return true; return false; }
    size_t find_first_of(const string& o, size_t from = 0) const { for (size_t i = from; i < _size; ++i) if (o._has(_data[i])) return i; return npos; }
    size_t find_last_of(const string& o, size_t from = npos) const { for (size_t i = from < _size ? from + 1 : _size; i > 0; --i) if (o._has(_data[i - 1])) return i - 1; return npos; }
    size_t find_first_not_of(const string& o, size_t from = 0) const { for (size_t i = from; i < _size; ++i) if (!o._has(_data[i])) return i; return npos; }
    size_t find_last_not_of(const string& o, size_t from = npos) const { for (size_t i = from < _size ? from + 1 : _size; i > 0; --i) if (!o._has(_data[i - 1])) return i - 1; return npos; }
    size_t find_first_of(char c, size_t from = 0) const { for (size_t i = from; i < _size; ++i) if (_data[i] == c) return i; return npos; }
    size_t find_last_of(char c) const { return rfind(c); }
    int compare(const string& o) const { return strcmp(_data, o._data); }
    bool operator==(const string& o) const { return _size == o._size && memcmp(_data, o._data, _size) == 0; }
    bool operator!=(const string& o) const { return !(*this == o); }
    bool operator<(const string& o) const { return strcmp(_data, o._data) < 0; }
    bool operator>(const string& o) const { return strcmp(_data, o._data) > 0; }
};
string operator+(const string& a, const string& b) { string r(a); r += b; return r; }
bool operator==(const char* a, const string& b) { return strcmp(a, b.c_str()) == 0; }
string operator+(const string& a, char b) { string r(a); r += b; return r; }
string operator+(char a, const string& b) { string r(1, a); r += b; return r; }
string to_string(int v) { char t[32]; sprintf(t, "%d", v); return string(t); }
string to_string(unsigned int v) { char t[32]; sprintf(t, "%u", v); return string(t); }
string to_string(long v) { char t[32]; sprintf(t, "%ld", v); return string(t); }
string to_string(unsigned long v) { char t[32]; sprintf(t, "%lu", v); return string(t); }
string to_string(long long v) { char t[32]; sprintf(t, "%lld", v); return string(t); }
string to_string(unsigned long long v) { char t[32]; sprintf(t, "%llu", v); return string(t); }
string to_string(double v) { char t[400]; sprintf(t, "%f", v); return string(t); }
string to_string(float v) { char t[400]; sprintf(t, "%f", (double)v); return string(t); }
int stoi(const string& s, size_t* at = nullptr, int base = 10) { char* end; int v = (int)strtol(s.c_str(), &end, base); if (at) *at = end - s.c_str(); return v; }
long stol(const string& s) { return strtol(s.c_str(), nullptr, 10); }
long long stoll(const string& s) { return strtol(s.c_str(), nullptr, 10); }
unsigned long stoul(const string& s) { return strtoul(s.c_str(), nullptr, 10); }
unsigned long long stoull(const string& s) { return strtoul(s.c_str(), nullptr, 10); }
float stof(const string& s) { return strtof(s.c_str(), nullptr); }
double stod(const string& s) { return strtod(s.c_str(), nullptr); }
class exception { public: string _what; exception() : _what("std::exception") {} exception(const string& s) : _what(s) {} virtual ~exception() {} virtual const char* what() const { return _what.c_str(); } };
void terminate() { fprintf(stderr, "terminate called without an active exception\n"); abort(); }
class runtime_error : public exception { public: runtime_error(const string& s) : exception(s) {} };
class logic_error : public exception { public: logic_error(const string& s) : exception(s) {} };
class invalid_argument : public logic_error { public: invalid_argument(const string& s) : logic_error(s) {} };
class out_of_range : public logic_error { public: out_of_range(const string& s) : logic_error(s) {} };
class domain_error : public logic_error { public: domain_error(const string& s) : logic_error(s) {} };
class length_error : public logic_error { public: length_error(const string& s) : logic_error(s) {} };
class range_error : public runtime_error { public: range_error(const string& s) : runtime_error(s) {} };
class overflow_error : public runtime_error { public: overflow_error(const string& s) : runtime_error(s) {} };
class underflow_error : public runtime_error { public: underflow_error(const string& s) : runtime_error(s) {} };
class bad_alloc : public exception { public: bad_alloc() : exception("std::bad_alloc") {} };
}
