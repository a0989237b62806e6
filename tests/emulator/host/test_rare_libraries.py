"""Parts of the libraries that few programs use, parsed only if they are named."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import datetime

import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(2)  # each program is compiled in a process, 0.2 to 2 s

STANDARD = r"""
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <math.h>
#include <errno.h>
#include <ctype.h>
#include <algorithm>
#include <vector>
#include <numeric>
#include <complex>
#include <type_traits>
#include <functional>
#include <iterator>
#include <sys/time.h>
static int cmp(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }
template <class T> typename std::enable_if<std::is_floating_point<T>::value, T>::type halve(T x) { return x / 2; }
template <class T> typename std::conditional<std::is_integral<T>::value, long, double>::type wide(T x) { return x; }
int main() {
  errno = 0; if (errno == ERANGE) return 1;
  double w; int e; double q = modf(3.75, &w); printf("%g %g ", q, w); q = frexp(48.0, &e); printf("%g %d ", q, e); printf("%lld %g %g\n", llround(2.5), remainder(5.0, 3.0), nan("") != nan("") ? 1.0 : 0.0);
  div_t d = div(17, 5); printf("%d %d\n", d.quot, d.rem);
  int a[] = {1, 3, 5, 7, 9}, k = 7; int* f = (int*)bsearch(&k, a, 5, sizeof(int), cmp); printf("%ld\n", (long)(f - a));
  char t[40] = "ab"; strncat(t, "cdef", 2); printf("%s %d %zu %zu\n", t, strncasecmp("ABc", "abd", 2), strspn("aab", "a"), strcspn("xyz,", ","));
  char line[] = "one two,three"; char* rest; for (char* p = strtok_r(line, " ,", &rest); p; p = strtok_r(NULL, " ,", &rest)) printf("[%s]", p); printf("\n");
  printf("%d %d %s %s\n", ispunct('!') != 0, isxdigit('g') != 0, (char*)memchr("hello", 'l', 5), strpbrk("hello", "ol"));
  std::vector<int> v = {5, 2, 8, 1, 9, 3}; std::nth_element(v.begin(), v.begin() + 2, v.end()); printf("%d\n", v[2]);
  std::sort(v.begin(), v.end()); printf("%d %d\n", (int)std::binary_search(v.begin(), v.end(), 8), (int)(std::upper_bound(v.begin(), v.end(), 5) - v.begin()));
  auto mm = std::minmax_element(v.begin(), v.end()); printf("%d %d\n", *mm.first, *mm.second);
  std::rotate(v.begin(), v.begin() + 2, v.end()); for (int x : v) printf("%d ", x); printf("\n");
  v.erase(std::remove_if(v.begin(), v.end(), [](int x) { return x % 2 == 0; }), v.end()); for (int x : v) printf("%d ", x); printf("\n");
  std::vector<int> o; std::copy_if(v.begin(), v.end(), std::back_inserter(o), [](int x) { return x > 2; }); printf("%zu\n", o.size());
  int p[] = {1, 2, 3}; do printf("%d%d%d ", p[0], p[1], p[2]); while (std::next_permutation(p, p + 3)); printf("\n");
  std::vector<int> m(6); int x1[] = {1, 4, 6}, x2[] = {2, 4, 5}; std::merge(x1, x1 + 3, x2, x2 + 3, m.begin()); for (int x : m) printf("%d ", x); printf("\n");
  std::complex<double> z(1, 2), y = z * z + 2.0 * z; printf("%g %g %g\n", y.real(), y.imag(), std::abs(std::complex<float>(3, 4)));
  printf("%g %d %d\n", halve(3.0), (int)sizeof(wide(3)), (int)std::is_same<int, int>::value);
  std::vector<int> s(3); std::exclusive_scan(x1, x1 + 3, s.begin(), 0); printf("%d %d %d %d\n", s[0], s[1], s[2], std::logical_and<bool>()(true, false));
  timeval t1 = {5, 100}, t2 = {3, 200}, t3; timersub(&t1, &t2, &t3); printf("%ld %ld ", t3.tv_sec, t3.tv_usec); timeradd(&t3, &t2, &t3); printf("%ld %ld %d %d ", t3.tv_sec, t3.tv_usec, timercmp(&t3, &t2, >), timercmp(&t3, &t1, !=)); timerclear(&t3); printf("%d %d\n", timerisset(&t3), timerisset(&t1));
  return 0;
}
"""
# as g++ -std=c++17 has it
PRINTED = """\
0.75 3 0.75 6 3 -1 1
3 2
3
abcd 0 2 3
[one][two][three]
1 0 llo llo
3
1 4
1 9
3 5 8 9 1 2
3 5 9 1
3
123 132 213 231 312 321
1 2 4 4 5 6
-1 8 5
1.5 8 1
0 1 5 0
1 999900 5 100 1 0 0 1
"""
OF_THE_CARD = r"""
#include <cufft.h>
#include <cub/cub.cuh>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/reduce.h>
#include <thrust/copy.h>
#include <opencv2/opencv.hpp>
#include <cuda.h>
#include <cstdio>
__global__ void k(const int* a, int* r) { typedef cub::BlockReduce<int, 64> R; __shared__ typename R::TempStorage t; int s = R(t).Sum(a[threadIdx.x]); if (threadIdx.x == 0) *r = s; }
int main() {
  cufftHandle p; cufftComplex h[8], *d; for (int i = 0; i < 8; ++i) { h[i].x = i; h[i].y = 0; }
  cudaMalloc(&d, sizeof(h)); cudaMemcpy(d, h, sizeof(h), cudaMemcpyHostToDevice);
  cufftPlan1d(&p, 8, CUFFT_C2C, 1); cufftExecC2C(p, d, d, CUFFT_FORWARD); cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost); cufftDestroy(p); cudaFree(d);
  printf("%.3f %.3f %.3f\n", h[0].x, h[1].x, h[1].y);
  int a[64], *da, *dr, r; for (int i = 0; i < 64; ++i) a[i] = i; cudaMalloc(&da, sizeof(a)); cudaMalloc(&dr, 4); cudaMemcpy(da, a, sizeof(a), cudaMemcpyHostToDevice);
  void* t = 0; size_t n = 0; cub::DeviceReduce::Sum(t, n, da, dr, 64); cudaMalloc(&t, n); cub::DeviceReduce::Sum(t, n, da, dr, 64); cudaMemcpy(&r, dr, 4, cudaMemcpyDeviceToHost); printf("%d\n", r);
  k<<<1, 64>>>(da, dr); cudaMemcpy(&r, dr, 4, cudaMemcpyDeviceToHost); printf("%d\n", r); cudaFree(t);
  thrust::device_vector<int> v(10); thrust::sequence(v.begin(), v.end()); printf("%d\n", thrust::reduce(thrust::device, v.begin(), v.end(), 0, thrust::plus<int>()));
  thrust::device_vector<int> w(10); auto e = thrust::copy_if(v.begin(), v.end(), w.begin(), [] __device__ (int x) { return x % 2 == 0; }); printf("%d\n", (int)(e - w.begin()));
  cv::Mat m = cv::imread("none.png", cv::IMREAD_COLOR); if (m.empty()) { m = cv::Mat(4, 6, CV_8UC3, cv::Scalar(10, 20, 30)); }
  cv::Mat g; cv::cvtColor(m, g, cv::COLOR_BGR2GRAY); printf("%d %d %d %d\n", g.rows, g.cols, g.channels(), (int)g.at<uchar>(1, 1)); cv::Vec3b q = m.at<cv::Vec3b>(0, 0); printf("%d\n", q[2]);
  CUdevice dev; cuInit(0); cuDeviceGet(&dev, 0); char name[64]; cuDeviceGetName(name, 64, dev); printf("%s\n", name);
  cudaFree(da); cudaFree(dr); return 0;
}
"""
GIVEN_TO_KERNELS = r"""
#include <cstdio>
template <class F> __global__ void apply(float* a, int n, F f) { int i = threadIdx.x; if (i < n) a[i] = f(a[i]); }
__global__ void twice(void* data) { float* p = (float*)data; p[threadIdx.x] *= 2; }
int main() {
  float h[4] = {1, 2, 3, 4}, by = 3; void* d; cudaMalloc(&d, 16); cudaMemcpy(d, h, 16, cudaMemcpyHostToDevice);
  apply<<<1, 4>>>((float*)d, 4, [=] __device__ (float x) { return x * by; }); twice<<<1, 4>>>(d);
  cudaMemcpy(h, d, 16, cudaMemcpyDeviceToHost); printf("%g %g\n", h[0], h[3]); cudaFree(d); return 0;
}
"""


def run(folder, text):
    path = folder / "program.cu"
    path.write_text(text)
    report = run_program(path, [], Options(), capture=True)
    assert (report.ended, report.faults) == ("exit", []), report.message
    return "".join(line.rstrip() + "\n" for line in (report.output or "").splitlines())


def test_c_and_the_standard_library(tmp_path):
    assert run(tmp_path, STANDARD) == PRINTED


def test_fft_cub_thrust_images_and_the_driver(tmp_path):
    lines = run(tmp_path, OF_THE_CARD).splitlines()
    assert lines == ["28.000 -4.000 9.657", "2016", "2016", "45", "5", "4 6 1 22", "30", "Tesla T4"]


def test_a_lambda_and_void_pointers_in_a_kernel(tmp_path):
    assert run(tmp_path, GIVEN_TO_KERNELS) == "6 24\n"


def test_missing_unused_and_backslashed_headers(tmp_path):
    """<vector> and <string>, which other headers include; an unused <sys/mman.h>; backslashes in paths."""
    path = tmp_path / "program.cu"
    path.write_text(
        "#include <cstdio>\n#include <sys/mman.h>\n#include <thrust\\host_vector.h>\nusing namespace std;\n"
        "struct Square : public std::unary_function<float, float> { float operator()(float x) const { return x * x; } };\n"
        'int main() { vector<int> v(3, 2); std::string s = "a"; cout << v[1] << s << endl; cudaDeviceProp p;\n'
        "  cudaGetDeviceProperties(&p, 0); if (p.computeMode == cudaComputeModeProhibited) return 1;\n"
        '  thrust::host_vector<int> h(4); h[0] = 5; printf("%g %d\\n", Square()(3), h[0]); return 0; }\n'
    )
    report = run_program(path, [], Options(), capture=True)
    assert (report.output, report.faults) == ("2a\n9 5\n", [])
    assert [note for note in report.notes if "<iostream> is not included" in note]
    path.write_text("#include <nosuch/library.h>\nint main() { nosuch_handle h; return 0; }\n")
    refused = run_program(path, [], Options(), capture=True)
    assert refused.ended == "refused"
    assert "<nosuch/library.h>: not among the headers that are known here" in refused.message


def test_arithmetic_of_opencvs_mat(tmp_path):
    path = tmp_path / "program.cu"
    path.write_text(
        "#include <opencv2/opencv.hpp>\n#include <stdio.h>\nint main() { cv::Mat m(2, 3, CV_32FC1, cv::Scalar(6));\n"
        '  m /= 3.f; cv::Mat k = m * 2 + 1; k -= m; printf("%g %g\\n", k.at<float>(1, 2), m.at<float>(0, 0)); return 0; }\n'
    )
    report = run_program(path, [], Options(), capture=True)
    assert (report.output, report.faults) == ("3 2\n", [])


def test_variadic_macros_without_arguments(tmp_path):
    """`, ##__VA_ARGS__` removes the comma; ## with an empty argument gives the other one."""
    text = r"""
#include <stdio.h>
#define CHECK(A, M, ...) check((A), (M), ##__VA_ARGS__)
#define JOIN(a, b) a##b
int check(int a, const char* m, ...) { printf("%d %s", a, m); return a; }
int main() { int* p = NULL; int xy = 7; if (CHECK(p == NULL, "x\n")) printf("y\n"); CHECK(0, "z\n", 3);
  printf("%d %d %d %d\n", JOIN(x, y), JOIN(xy,), JOIN(,xy), JOIN(1, 2)); return 0; }
""".replace("\\\\", "\\")
    assert run(tmp_path, text) == "1 x\ny\n0 z\n7 7 7 12\n"


