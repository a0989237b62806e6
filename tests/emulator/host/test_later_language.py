"""Later C++: concepts, computed alignments, argument-dependent lookup, attributes, features of newer cards."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(2)  # each program is compiled in a process, 0.2 to 2 s

LANGUAGE = r"""
#include <cstdio>
#include <iostream>
#include <vector>
#include <algorithm>
#include <numeric>
#include <concepts>
#include <span>
#include <type_traits>
template <std::integral T> T twice(T x) { return 2 * x; }
template <std::floating_point T> T twice(T x) { return 3 * x; }
template <typename T> concept Number = std::is_arithmetic_v<T>;
template <Number T> T thrice(T x) { return 3 * x; }
template <typename T> requires Number<T> T four(T x) { return 4 * x; }
template <typename T> requires (sizeof(T) == 4 && std::is_integral_v<T>) T five(T x) { return 5 * x; }
template <typename T, int N> struct alignas(sizeof(T) * N) Vec { T v[N]; };
struct alignas(16) P { float x; };
struct Shape { static int area(int a) { return a * a; } };
int total(std::span<const int> s) { int t = 0; for (int x : s) t += x; return t + (int)s.size(); }
int applied(int (*f)(int), int x) { return f(x); }
int main() {
  std::vector<int> a{3, 1, 2}; int c[3] = {9, 7, 8};
  sort(begin(a), end(a)); std::sort(std::begin(c), std::end(c)); printf("%d %d %d %zu\n", a[0], c[0], accumulate(a.begin(), a.end(), 0), std::size(c));
  std::cout << total(a) << " " << total({c, 2}) << " ";
  std::cout << twice(2) << " " << twice(2.5) << " " << thrice(2) << four(1) << five(1) << "\n";
  std::streamsize kept = std::cout.precision(); std::cout.precision(3); std::cout << 3.14159 << " "; std::cout.precision(kept); std::cout << 3.14159265 << " " << kept << "\n";
  std::cout << sizeof(P) << " " << alignof(Vec<float, 4>) << " " << sizeof(Vec<double, 2>) << " " << applied(Shape::area, 5) << "\n";
  if (__builtin_expect(a[0] == 1, 1)) std::cout << __builtin_popcount(255u) << " " << __builtin_clz(1u) << " " << __builtin_ctz(8u) << "\n";
  return 0;
}
"""
# as g++ -std=c++20 has it
LANGUAGE_PRINTS = "1 7 6 3\n9 17 4 7.5 645\n3.14 3.14159 6\n16 16 16 25\n8 31 3\n"
GROUPS = r"""
#include <cstdio>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ int sum(cg::thread_group g, int* s, int v) { int t = g.thread_rank(); for (int i = g.size() / 2; i > 0; i /= 2) { s[t] = v; g.sync(); if (t < i) v += s[t + i]; g.sync(); } return v; }
__global__ void k(int* c) {
  __shared__ int s[64]; auto b = cg::this_thread_block();
  if (threadIdx.x % 3 == 0) { cg::coalesced_group g = cg::coalesced_threads(); int all = g.shfl((int)threadIdx.x, 0); if (g.thread_rank() == 0) { atomicAdd(c, g.size()); atomicAdd(c + 4, all); } }
  auto t = cg::tiled_partition<16>(b); int v = t.thread_rank(); v = cg::reduce(t, v, cg::plus<int>()); if (t.thread_rank() == 0) atomicAdd(c + 1, v);
  cg::grid_group all = cg::this_grid(); if (all.thread_rank() == 0) c[2] = all.size();
  cg::thread_group w = cg::tiled_partition(b, 32); if (w.thread_rank() == 0) atomicAdd(c + 3, 1);
  int x = sum(b, s, 1); if (threadIdx.x == 0) atomicAdd(c + 5, x);
  unsigned same = __match_any_sync(0xffffffff, threadIdx.x % 4); if (threadIdx.x == 1) c[6] = same; if (threadIdx.x < 5) { unsigned m = __activemask(); if (threadIdx.x == 0) c[7] = m; }
}
int main() { int *d, h[8]; cudaMalloc(&d, 32); cudaMemset(d, 0, 32); k<<<2, 64>>>(d); cudaMemcpy(h, d, 32, cudaMemcpyDeviceToHost); for (int i = 0; i < 8; i++) printf("%d ", h[i]); printf("\n"); cudaFree(d); return 0; }
"""
KERNELS_BY_NAME = r"""
#include <cstdio>
#include "../common/book.h"
template <typename T> __global__ void doubled(T* a, T* b, size_t n) { size_t i = threadIdx.x; if (i < n) b[i] = a[i] * 2; }
__global__ void tripled(float* a, float* b, size_t n) { size_t i = threadIdx.x; if (i < n) b[i] = a[i] * 3; }
template <typename T> void run(void (*kernel)(T*, T*, size_t), T* a, T* b, int n) { kernel<<<1, 32>>>(a, b, n); }
int main() { float *a, *b, h[4] = {1, 2, 3, 4}; cudaMalloc(&a, 16); cudaMalloc(&b, 16); cudaMemcpy(a, h, 16, cudaMemcpyHostToDevice);
  run<float>(doubled, a, b, 4); swap(a, b); run(doubled<float>, a, b, 4); swap(a, b); run(tripled, a, b, 4); run<float>(tripled, a, b, 4);
  cudaMemcpy(h, b, 16, cudaMemcpyDeviceToHost); printf("%g\n", h[3]); cudaFree(a); cudaFree(b); return 0; }
