// OpenCV's Mat of bytes and floats, images read and written (PNG, PNM, BMP); windows are not shown.
#define CV_8U 0
#define CV_32S 4
#define CV_32F 5
#define CV_64F 6
#define CV_8UC1 0
#define CV_8UC3 16
#define CV_8UC4 24
#define CV_32FC1 5
#define CV_32FC3 21
#define CV_32SC1 4
#define CV_64FC1 6
#define CV_LOAD_IMAGE_COLOR 1
#define CV_LOAD_IMAGE_GRAYSCALE 0
#define CV_BGR2GRAY 6
#define CV_RGB2GRAY 7
#define CV_BGR2RGBA 2
#define CV_RGBA2BGR 3
#define CV_BGR2RGB 4
#define CV_GRAY2BGR 8
#define CV_RGBA2BGRA 5
#define CV_WINDOW_AUTOSIZE 1
namespace cv {
typedef unsigned char uchar;
typedef std::string String;
enum ImreadModes { IMREAD_UNCHANGED = -1, IMREAD_GRAYSCALE = 0, IMREAD_COLOR = 1 };
enum ColorConversionCodes { COLOR_BGR2RGB = 4, COLOR_RGB2BGR = 4, COLOR_BGR2GRAY = 6, COLOR_RGB2GRAY = 7, COLOR_GRAY2BGR = 8, COLOR_GRAY2RGB = 8, COLOR_BGR2BGRA = 0, COLOR_BGR2RGBA = 2, COLOR_RGBA2BGRA = 5, COLOR_RGBA2BGR = 3, COLOR_BGRA2RGB = 3, COLOR_BGRA2BGR = 1, COLOR_RGBA2GRAY = 11 };
enum WindowFlags { WINDOW_NORMAL = 0, WINDOW_AUTOSIZE = 1 };
template <class T, int N> struct Vec { T val[N]; Vec() { for (int i = 0; i < N; ++i) val[i] = T(); } T& operator[](int i) { return val[i]; } const T& operator[](int i) const { return val[i]; } };
typedef Vec<unsigned char, 3> Vec3b; typedef Vec<unsigned char, 4> Vec4b; typedef Vec<float, 3> Vec3f; typedef Vec<int, 3> Vec3i;
struct Size { int width, height; Size() : width(0), height(0) {} Size(int w, int h) : width(w), height(h) {} int area() const { return width * height; } };
struct Point { int x, y; Point() : x(0), y(0) {} Point(int a, int b) : x(a), y(b) {} };
struct Scalar { double val[4]; Scalar(double a = 0, double b = 0, double c = 0, double d = 0) { val[0] = a; val[1] = b; val[2] = c; val[3] = d; } static Scalar all(double v) { return Scalar(v, v, v, v); } double operator[](int i) const { return val[i]; } };
struct __step { size_t _n; operator size_t() const { return _n; } size_t operator[](int i) const { return _n; } };
struct Mat {
    int rows, cols, _type; unsigned char* data; __step step; int* _users;
    void _take(int r, int c, int t) { rows = r; cols = c; _type = t; step._n = c * elemSize(); size_t n = r * step._n; data = (unsigned char*)__vector_memory(n); __vector_size(data, 0, n); memset(data, 0, n); _users = (int*)__vector_memory(4); __vector_size(_users, 0, 4); *_users = 1; }
    void release() { if (_users && --*_users == 0) { __vector_free(data); __vector_free(_users); } data = nullptr; _users = nullptr; rows = 0; cols = 0; }
    void _share(const Mat& o) { rows = o.rows; cols = o.cols; _type = o._type; data = o.data; step._n = o.step._n; _users = o._users; if (_users) ++*_users; }
    Mat() : rows(0), cols(0), _type(0), data(nullptr), _users(nullptr) { step._n = 0; }
    Mat(int r, int c, int t) { _take(r, c, t); }
    Mat(int r, int c, int t, const Scalar& v) { _take(r, c, t); setTo(v); }
    Mat(Size s, int t) { _take(s.height, s.width, t); }
    Mat(Size s, int t, const Scalar& v) { _take(s.height, s.width, t); setTo(v); }
    Mat(int r, int c, int t, void* p, size_t n = 0) : rows(r), cols(c), _type(t), data((unsigned char*)p), _users(nullptr) { step._n = n ? n : c * elemSize(); }
    Mat(const Mat& o) { _share(o); }
    ~Mat() { release(); }
    Mat& operator=(const Mat& o) { if (this != &o) { release(); _share(o); } return *this; }
    void create(int r, int c, int t) { release(); _take(r, c, t); }
    void create(Size s, int t) { create(s.height, s.width, t); }
    int type() const { return _type; }
    int depth() const { return _type & 7; }
    int channels() const { return (_type >> 3) + 1; }
    size_t elemSize1() const { int d = _type & 7; return d < 2 ? 1 : d < 4 ? 2 : d < 6 ? 4 : 8; }
    size_t elemSize() const { return elemSize1() * channels(); }
    size_t total() const { return (size_t)rows * cols; }
    bool empty() const { return data == nullptr || rows * cols == 0; }
    bool isContinuous() const { return true; }
    Size size() const { return Size(cols, rows); }
    size_t step1() const { return step._n / elemSize1(); }
    template <class T> T& at(int r, int c) { return ((T*)(data + r * step._n))[c]; }
    template <class T> const T& at(int r, int c) const { return ((T*)(data + r * step._n))[c]; }
    template <class T> T& at(int i) { return ((T*)data)[i]; }
    template <class T> T* ptr(int r = 0) { return (T*)(data + r * step._n); }
    template <class T> const T* ptr(int r = 0) const { return (T*)(data + r * step._n); }
    unsigned char* ptr(int r = 0) { return data + r * step._n; }
    Mat clone() const { Mat m(rows, cols, _type); memcpy(m.data, data, rows * step._n); return m; }
    void copyTo(Mat& m) const { m = clone(); }
    void setTo(const Scalar& v) { int n = channels(); for (int r = 0; r < rows; ++r) for (int c = 0; c < cols * n; ++c) _put(r, c, v.val[c % n]); }
    double _get(int r, int c) const { unsigned char* p = data + r * step._n; int d = _type & 7; return d == 0 ? p[c] : d == 4 ? ((int*)p)[c] : d == 5 ? ((float*)p)[c] : ((double*)p)[c]; }
    void _put(int r, int c, double v) { unsigned char* p = data + r * step._n; int d = _type & 7; if (d == 0) p[c] = v < 0 ? 0 : v > 255 ? 255 : (unsigned char)rint(v); else if (d == 4) ((int*)p)[c] = (int)rint(v); else if (d == 5) ((float*)p)[c] = (float)v; else ((double*)p)[c] = v; }
    void convertTo(Mat& m, int t, double a = 1, double b = 0) const { Mat k(rows, cols, (t & 7) | (_type & ~7)); for (int r = 0; r < rows; ++r) for (int c = 0; c < cols * channels(); ++c) k._put(r, c, _get(r, c) * a + b); m = k; }
    Mat& _each(double a, double b) { for (int r = 0; r < rows; ++r) for (int c = 0; c < cols * channels(); ++c) _put(r, c, _get(r, c) * a + b); return *this; }
    Mat& operator*=(double v) { return _each(v, 0); }
    Mat& operator/=(double v) { return _each(1 / v, 0); }
    Mat& operator+=(double v) { return _each(1, v); }
    Mat& operator-=(double v) { return _each(1, -v); }
    Mat& _with(const Mat& o, double a) { for (int r = 0; r < rows; ++r) for (int c = 0; c < cols * channels(); ++c) _put(r, c, _get(r, c) + a * o._get(r, c)); return *this; }
    Mat& operator+=(const Mat& o) { return _with(o, 1); }
    Mat& operator-=(const Mat& o) { return _with(o, -1); }
    static Mat zeros(int r, int c, int t) { return Mat(r, c, t); }
    static Mat zeros(Size s, int t) { return Mat(s, t); }
    static Mat ones(int r, int c, int t) { return Mat(r, c, t, Scalar(1)); }
};
Mat operator*(const Mat& m, double v) { Mat k = m.clone(); k *= v; return k; }
Mat operator*(double v, const Mat& m) { return m * v; }
Mat operator/(const Mat& m, double v) { Mat k = m.clone(); k /= v; return k; }
Mat operator+(const Mat& m, double v) { Mat k = m.clone(); k += v; return k; }
Mat operator-(const Mat& m, double v) { Mat k = m.clone(); k -= v; return k; }
Mat operator+(const Mat& m, const Mat& o) { Mat k = m.clone(); k += o; return k; }
Mat operator-(const Mat& m, const Mat& o) { Mat k = m.clone(); k -= o; return k; }
Mat imread(const std::string& name, int mode = 1) {
    int w, h, n; Mat m;
    if (!__image_open(name.c_str(), &w, &h, &n)) return m;
    int k = mode == 0 ? 1 : mode == 1 ? 3 : n;
    m.create(h, w, (k - 1) * 8);
    __image_take(m.data, k, 0);
    if (k >= 3) for (size_t i = 0; i < m.total(); ++i) std::swap(m.data[i * k], m.data[i * k + 2]);
    return m;
}
bool imwrite(const std::string& name, const Mat& m) {
    Mat k = m.clone(); int n = k.channels();
    if (n >= 3) for (size_t i = 0; i < k.total(); ++i) std::swap(k.data[i * n], k.data[i * n + 2]);
    return __image_write(name.c_str(), k.cols, k.rows, n, k.data, 0, 2, 0);
}
void cvtColor(const Mat& from, Mat& to, int code, int channels = 0) {
    int n = from.channels(), k = code == 6 || code == 7 || code == 11 ? 1 : code == 8 || code == 3 || code == 1 ? 3 : code == 0 || code == 2 ? 4 : n;
    Mat m(from.rows, from.cols, (k - 1) * 8 + from.depth());
    for (int r = 0; r < m.rows; ++r) for (int c = 0; c < m.cols; ++c) {
        double a = from._get(r, c * n), b = n > 1 ? from._get(r, c * n + 1) : a, d = n > 2 ? from._get(r, c * n + 2) : a;
        if (k == 1) m._put(r, c, code == 6 ? 0.114 * a + 0.587 * b + 0.299 * d : 0.299 * a + 0.587 * b + 0.114 * d);
        else { bool turned = code == 2 || code == 3 || code == 4 || code == 5; m._put(r, c * k, turned ? d : a); m._put(r, c * k + 1, b); m._put(r, c * k + 2, turned ? a : d); if (k == 4) m._put(r, c * k + 3, n == 4 ? from._get(r, c * n + 3) : 255); }
    }
    to = m;
}
void resize(const Mat& from, Mat& to, Size size, double fx = 0, double fy = 0, int how = 1) {
    Size s = size.area() ? size : Size((int)(from.cols * fx), (int)(from.rows * fy)); int n = from.channels();
    Mat m(s.height, s.width, from.type());
    for (int r = 0; r < s.height; ++r) for (int c = 0; c < s.width * n; ++c) m._put(r, c, from._get((int)((long)r * from.rows / s.height), (int)((long)(c / n) * from.cols / s.width) * n + c % n));
    to = m;
}
void absdiff(const Mat& a, const Mat& b, Mat& to) { Mat m(a.rows, a.cols, a.type()); for (int r = 0; r < a.rows; ++r) for (int c = 0; c < a.cols * a.channels(); ++c) m._put(r, c, fabs(a._get(r, c) - b._get(r, c))); to = m; }
int countNonZero(const Mat& a) { int n = 0; for (int r = 0; r < a.rows; ++r) for (int c = 0; c < a.cols; ++c) if (a._get(r, c) != 0) ++n; return n; }
void imshow(const std::string& name, const Mat& m) {}
void namedWindow(const std::string& name, int flags = 1) {}
void resizeWindow(const std::string& name, int w, int h) {}
void moveWindow(const std::string& name, int x, int y) {}
int waitKey(int ms = 0) { return 27; }
void destroyAllWindows() {}
void destroyWindow(const std::string& name) {}
long getTickCount() { return __now_ns(); }
double getTickFrequency() { return 1e9; }
}
typedef unsigned char uchar;