def test_device_vectors_are_filled_and_copied(tmp_path):
    text = r"""
#include <cstdio>
#include <thrust/device_vector.h>
int main() { thrust::device_vector<int> a(1000, 7); a.resize(1003, 9); thrust::device_ptr<int> p = a.data();
  thrust::device_vector<int> b(p + 1, p + 1003); int s = 0; for (int i = 0; i < 1002; i++) s += b[i]; printf("%d %d\n", s, (int)b.size()); return 0; }
"""
    assert run(tmp_path, text.replace("\\\\", "\\")) == "7020 1002\n"


def test_variable_length_arrays_with_two_dimensions(tmp_path):
    """As g++ prints it; an access past the last row is reported."""
    text = r"""
#include <stdio.h>
#include <string.h>
float sum(float* p, int n) { float s = 0; for (int i = 0; i < n; i++) s += p[i]; return s; }
int main() { int n = 3, m = 20; float a[n][m], b[n][m]; for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) a[i][j] = i * m + j;
  memcpy(b, a, sizeof(a)); b[1][2] += 0.5f; float s = 0; for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) s += b[i][j];
  int c[n][4]; for (int i = 0; i < n; i++) for (int j = 0; j < 4; j++) c[i][j] = i - j;
  printf("%g %zu %zu %g %g %g %d\n", a[2][19], sizeof(a), sizeof(a[0]), s, sum(a[1], m), *(&a[0][0] + 3), c[2][1]); return 0; }
"""
    assert run(tmp_path, text) == "59 240 80 1770.5 590 3 1\n"
    path = tmp_path / "beyond.cu"
    path.write_text(
        "int main() { int n = 3; float a[n][n]; for (int i = 0; i < n; i++) for (int j = 0; j <= n; j++)\na[i][j] = 1; return 0; }\n"
    )
    report = run_program(path, [], Options(), capture=True)
    assert [(f.kind.value, f.place.line) for f in report.faults if f.place is not None] == [("out-of-bounds", 2)]