"""


def printed(tmp_path, text):
    path = tmp_path / "program.cu"
    path.write_text(text)
    report = run_program(path, [], Options(), capture=True)
    assert (report.faults, report.message) == ([], "")
    return report.output


def test_concepts_alignments_and_argument_dependent_lookup(tmp_path):
    assert printed(tmp_path, LANGUAGE) == LANGUAGE_PRINTS


def test_an_invalid_alignment_is_refused(tmp_path):
    path = tmp_path / "program.cu"
    for wrong in ("3.14159", "3", "-8", "n", "1 << 40"):
        path.write_text(
            f"int n = 8; struct alignas({wrong}) P {{ float x; }}; int main() {{ P p; p.x = 1; return (int)p.x; }}"
        )
        report = run_program(path, [], Options(), capture=True)
        assert report.ended == "refused"
        assert "alignment" in report.message


def test_coalesced_groups_do_not_wait_for_inactive_threads(tmp_path):
    assert printed(tmp_path, GROUPS) == "44 960 128 4 66 128 572662306 31 \n"


def test_a_kernel_template_by_its_name_alone(tmp_path):
    assert printed(tmp_path, KERNELS_BY_NAME) == "48\n"


DEDUCED = r"""
#include <cstdio>
#include <vector>
#include <utility>
#include <tuple>
#include <variant>
#include <array>
#include <string>
template <class T> struct Box { T v; Box(T x) : v(x) {} };
int main() {
    std::pair p(1, 2.5);
    std::vector v{1, 2, 3};
    std::array a{1.5f, 2.5f};
    std::tuple t(1, 2.0, 'c');
    Box b(4.5);
    Box c{3};
    std::variant<int, double, std::string> w = 3;
    printf("%d %g %zu %d %g %g %d\n", p.first, p.second, v.size(), (int)v[2], a[1], b.v, c.v);
    printf("%g %c\n", std::get<1>(t), std::get<2>(t));
    printf("%d %zu\n", std::get<int>(w), w.index());
    w = 2.5;
    printf("%g %d\n", std::get<double>(w), (int)std::holds_alternative<int>(w));
    w = std::string("hi");
    std::visit([](auto &&x) { if constexpr (std::is_same_v<std::decay_t<decltype(x)>, std::string>) printf("s %s\n", x.c_str()); else printf("n %g\n", (double)x); }, w);
    if (auto q = std::get_if<double>(&w)) printf("d %g\n", *q); else printf("none\n");
    try { std::get<int>(w); } catch (const std::bad_variant_access &) { printf("bad\n"); }
}
"""


def test_class_templates_without_arguments_and_variants(tmp_path):
    (tmp_path / "p.cu").write_text(DEDUCED)
    report = run_program(tmp_path / "p.cu", capture=True)
    assert (report.faults, report.message) == ([], "")
    assert report.output == "1 2.5 3 3 2.5 4.5 3\n2 c\n3 0\n2.5 0\ns hi\nnone\nbad\n"


def test_default_arguments_in_braces(tmp_path):
    (tmp_path / "p.cu").write_text("""#include <cstdio>
