// C++ streams: each operator passes its value to the runtime, which formats it.
void __os_i(int id, long v, int size);
void __os_u(int id, unsigned long v, int size);
void __os_d(int id, double v);
void __os_s(int id, const char* s);
void __os_n(int id, const char* s, size_t n);
void __os_c(int id, int c);
void __os_b(int id, int v);
void __os_p(int id, const void* p);
long __os_set(int id, int what, long value);
void __os_flush(int id);
int __os_new();
size_t __os_size(int id);
void __os_copy(int id, char* to);
void __os_clear(int id, const char* s, size_t n);
int __os_file(int id, const char* name, int mode);
int __is_new(const char* s, size_t n);
int __is_file(const char* name);
long __is_word(int id, int kind);
int __is_number(int id, int kind);
long __is_integer();
double __is_real();
void __is_copy(char* to);
int __is_good(int id);
void __is_mend(int id);
long __is_at(int id, long to, int from);
namespace std {
struct __setting { int what; long value; };
typedef long streamsize;
class ios_base { public: typedef int fmtflags; static const int fixed = 1; static const int scientific = 2; static const int left = 4; static const int right = 8;
    static const int hex = 16; static const int dec = 32; static const int boolalpha = 64; static const int in = 1; static const int out = 2; static const int app = 4;
    static const int binary = 8; static const int trunc = 16; static const int ate = 32; static const int beg = 0; static const int cur = 1; static const int end = 2; static const int floatfield = 3; static const int adjustfield = 12;
    static bool sync_with_stdio(bool b = true) { return true; } };
typedef ios_base ios;
class ostream {
public:
    int _id;
    ostream(int id) : _id(id) {}
    ostream& operator<<(int v) { __os_i(_id, v, 4); return *this; }
    ostream& operator<<(unsigned int v) { __os_u(_id, v, 4); return *this; }
    ostream& operator<<(long v) { __os_i(_id, v, 8); return *this; }
    ostream& operator<<(unsigned long v) { __os_u(_id, v, 8); return *this; }
    ostream& operator<<(long long v) { __os_i(_id, v, 8); return *this; }
    ostream& operator<<(unsigned long long v) { __os_u(_id, v, 8); return *this; }
    ostream& operator<<(short v) { __os_i(_id, v, 2); return *this; }
    ostream& operator<<(unsigned short v) { __os_u(_id, v, 2); return *this; }
    ostream& operator<<(double v) { __os_d(_id, v); return *this; }
    ostream& operator<<(float v) { __os_d(_id, v); return *this; }
    ostream& operator<<(bool v) { __os_b(_id, v); return *this; }
    ostream& operator<<(char c) { __os_c(_id, c); return *this; }
    ostream& operator<<(signed char c) { __os_c(_id, c); return *this; }
    ostream& operator<<(unsigned char c) { __os_c(_id, c); return *this; }
    ostream& operator<<(const char* s) { __os_s(_id, s); return *this; }
    ostream& operator<<(const void* p) { __os_p(_id, p); return *this; }
    ostream& operator<<(const string& s) { __os_n(_id, s.c_str(), s.size()); return *this; }
    ostream& operator<<(__setting s) { __os_set(_id, s.what, s.value); return *this; }
    ostream& operator<<(ostream& (*f)(ostream&)) { return f(*this); }
    ostream& put(char c) { __os_c(_id, c); return *this; }
    ostream& write(const char* s, long n) { __os_n(_id, s, n); return *this; }
    ostream& flush() { __os_flush(_id); return *this; }
    ostream* tie(ostream* o = nullptr) { return nullptr; }
    long precision(long n) { return __os_set(_id, 1, n); }
    long precision() { long n = __os_set(_id, 1, 6); __os_set(_id, 1, n); return n; }
    long width(long n) { return __os_set(_id, 0, n); }
    long width() { long n = __os_set(_id, 0, 0); __os_set(_id, 0, n); return n; }
    char fill(char c) { __os_set(_id, 2, c); return ' '; }
    int setf(int flags) { _flags(flags); return 0; }
    int setf(int flags, int mask) { _flags(flags); return 0; }
    void unsetf(int flags) { if (flags & 3) __os_set(_id, 3, 0); }
    void _flags(int f) { if (f & 1) __os_set(_id, 3, 1); if (f & 2) __os_set(_id, 3, 2); if (f & 4) __os_set(_id, 5, 1); if (f & 8) __os_set(_id, 5, 0);
        if (f & 16) __os_set(_id, 4, 16); if (f & 32) __os_set(_id, 4, 10); if (f & 64) __os_set(_id, 6, 1); }
    bool good() const { return true; }
    bool fail() const { return false; }
};
ostream& endl(ostream& o) { __os_c(o._id, 10); __os_flush(o._id); return o; }
ostream& ends(ostream& o) { __os_c(o._id, 0); return o; }
ostream& flush(ostream& o) { __os_flush(o._id); return o; }
ostream& fixed(ostream& o) { __os_set(o._id, 3, 1); return o; }
ostream& scientific(ostream& o) { __os_set(o._id, 3, 2); return o; }
ostream& defaultfloat(ostream& o) { __os_set(o._id, 3, 0); return o; }
ostream& hex(ostream& o) { __os_set(o._id, 4, 16); return o; }
ostream& dec(ostream& o) { __os_set(o._id, 4, 10); return o; }
ostream& oct(ostream& o) { __os_set(o._id, 4, 8); return o; }
ostream& left(ostream& o) { __os_set(o._id, 5, 1); return o; }
ostream& right(ostream& o) { __os_set(o._id, 5, 0); return o; }
ostream& internal(ostream& o) { __os_set(o._id, 5, 2); return o; }
ostream& boolalpha(ostream& o) { __os_set(o._id, 6, 1); return o; }
ostream& noboolalpha(ostream& o) { __os_set(o._id, 6, 0); return o; }
ostream& showpos(ostream& o) { __os_set(o._id, 7, 1); return o; }
ostream& noshowpos(ostream& o) { __os_set(o._id, 7, 0); return o; }
ostream& showpoint(ostream& o) { __os_set(o._id, 8, 1); return o; }
ostream& uppercase(ostream& o) { __os_set(o._id, 9, 1); return o; }
ostream& showbase(ostream& o) { __os_set(o._id, 10, 1); return o; }
__setting setw(int n) { __setting s; s.what = 0; s.value = n; return s; }
__setting setprecision(int n) { __setting s; s.what = 1; s.value = n; return s; }
__setting setfill(char c) { __setting s; s.what = 2; s.value = c; return s; }
class istream {
public:
    int _id; long _read;
    istream(int id) : _id(id) {}
    ostream* tie(ostream* o = nullptr) { return nullptr; }
    istream& operator>>(int& v) { if (__is_number(_id, 0)) v = (int)__is_integer(); return *this; }
    istream& operator>>(unsigned int& v) { if (__is_number(_id, 0)) v = (unsigned int)__is_integer(); return *this; }
    istream& operator>>(long& v) { if (__is_number(_id, 0)) v = __is_integer(); return *this; }
    istream& operator>>(unsigned long& v) { if (__is_number(_id, 0)) v = __is_integer(); return *this; }
    istream& operator>>(long long& v) { if (__is_number(_id, 0)) v = __is_integer(); return *this; }
    istream& operator>>(short& v) { if (__is_number(_id, 0)) v = (short)__is_integer(); return *this; }
    istream& operator>>(unsigned long long& v) { if (__is_number(_id, 0)) v = __is_integer(); return *this; }
    istream& operator>>(bool& v) { if (__is_number(_id, 0)) v = __is_integer() != 0; return *this; }
    istream& operator>>(float& v) { if (__is_number(_id, 1)) v = (float)__is_real(); return *this; }
    istream& operator>>(double& v) { if (__is_number(_id, 1)) v = __is_real(); return *this; }
    istream& operator>>(char& c) { if (__is_word(_id, 3) > 0) __is_copy(&c); return *this; }
    istream& operator>>(string& s) { long n = __is_word(_id, 0); if (n >= 0) { s = string(n, ' '); if (n) __is_copy(&s[0]); } return *this; }
    istream& operator>>(char* s) { string word; *this >> word; strcpy(s, word.c_str()); return *this; }
    int get() { char c; if (__is_word(_id, 2) > 0) { __is_copy(&c); return (unsigned char)c; } return -1; }
    istream& read(char* to, long n) { for (_read = 0; _read < n; ++_read) { if (__is_word(_id, 2) <= 0) break; __is_copy(to + _read); } return *this; }
    istream& get(char& c) { int g = get(); if (g >= 0) c = (char)g; return *this; }
    istream& getline(char* to, long n, char stop = '\n') { _read = 0; int c = get(); while (c >= 0 && c != stop && _read + 1 < n) { to[_read++] = (char)c; c = get(); } to[_read] = 0; if (_read) __is_mend(_id); return *this; }
    int peek() { return __is_at(_id, -2, 0); }
    long tellg() { return __is_at(_id, -1, 0); }
    istream& seekg(long n, int from = 0) { __is_at(_id, n, from); return *this; }
    void clear() { __is_mend(_id); }
    long gcount() const { return _read; }
    istream& ignore(long n = 1, int c = -1) { while (n-- > 0) { int g = get(); if (g < 0 || g == c) break; } return *this; }
    bool good() const { return __is_good(_id); }
    bool fail() const { return !__is_good(_id); }
    bool eof() const { return !__is_good(_id); }
    operator bool() const { return __is_good(_id); }
    bool operator!() const { return !__is_good(_id); }
};
istream& getline(istream& in, string& s) { long n = __is_word(in._id, 1); if (n >= 0) { s = string(n, ' '); if (n) __is_copy(&s[0]); } else s = ""; return in; }
istream& getline(istream& in, string& s, char stop) { s = ""; int c = in.get(); if (c < 0) return in; while (c >= 0 && c != stop) { s.push_back((char)c); c = in.get(); } __is_mend(in._id); return in; }
ostream cout(1);
ostream cerr(2);
ostream clog(2);
istream cin(0);
class ostringstream : public ostream { public: ostringstream() : ostream(__os_new()) {}
    string str() const { size_t n = __os_size(_id); string s(n, ' '); if (n) __os_copy(_id, &s[0]); return s; }
    void str(const string& s) { __os_clear(_id, s.c_str(), s.size()); } };
class istringstream : public istream { public: istringstream(const string& s) : istream(__is_new(s.c_str(), s.size())) {} };
class stringstream : public ostream { public: istream _in; stringstream() : ostream(__os_new()), _in(-1) {} stringstream(const string& s) : ostream(__os_new()), _in(__is_new(s.c_str(), s.size())) { __os_clear(_id, s.c_str(), s.size()); }
    string str() const { size_t n = __os_size(_id); string s(n, ' '); if (n) __os_copy(_id, &s[0]); return s; }
    template <class T> istream& operator>>(T& v) { if (_in._id < 0) { string s = str(); _in._id = __is_new(s.c_str(), s.size()); } return _in >> v; } };
istream& getline(stringstream& in, string& s, char stop) { if (in._in._id < 0) { string t = in.str(); in._in._id = __is_new(t.c_str(), t.size()); } return getline(in._in, s, stop); }
istream& getline(stringstream& in, string& s) { if (in._in._id < 0) { string t = in.str(); in._in._id = __is_new(t.c_str(), t.size()); } return getline(in._in, s); }
class ofstream : public ostream { public: bool _open; ofstream() : ostream(__os_new()), _open(false) {}
    ofstream(const string& name, int mode = 2) : ostream(__os_new()) { _open = __os_file(_id, name.c_str(), mode & 4); }
    ofstream(const char* name, int mode = 2) : ostream(__os_new()) { _open = __os_file(_id, name, mode & 4); }
    void open(const string& name, int mode = 2) { _open = __os_file(_id, name.c_str(), mode & 4); }
    bool is_open() const { return _open; } void close() {} operator bool() const { return _open; } bool operator!() const { return !_open; } };
class ifstream : public istream { public: static const int beg = 0; static const int cur = 1; static const int end = 2; ifstream() : istream(-1) {} ifstream(const string& name, int mode = 1) : istream(__is_file(name.c_str())) {}
    ifstream(const char* name, int mode = 1) : istream(__is_file(name)) {}
    void open(const string& name, int mode = 1) { _id = __is_file(name.c_str()); }
    bool is_open() const { return _id >= 0; } void close() {} operator bool() const { return _id >= 0 && __is_good(_id); } bool operator!() const { return _id < 0 || !__is_good(_id); } };
class iostream : public ostream, public istream { public: iostream(int o, int i) : ostream(o), istream(i) {} };
class fstream : public iostream { public: bool _open; bool _reads;
    fstream() : iostream(__os_new(), -1), _open(false), _reads(false) {}
    fstream(const string& name, int mode = 3) : iostream(__os_new(), -1), _open(false), _reads(false) { open(name, mode); }
    fstream(const char* name, int mode = 3) : iostream(__os_new(), -1), _open(false), _reads(false) { open(name, mode); }
    void open(const string& name, int mode = 3) { _reads = (mode & 1) && !(mode & 20);
        if (_reads) { this->istream::_id = __is_file(name.c_str()); _open = this->istream::_id >= 0; __os_file(this->ostream::_id, name.c_str(), 8); }
        else _open = __os_file(this->ostream::_id, name.c_str(), mode & 4); }
    void close() { _open = false; } bool is_open() const { return _open; }
    bool good() const { return _open && (!_reads || __is_good(this->istream::_id)); } bool fail() const { return !good(); } bool eof() const { return _reads && !__is_good(this->istream::_id); }
    operator bool() const { return good(); } bool operator!() const { return !good(); } };
}
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