LIBCUXX = r"""
#include <cstdio>
#include <vector>
#include <cuda/std/functional>
#include <cuda/std/limits>
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
__global__ void k(float* o) { o[0] = cuda::std::numeric_limits<float>::max(); o[1] = cuda::std::min(3.0f, 2.0f); }
int main() { thrust::device_vector<float> d(4, 1.5f); printf("%g\n", thrust::reduce(d.begin(), d.end(), 0.0f, cuda::std::plus<float>()));
 float h[2], *o; cudaMalloc(&o, 8); k<<<1, 1>>>(o); cudaMemcpy(h, o, 8, cudaMemcpyDeviceToHost); printf("%g %g\n", h[0], h[1]); cudaFree(o);
 cudaMemLocation where{}; where.type = cudaMemLocationTypeDevice; where.id = 0; float* m; cudaMallocManaged(&m, 64); m[0] = 2; cudaMemPrefetchAsync(m, 64, where, 0, 0); cudaMemAdvise(m, 64, cudaMemAdviseSetReadMostly, where); printf("%g\n", m[0]); cudaFree(m); }
"""


def test_names_of_libcuxx_and_address_spaces(tmp_path):
    path = tmp_path / "program.cu"
    path.write_text(LIBCUXX)
    report = run_program(path, capture=True)
    assert (report.output, report.findings) == ("6\n3.40282e+38 2\n2\n", []), report.message