#include <string>
#include <vector>
struct Options { int a = 3; float b = 0.5f; };
struct Base { Options o; std::string help; Base(const std::string& h, Options options = {}) : o(options), help(h) {} };
int sum(std::vector<int> v = {1, 2, 3}, int plus = {}) { int s = plus; for (int x : v) s += x; return s; }
double f(double x = {2.5}) { return x; }
int main() { Base b("x"), c("y", {7}); printf("%d %g %d %d %d %g", b.o.a, b.o.b, c.o.a, sum(), sum({4}), f()); }
""")
    assert run_program(tmp_path / "p.cu", capture=True).output == "3 0.5 7 6 4 2.5"


def test_seeking_in_a_file_by_the_names_of_its_stream(tmp_path):
    (tmp_path / "p.cu").write_text("""#include <cstdio>
#include <fstream>
int main() { { std::ofstream o("t.txt"); o << "hello"; }
  std::ifstream i("t.txt"); i.seekg(0, std::ifstream::end); long n = i.tellg(); i.seekg(1, std::ifstream::beg); char c; i >> c; printf("%ld %c", n, c); }
""")
    assert run_program(tmp_path / "p.cu", capture=True).output == "5 e"


def test_exchange_gives_the_old_value(tmp_path):
    (tmp_path / "p.cu").write_text("""#include <cstdio>
#include <utility>
struct Owner { int* p; Owner(int* q) : p(q) {} Owner(Owner&& o) noexcept : p(std::exchange(o.p, nullptr)) {} ~Owner() { delete p; } };
int main() { Owner a(new int(5)); Owner b(std::move(a)); int n = 1, old = std::exchange(n, 2); printf("%d %d %d %d", a.p == nullptr, *b.p, old, n); }
""")
    report = run_program(tmp_path / "p.cu", capture=True)
    assert (report.output, report.findings) == ("1 5 1 2", [])


def test_overloaded_kernels_are_launched_by_their_parameters(tmp_path):
    """Also templates, and kernels whose definition is below: the first of as many parameters was launched."""
    (tmp_path / "p.cu").write_text("""#include <cstdio>
#include <cuda_fp16.h>
template <int V> __global__ void k(float* p, int n) { p[blockIdx.x] = V; }
template <int V> __global__ void k(__half* p, int n) { p[blockIdx.x] = __float2half(2 * V); }
__global__ void change(int* p); __global__ void change(float* p);
template <typename T> float run() { T *d, h[8]; cudaMalloc(&d, sizeof h); k<4><<<8, 32>>>(d, 8); cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost); cudaFree(d); return (float)h[7]; }
template <typename T> float changed() { T *d, h[8] = {1}; cudaMalloc(&d, sizeof h); cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice); change<<<1, 1>>>(d); cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost); cudaFree(d); return h[0]; }
int main() { printf("%g %g %g %g", run<__half>(), run<float>(), changed<float>(), changed<int>()); }
__global__ void change(float* p) { *p *= 2; }
__global__ void change(int* p) { *p += 10; }
""")
    report = run_program(tmp_path / "p.cu", capture=True)
    assert (report.output, report.findings) == ("8 4 2 11", []), report.message


def test_a_return_without_the_value_is_refused_as_by_compilers(tmp_path):
    text = (
        "int f(int n) { if (n) return; return 2; }\nint main() { auto g = [](int) { return; }; g(1); return f(0); }\n"
    )
    (tmp_path / "p.cu").write_text(text)
    report = run_program(tmp_path / "p.cu", capture=True)
    assert report.ended == "refused"
    assert "p.cu:1:23: return needs a value: the function gives int" in report.message
    (tmp_path / "p.cu").write_text(text.replace("return;", "return 1;", 1))
    assert run_program(tmp_path / "p.cu", capture=True).status == 2
