// std::filesystem over the folders and files that the program may see.
namespace std { namespace filesystem {
struct path {
    string _s;
    path() {}
    path(const char* s) : _s(s) {}
    path(const string& s) : _s(s) {}
    const string& string() const { return _s; }
    const char* c_str() const { return _s.c_str(); }
    operator std::string() const { return _s; }
    bool empty() const { return _s.empty(); }
    long _slash() const { return (long)_s.rfind('/'); }
    long _dot() const { long d = (long)_s.rfind('.'); return d > _slash() + 1 ? d : (long)_s.size(); }
    path filename() const { return path(_s.substr(_slash() + 1)); }
    path parent_path() const { return path(_slash() > 0 ? _s.substr(0, _slash()) : std::string(_slash() == 0 ? "/" : "")); }
    path stem() const { return path(_s.substr(_slash() + 1, _dot() - _slash() - 1)); }
    path extension() const { return path(_s.substr(_dot())); }
    bool has_extension() const { return _dot() < (long)_s.size(); }
    path& replace_extension(const path& e) { _s = _s.substr(0, _dot()); if (!e.empty()) { if (e._s[0] != '.') _s += "."; _s += e._s; } return *this; }
    path& operator/=(const path& o) { if (!o._s.empty() && o._s[0] == '/') _s = o._s; else { if (!_s.empty() && _s[_s.size() - 1] != '/') _s += "/"; _s += o._s; } return *this; }
    path& operator+=(const path& o) { _s += o._s; return *this; }
    bool operator==(const path& o) const { return _s == o._s; }
    bool operator!=(const path& o) const { return _s != o._s; }
    bool operator<(const path& o) const { return _s < o._s; }
};
path operator/(const path& a, const path& b) { path p(a); p /= b; return p; }
ostream& operator<<(ostream& o, const path& p) { return o << '"' << p._s << '"'; }
long __kind(const path& p) { long size = 0; return __file_kind(p.c_str(), &size); }
bool exists(const path& p) { return __kind(p) >= 0; }
bool is_directory(const path& p) { return __kind(p) == DT_DIR; }
bool is_regular_file(const path& p) { return __kind(p) == DT_REG; }
unsigned long file_size(const path& p) { long size = 0; __file_kind(p.c_str(), &size); return (unsigned long)size; }
bool create_directory(const path& p) { return __make_folder(p.c_str()) == 0; }
bool create_directories(const path& p) { if (p.empty() || exists(p)) return false; create_directories(p.parent_path()); return create_directory(p); }
bool remove(const path& p) { return ::remove(p.c_str()) == 0; }
path current_path() { return path("."); }
path absolute(const path& p) { return p; }
struct directory_entry {
    path _p; long _kind;
    const filesystem::path& path() const { return _p; }
    operator const filesystem::path&() const { return _p; }
    bool is_regular_file() const { return _kind == DT_REG; }
    bool is_directory() const { return _kind == DT_DIR; }
    bool exists() const { return true; }
    unsigned long file_size() const { return filesystem::file_size(_p); }
};
struct directory_iterator {
    vector<directory_entry> _all;
    directory_iterator(const path& p) {
        DIR* d = opendir(p.c_str());
        if (!d) throw runtime_error("filesystem error: directory iterator cannot open directory: No such file or directory [" + p._s + "]");
        while (struct dirent* e = readdir(d)) { std::string name(e->d_name); if (name != "." && name != "..") { directory_entry one; one._p = p / path(name); one._kind = e->d_type; _all.push_back(one); } }
        closedir(d);
    }
    directory_entry* begin() { return _all.data(); }
    directory_entry* end() { return _all.data() + _all.size(); }
};
} }