ORDERED = r"""
#include <cstdio>
#include <set>
#include <map>
#include <string>
#include <unordered_map>
#include <string_view>
#include <numeric>
#include <vector>
struct P { int x, y; bool operator==(const P& o) const { return x == o.x && y == o.y; } };
struct H { size_t operator()(const P& p) const { return p.x * 31 + p.y; } };
struct ByLen { bool operator()(const std::string& a, const std::string& b) const { return a.size() < b.size(); } };
int main() {
  std::set<int, std::greater<int>> s{1, 5, 3}; for (int v : s) printf("%d ", v); puts("");
  std::map<std::string, int, ByLen> m; m["abc"] = 1; m["z"] = 2; m["xyz"] = 7; for (auto& [k, v] : m) printf("%s=%d ", k.c_str(), v); puts("");
  auto cmp = [](int a, int b) { return a % 10 < b % 10; };
  std::set<int, decltype(cmp)> t(cmp); t.insert(19); t.insert(21); t.insert(9); for (int v : t) printf("%d ", v); puts("");
  std::string_view sv = "hello"; printf("%zu\n", sv.size());
  std::vector<double> d{1.5, 2, 3}; printf("%g\n", std::accumulate(d.begin(), d.end(), 1.0, std::multiplies<>{}));
  printf("%g\n", std::inner_product(d.begin(), d.end(), d.begin(), 0.0));
  auto it = m.upper_bound("aa"); printf("%s\n", it->first.c_str());
  (void)m; (void)t; static_cast<void>(s);
  for (auto r = s.rbegin(); r != s.rend(); ++r) printf("%d ", *r); puts("");
}
#include <algorithm>
#include <array>
struct Row { int key, at; };
struct Test { Test() {
  std::vector<Row> v; for (int i = 0; i < 100000; ++i) v.push_back({(i * 7919) % 1013, i});
  std::stable_sort(v.begin(), v.end(), [](const Row& a, const Row& b) { return a.key < b.key; });
  bool ok = true; for (size_t i = 1; i < v.size(); ++i) ok &= v[i-1].key < v[i].key || (v[i-1].key == v[i].key && v[i-1].at < v[i].at);
  std::vector<int> w{3, 1, 2}; std::sort(w.rbegin(), w.rend()); std::string s = "abc", r(s.rbegin(), s.rend()); std::array<int, 3> q{1, 2, 3};
  auto f = std::lower_bound(v.begin(), v.end(), 500, [](const Row& a, int k) { return a.key < k; });
  printf("%d %d%d%d %s %d %d\n", ok, w[0], w[1], w[2], r.c_str(), *q.rbegin(), f->key);
  std::vector<double> z(v.size()); std::iota(z.rbegin(), z.rend(), 0); std::stable_sort(z.begin(), z.end()); printf("%g %g\n", z[0], z.back());
} } test;
"""
# as g++ -std=c++17 has it
ORDERED_PRINTED = """\
1 321 cba 3 500
0 99999
5 3 1
z=2 abc=7
21 19
5
9
15.25
abc
1 3 5
"""
BY_KEY = r"""
#include <thrust/device_vector.h>
#include <thrust/sort.h>
#include <thrust/binary_search.h>
#include <thrust/host_vector.h>
#include <thrust/execution_policy.h>
#include <cstdio>
int main() {
  int n = 20000; thrust::host_vector<int> k(n); thrust::host_vector<float> v(n);
  for (int i = 0; i < n; i++) { k[i] = (i * 7919LL) % 10007; v[i] = i; }
  thrust::device_vector<int> dk = k; thrust::device_vector<float> dv(v.begin(), v.end());
  thrust::sort_by_key(dk.begin(), dk.end(), dv.begin());
  printf("%d %g %d %g\n", (int)dk[0], (float)dv[0], (int)dk[n - 1], (float)dv[n - 1]);
  thrust::sort_by_key(thrust::device, dk.begin(), dk.end(), dv.begin(), thrust::greater<int>());
  printf("%d %g\n", (int)dk[0], (float)dv[0]);
  thrust::stable_sort(dk.begin(), dk.end());
  printf("%ld\n", (long)(thrust::lower_bound(dk.begin(), dk.end(), 5000) - dk.begin()));
  thrust::device_vector<int> w{4, 5, 6}; thrust::host_vector<int> h(w.begin(), w.end()); printf("%d %d\n", (int)w[2], h[0]);
}
"""


