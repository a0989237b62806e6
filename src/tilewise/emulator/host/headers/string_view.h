// std::string_view: characters of somebody else's, of whom no zero behind them is known.
namespace std {
class string_view {
    const char* _data; size_t _size;
public:
    typedef const char* iterator; typedef const char* const_iterator; typedef size_t size_type; typedef char value_type;
    static const size_t npos = 18446744073709551615UL;
    constexpr string_view() : _data(nullptr), _size(0) {}
    constexpr string_view(const char* s) : _data(s), _size(strlen(s)) {}
    constexpr string_view(const char* s, size_t n) : _data(s), _size(n) {}
    string_view(const string& s) : _data(s.data()), _size(s.size()) {}
    constexpr size_t size() const { return _size; }
    constexpr size_t length() const { return _size; }
    constexpr bool empty() const { return _size == 0; }
    constexpr const char* data() const { return _data; }
    const char* begin() const { return _data; }
    const char* end() const { return _data + _size; }
    const char* cbegin() const { return _data; }
    const char* cend() const { return _data + _size; }
    const char& operator[](size_t i) const { return _data[i]; }
    const char& at(size_t i) const { if (i >= _size) __out_of_range(i, _size); return _data[i]; }
    const char& front() const { return _data[0]; }
    const char& back() const { return _data[_size - 1]; }
    void remove_prefix(size_t n) { _data += n; _size -= n; }
    void remove_suffix(size_t n) { _size -= n; }
    string_view substr(size_t at = 0, size_t n = 18446744073709551615UL) const { if (at > _size) __out_of_range(at, _size); size_t m = _size - at; if (n < m) m = n; return string_view(_data + at, m); }
    int compare(string_view o) const { size_t n = _size < o._size ? _size : o._size; int c = n ? memcmp(_data, o._data, n) : 0; return c ? c : _size < o._size ? -1 : _size > o._size ? 1 : 0; }
    bool starts_with(string_view o) const { return _size >= o._size && substr(0, o._size).compare(o) == 0; }
    bool ends_with(string_view o) const { return _size >= o._size && substr(_size - o._size).compare(o) == 0; }
    bool starts_with(char c) const { return _size && _data[0] == c; }
    bool ends_with(char c) const { return _size && _data[_size - 1] == c; }
    bool _has(char c) const { for (size_t i = 0; i < _size; ++i) if (_data[i] == c) return true; return false; }
    size_t find(string_view o, size_t from = 0) const { for (size_t i = from; i + o._size <= _size; ++i) if (!o._size || memcmp(_data + i, o._data, o._size) == 0) return i; return npos; }
    size_t find(char c, size_t from = 0) const { for (size_t i = from; i < _size; ++i) if (_data[i] == c) return i; return npos; }
    size_t rfind(string_view o, size_t from = 18446744073709551615UL) const { if (o._size > _size) return npos; size_t i = _size - o._size; if (from < i) i = from; for (++i; i > 0; --i) if (!o._size || memcmp(_data + i - 1, o._data, o._size) == 0) return i - 1; return npos; }
    size_t rfind(char c, size_t from = 18446744073709551615UL) const { for (size_t i = from < _size ? from + 1 : _size; i > 0; --i) if (_data[i - 1] == c) return i - 1; return npos; }
    size_t find_first_of(string_view o, size_t from = 0) const { for (size_t i = from; i < _size; ++i) if (o._has(_data[i])) return i; return npos; }
    size_t find_last_of(string_view o, size_t from = 18446744073709551615UL) const { for (size_t i = from < _size ? from + 1 : _size; i > 0; --i) if (o._has(_data[i - 1])) return i - 1; return npos; }
    size_t find_first_not_of(string_view o, size_t from = 0) const { for (size_t i = from; i < _size; ++i) if (!o._has(_data[i])) return i; return npos; }
    size_t find_last_not_of(string_view o, size_t from = 18446744073709551615UL) const { for (size_t i = from < _size ? from + 1 : _size; i > 0; --i) if (!o._has(_data[i - 1])) return i - 1; return npos; }
    size_t find_first_of(char c, size_t from = 0) const { return find(c, from); }
    size_t find_first_not_of(char c, size_t from = 0) const { return find_first_not_of(string_view(&c, 1), from); }
    size_t find_last_not_of(char c, size_t from = 18446744073709551615UL) const { return find_last_not_of(string_view(&c, 1), from); }
    size_t find_last_of(char c, size_t from = 18446744073709551615UL) const { return rfind(c, from); }
    bool operator==(const string_view& o) const { return compare(o) == 0; }
    bool operator!=(const string_view& o) const { return compare(o) != 0; }
    bool operator<(const string_view& o) const { return compare(o) < 0; }
    bool operator>(const string_view& o) const { return compare(o) > 0; }
    bool operator<=(const string_view& o) const { return compare(o) <= 0; }
    bool operator>=(const string_view& o) const { return compare(o) >= 0; }
};
string::string(const string_view& v) : _data(nullptr), _size(0), _room(0) { _set(v.data(), v.size()); }
string& string::operator=(const string_view& v) { _set(v.data(), v.size()); return *this; }
string& string::operator+=(const string_view& v) { _append(v.data(), v.size()); return *this; }
string& string::append(const string_view& v) { _append(v.data(), v.size()); return *this; }
bool operator==(const string& a, const string_view& b) { return b == string_view(a); }
bool operator!=(const string& a, const string_view& b) { return b != string_view(a); }
bool operator==(const char* a, const string_view& b) { return b == string_view(a); }
bool operator!=(const char* a, const string_view& b) { return b != string_view(a); }
ostream& operator<<(ostream& to, const string_view& s) { __os_n(to._id, s.data(), s.size()); return to; }
}
