"""Variadic function templates: expansion of their tokens, and programs that use them."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program
from tilewise.emulator.parse.packs import expanded
from tilewise.emulator.source.lexer import tokenize
from tilewise.emulator.source.source import Source


def spelled(text, count):
    tokens = [t for t in tokenize(Source("f.cu", text)) if t.kind not in ("newline", "end")]
    return " ".join(t.text for t in expanded(tokens, count))


@pytest.mark.parametrize(
    ("text", "count", "wanted"),
    [
        ("template <class... T> void f(T... x) { g(x...); }", 2, "template < class T.0 , class T.1 > void f ( T.0 x.0 , T.1 x.1 ) { g ( x.0 , x.1 ) ; }"),
        ("template <class A, class... T> void f(A a, T... x) { g(a, x...); }", 0, "template < class A > void f ( A a ) { g ( a ) ; }"),
        ("template <class... T> void f(const T&... x) { g(x..., 1); }", 0, "template < > void f ( ) { g ( 1 ) ; }"),
        ("template <class... T> void f(T&&... x) { g(std::forward<T>(x)...); }", 2, "template < class T.0 , class T.1 > void f ( T.0 && x.0 , T.1 && x.1 ) { g ( std :: forward < T.0 > ( x.0 ) , std :: forward < T.1 > ( x.1 ) ) ; }"),
        ("template <int... I> int f() { return sizeof...(I) + h<I...>(); }", 3, "template < int I.0 , int I.1 , int I.2 > int f ( ) { return 3ull + h < I.0 , I.1 , I.2 > ( ) ; }"),
        ("template <class... T> int f(T... x) { int a[] = {(g(x), 0)...}; }", 2, "template < class T.0 , class T.1 > int f ( T.0 x.0 , T.1 x.1 ) { int a [ ] = { ( g ( x.0 ) , 0 ) , ( g ( x.1 ) , 0 ) } ; }"),
        ("template <class... T> int f(T... x) { g(h(x...) + x...); }", 2, "template < class T.0 , class T.1 > int f ( T.0 x.0 , T.1 x.1 ) { g ( h ( x.0 , x.1 ) + x.0 , h ( x.0 , x.1 ) + x.1 ) ; }"),
        ("template <class... T> void f(T... x) { try {} catch (...) {} }", 1, "template < class T.0 > void f ( T.0 x.0 ) { try { } catch ( ... ) { } }"),
        ("template <class... T> void f(T*... p) {}", 2, "template < class T.0 , class T.1 > void f ( T.0 * p.0 , T.1 * p.1 ) { }"),
    ],
)  # fmt: skip
def test_tokens_of_one_length(text, count, wanted):
    assert spelled(text, count) == wanted


@pytest.mark.parametrize(
    ("fold", "count", "wanted"),
    [
        ("(x + ...)", 3, "( x.0 + ( x.1 + x.2 ) )"),
        ("(... - x)", 3, "( ( x.0 - x.1 ) - x.2 )"),
        ("(x - ... - 1)", 2, "( x.0 - ( x.1 - 1 ) )"),
        ("(1 - ... - x)", 2, "( ( 1 - x.0 ) - x.1 )"),
        ("(x && ...)", 0, "( true )"),
        ("(... || x)", 0, "( false )"),
        ("(0 + ... + x)", 0, "( 0 )"),
        ("(x * ...)", 1, "( x.0 )"),
        ("((c << x), ...)", 2, "( ( c << x.0 ) , ( c << x.1 ) )"),
        ("(c << ... << x)", 2, "( ( c << x.0 ) << x.1 )"),
        ("(x + ...)", 0, "( a fold over + of no arguments )"),
    ],
)
def test_folds(fold, count, wanted):
    whole = spelled("template <class... T> auto f(T... x) { return " + fold + "; }", count)
    assert whole.partition("return ")[2].removesuffix(" ; }") == wanted


PROGRAM = r"""
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>
#include <cuda_runtime.h>
template <typename T> __device__ T add_all(T a) { return a; }
template <typename T, typename... Ts> __device__ T add_all(T a, Ts... rest) { return a + add_all(rest...); }
template <typename... Ps> __global__ void sum_arrays(float* out, int n, const Ps*... in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = add_all(in[i]...);
}
__global__ void scale(float* x, float s, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= s; }
template <typename F, typename... Args> void run(F kernel, int n, Args&&... args) {
  kernel<<<(n + 127) / 128, 128>>>(std::forward<Args>(args)...);
}
template <typename... Args> void launch(void (*kernel)(Args...), dim3 grid, dim3 block, Args... args) {
  kernel<<<grid, block>>>(args...);
}
template <typename... Ts> void print(const char* name, Ts... v) {
  std::cout << name << " of " << sizeof...(Ts);
  ((std::cout << " " << v), ...);
  std::cout << "\n";
}
template <typename... Ts> auto sum(Ts... v) { return (v + ...); }
template <class F, class... A> auto applied(F f, A... a) -> decltype(f(a...)) { return f(a...); }
template <int... Is> int product() { return (Is * ... * 1); }
template <class T> int chosen(T) { return 1; }
template <class... T> int chosen(T...) { return 2; }
struct Log {
  int sum = 0;
  template <class... A> explicit Log(A... a) { sum = (a + ... + 0); }
  template <typename... A> int operator()(const char* f, A... a) const { printf(f, a...); return sum + sizeof...(a); }
};
int main() {
  const int n = 300;
  float *a, *b, *c, *o;
  cudaMallocManaged(&a, n * 4); cudaMallocManaged(&b, n * 4); cudaMallocManaged(&c, n * 4); cudaMallocManaged(&o, n * 4);
  for (int i = 0; i < n; i++) { a[i] = i; b[i] = 2 * i; c[i] = 1; }
  sum_arrays<<<3, 128>>>(o, n, a, b, c);
  run(scale, n, o, 2.0f, n);
  launch(scale, dim3(3), dim3(128), o, 0.5f, n);
  cudaDeviceSynchronize();
  printf("%g %g\n", o[1], o[299]);
  print("values", 1, 2.5, std::string("three"));
  print("none");
  printf("%d %g %d %d\n", sum(1, 2, 3), sum(1.5, 2), product<2, 3, 4>(), product<>());
  printf("%d %d %d\n", applied([](int x, int y) { return x * y; }, 3, 4), chosen(1), chosen(1, 2));
  Log log(1, 2, 3);
  printf("%d\n", log("%d %s\n", 3, "x"));
  cudaFree(a); cudaFree(b); cudaFree(c); cudaFree(o);
}
"""


def executed(tmp_path, text):
    path = tmp_path / "packs.cu"
    path.write_text(text)
    return run_program(path, [], Options(), capture=True)


@pytest.mark.drawn(2)
def test_programs_with_parameter_packs(tmp_path):
    report = executed(tmp_path, PROGRAM)
    assert (report.faults, report.message) == ([], "")
    assert report.output == "4 898\nvalues of 3 1 2.5 three\nnone of 0\n6 3.5 24 1\n12 1 2\n3 x\n8\n"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("template <class... T> int f(T... x) { return g(x); } int main() { f(1); }", "x is a parameter pack: ... is missing behind it"),
        ("template <class T, class... R> int f(T a, R... x) { return 1; } int main() { f(); }", "f takes 1 to 13 arguments, 0 are given"),
        ("template <class... T> int f(T... x) { return (x + ...); } int main() { f(); }", "a fold over + of no arguments"),
        ("template <int... I> struct S { static const int n = sizeof...(I); }; int main() { return S<1>::n; }", "sizeof... of what is no parameter pack of a function template"),
    ],
)  # fmt: skip
@pytest.mark.drawn(2)
def test_what_is_no_expansion_is_refused(tmp_path, body, words):
    assert words in executed(tmp_path, body).message


WRAPPER = r"""
#include <cstdio>
#include <cuda_runtime.h>
class Stream {
  cudaStream_t s_{};
 public:
  Stream() { cudaStreamCreate(&s_); }
  ~Stream() { cudaStreamDestroy(s_); }
  operator cudaStream_t() const { return s_; }
};
struct Named : Stream {};
template <typename T> struct Span { T* p; int n; __host__ __device__ Span(T* p, int n) : p(p), n(n) {} };
__global__ void twice(Span<float> x) { int i = threadIdx.x; if (i < x.n) x.p[i] *= 2; }
int main() {
  Stream s; Named t; float* d; float h[40];
  for (int i = 0; i < 40; i++) h[i] = i;
  cudaMalloc(&d, 160);
  cudaMemcpyAsync(d, h, 160, cudaMemcpyHostToDevice, s);
  twice<<<1, 64, 0, s>>>(Span(d, 40));
  auto part = Span{d, 20};
  twice<<<1, 64, 0, s>>>(part);
  cudaMemcpyAsync(h, d, 160, cudaMemcpyDeviceToHost, s);
  cudaStreamSynchronize(s); cudaStreamSynchronize(t);
  printf("%g %g\n", h[1], h[39]);
  cudaFree(d);
}
"""


@pytest.mark.drawn(2)
def test_stream_classes_and_deduced_class_arguments_in_expressions(tmp_path):
    report = executed(tmp_path, WRAPPER)
    assert (report.faults, report.message) == ([], "")
    assert report.output == "4 78\n"


LIBRARY = r"""
#include <cstdio>
#include <functional>
#include <memory>
#include <thread>
#include <tuple>
#include <vector>
struct Five { int sum; std::vector<int> kept; Five(int a, int b, int c, int d, std::vector<int>&& e) : sum(a + b + c + d), kept(std::move(e)) {} };
template <class T> struct In { T v; };
struct Box { In<In<int>> inner; template <class... A> int count(A... a) { In<In<int>> x; x.v.v = sizeof...(a); return x.v.v; } };
int main() {
  std::vector<Five> all; std::vector<int> some{7, 8};
  all.emplace_back(1, 2, 3, 4, std::move(some));
  auto one = std::make_unique<Five>(1, 2, 3, 4, std::vector<int>{9});
  auto shared = std::make_shared<Five>(5, 5, 5, 5, std::vector<int>(3));
  printf("%d %zu %zu %d %d\n", all[0].sum, some.size(), all[0].kept.size(), one->kept[0], shared->sum);
  printf("%d %g\n", std::invoke([](int a, int b, int c) { return a + b * c; }, 1, 2, 3), std::apply([](int a, double b) { return a + b; }, std::make_tuple(1, 2.5)));
  int total = 0;
  std::thread t([](int a, int b, int c, int d, int e, int f, int* to) { *to = a + b + c + d + e + f; }, 1, 2, 3, 4, 5, 6, &total);
  t.join();
  Box box;
  printf("%d %d\n", total, box.count(1, 'c'));
}
"""


@pytest.mark.drawn(2)
def test_library_templates_take_any_arguments(tmp_path):
    report = executed(tmp_path, LIBRARY)
    assert (report.faults, report.message) == ([], "")
    assert report.output == "10 0 2 9 20\n7 3.5\n21 2\n"