def test_order_by_a_comparison_of_the_program_and_backwards(tmp_path):
    assert run(tmp_path, ORDERED) == ORDERED_PRINTED


def test_thrust_sorts_pairs_stably(tmp_path):
    keys = sorted(((i * 7919) % 10007, i) for i in range(20000))
    last = min(i for key, i in keys if key == keys[-1][0])
    below = sum(key < 5000 for key, _ in keys)
    wanted = f"{keys[0][0]} {keys[0][1]} {keys[-1][0]} {keys[-1][1]}\n{keys[-1][0]} {last}\n{below}\n6 4\n"
    assert run(tmp_path, BY_KEY) == wanted


HASHED = r"""
#include <cstdio>
#include <unordered_map>
#include <unordered_set>
#include <string>
#include <utility>
#include <functional>
#include <vector>
#include <algorithm>
#include <random>
#include <thread>
struct Cell { int r, c; bool operator==(const Cell& o) const { return r == o.r && c == o.c; } };
struct CellHash { size_t operator()(const Cell& k) const { return (k.r + k.c) % 5; } };
struct Name { std::string s; bool operator==(const Name& o) const { return s == o.s; } };
namespace std { template <> struct hash<Name> { size_t operator()(const Name& n) const { return n.s.size(); } }; }
struct PairHash { template <class A, class B> size_t operator()(const std::pair<A, B>& p) const { return std::hash<A>()(p.first) * 31 ^ std::hash<B>{}(p.second); } };
struct Mod { bool operator()(int a, int b) const { return a % 10 == b % 10; } };
struct ModHash { size_t operator()(int a) const { return a % 10; } };
void push(std::vector<int>& v) { v.push_back(3); }
int main() {
  std::unordered_map<Cell, int, CellHash> m;
  for (int r = 0; r < 6; r++) for (int c = 0; c < 6; c++) m[{r, c}] = 10 * r + c;
  int sum = 0, n = 0; for (auto& [k, v] : m) { sum += v; n++; if (v != 10 * k.r + k.c) return 1; }
  printf("%d %d %d %d\n", n, sum, m.at({3, 4}), (int)m.count(Cell{9, 9}));
  m.erase({3, 4}); printf("%d %zu %d\n", m.find({3, 4}) == m.end(), m.size(), m.find({4, 3})->second);
  std::unordered_map<Name, double> names; names[{"ab"}] = 1.5; names[{"cd"}] = 2; names[{"ab"}] += 1; printf("%zu %g %g\n", names.size(), names[{"ab"}], names[{"cd"}]);
  std::unordered_set<std::pair<int, int>, PairHash> s; s.insert({1, 2}); s.insert({2, 1}); s.insert({1, 2}); printf("%zu\n", s.size());
  std::unordered_set<int, ModHash, Mod> q{1, 11, 2}; printf("%zu\n", q.size());
  std::unordered_map<std::string, int> w; w["x"]++; w["x"]++; w["y"]++; printf("%d %d\n", w["x"], w["y"]);
  auto h = [](const Cell& c) { return (size_t)c.r; };
  std::unordered_map<Cell, int, decltype(h)> lm(16, h); lm[{1, 2}] = 5; lm[{1, 3}] = 6; printf("%zu %d\n", lm.size(), lm[{1, 3}]);
  std::mt19937 gen(42); std::vector<unsigned> v(3); std::generate(v.begin(), v.end(), std::ref(gen)); unsigned next = gen(); std::mt19937 g2(42); g2(); g2(); g2(); printf("%d\n", next == g2());
  int x = 1; auto add = [](int& a) { a += 5; }; auto r = std::ref(x); add(r); r.get() += 1; printf("%d\n", x);
  std::unordered_map<int, std::vector<int>> adj; adj[3].push_back(1); adj[3].push_back(2); printf("%zu\n", adj[3].size());
  std::thread t(push, std::ref(adj[3])); t.join(); printf("%zu\n", adj[3].size());
}
"""


def test_unordered_containers_with_a_hash_of_the_program_and_references_in_wrappers(tmp_path):
    path = tmp_path / "program.cu"
    path.write_text(HASHED)
    report = run_program(path, capture=True)
    printed = "36 990 34 0\n1 35 43\n2 2.5 2\n2\n2\n2 1\n2 6\n1\n7\n2\n3\n"  # as g++ -std=c++17 has it
    assert (report.output, report.findings) == (printed, []), report.message


DATES = r"""
#include <cstdio>
#include <ctime>
int main() {
  for (time_t t : {0l, 951782400l, 1000000000l, 1709251199l, -1l}) {
    char text[200];
    strftime(text, 200, "%Y-%m-%d %H:%M:%S %A %b %j %I%p %c|%F %T %D %e %u%%", gmtime(&t));
    puts(text);
    struct tm made = *localtime(&t);
    if (mktime(&made) != t) puts("wrong");
  }
  char small[5]; time_t t = 0;
  printf("%zu %zu %s", strftime(small, 4, "%Y", gmtime(&t)), strftime(small, 5, "%Y", gmtime(&t)), ctime(&t));
}
"""


def test_dates(tmp_path):
    path = tmp_path / "program.cu"
    path.write_text(DATES)
    made = run_program(path, [], Options(), capture=True).output.splitlines()
    for text, seconds in zip(made, (0, 951782400, 1000000000, 1709251199, -1), strict=False):
        moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
        assert text == moment.strftime(
            "%Y-%m-%d %H:%M:%S %A %b %j %I%p %a %b %e %H:%M:%S %Y|%Y-%m-%d %H:%M:%S %m/%d/%y %e %u%%"
        )
    assert made[5:] == ["0 4 Thu Jan  1 00:00:00 1970"]


CARD = r"""
#include <cstdio>
#include <cuda_fp16.h>
#define MAX(a, b) (a > b ? a : b)
__global__ void k(float* p) { p[1] = 1; }
int main() {
  enum { BYTES = MAX(sizeof(half) * 4096, sizeof(float) * 3000) };
  cudaDeviceProp p; cudaGetDeviceProperties(&p, 0); int blocks; float* x;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, 64, 0);
  printf("%zu %d %d %.0f %d %lu %g\n", p.sharedMemPerMultiprocessor >> 10, p.l2CacheSize >> 20, p.memoryBusWidth,
         2.0 * p.memoryClockRate * (p.memoryBusWidth / 8) / 1e6, blocks, BYTES / 1024UL, __half2float(__habs(half(-2.0f))));
  cudaMalloc(reinterpret_cast<void**>(&x), 4);
  k<<<1, 1>>>(x); cudaDeviceSynchronize(); cudaFree(x);
}
"""


@pytest.mark.parametrize(
    ("card", "said"), [("t4", "64 4 256 320 16"), ("a100", "164 40 5120 1555 32"), ("rtx4090", "100 72 384 1008 24")]
)
def test_a_card_has_its_own_memory_and_an_enumeration_is_a_number(tmp_path, card, said):
    """The name of memory is the variable's, also within a cast; halves have operators, which an enumeration is not for."""
    path = tmp_path / "program.cu"
    path.write_text(CARD)
    report = run_program(path, [], Options(card=card), capture=True)
    assert report.output == f"{said} 11 2\n"
    assert [f.kind.value for f in report.faults] == ["out-of-bounds"]
    assert "x (4 bytes" in report.faults[0].message + report.faults[0].evidence


NAMES = r"""
#include <cstdio>
#include <cfloat>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iostream>
#include <math_constants.h>
#include <numeric>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>
namespace fs = std::filesystem;
int minus(int a, int b) { return a - b; }
void show(int a, float b, int c) { printf("%d %g %d\n", a, b, c); }
int main() {
  fs::path p("runs/a.b/c.txt");
  printf("%s %s %s %s %d\n", p.filename().c_str(), p.stem().c_str(), p.extension().c_str(), p.parent_path().c_str(), (int)fs::exists(p));
  fs::create_directories("runs/first");
  fs::path q = fs::path("runs") / "first";
  std::cout << fs::is_directory(q) << " " << q << " " << (q / "z.txt").string() << "\n";
  for (const auto& e : fs::directory_iterator(".")) if (e.is_regular_file() && e.path().extension() == ".txt") puts(e.path().filename().c_str());
  std::vector<int> v{1, 2, 3};
  printf("%d %d %d %d\n", std::gcd(12, -8), std::lcm(4, 6), std::reduce(v.begin(), v.end()), std::transform_reduce(v.begin(), v.end(), v.begin(), 0));
  std::function<void(int)> g{std::bind(show, 1, 2.5f, std::placeholders::_1)};
  g(7);
  std::function<int(float)> all = std::bind(minus, 9, 4);
  printf("%d %d\n", std::bind(minus, std::placeholders::_2, std::placeholders::_1)(1, 5), all(0.5f));
  u_int u = 3; u_char c = 4;
  printf("%d %d %d %d %u\n", MAXFLOAT == FLT_MAX, HUGE_VALF > MAXFLOAT, CUDART_NAN != CUDART_NAN, isatty(0), u + c);
  std::istringstream in("word next");
  char name[16];
  in >> name;
  puts(name);
}
"""


def test_names_that_programs_use_now_and_then(tmp_path):
    (tmp_path / "beside.txt").write_text("here")
    program = tmp_path / "names.cu"
    program.write_text(NAMES)
    report = run_program(program, [], Options(), capture=True)
    assert (report.message, report.findings) == ("", [])
    assert (
        report.output
        == """c.txt c .txt runs/a.b 0
1 "runs/first" runs/first/z.txt
beside.txt
4 12 6 14
1 2.5 7
4 5
1 1 1 0 7
word
"""
    )
