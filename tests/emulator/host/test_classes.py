"""Classes with virtual methods, with owned memory, and pointers to kernels."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import shutil
import subprocess

import pytest

from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(4)  # each program is compiled in a process, 0.2 to 2 s


@pytest.fixture
def run(tmp_path):
    def go(text):
        path = tmp_path / "program.cu"
        path.write_text(text)
        return run_program(path, capture=True)

    return go


VIRTUAL = r"""
#include <cstdio>
#include <memory>
#include <string>
#include <vector>
struct Named { int id; Named(int i) : id(i) {} virtual const char* name() const { return "named"; } virtual ~Named() { printf("~Named %d %s\n", id, name()); } };
class Shape { public: virtual double area() const = 0; virtual void grow(double f) { printf("cannot grow by %g\n", f); } virtual ~Shape() { printf("~Shape\n"); } };
class Square : public Shape, public Named { double a; std::string s; public: Square(double a, int i) : Named(i), a(a), s("sq") {}
  double area() const override { return a * a; } void grow(double f) override { a *= f; } const char* name() const override { return s.c_str(); } ~Square() { printf("~Square\n"); } };
class Circle : public Shape { protected: double r; public: Circle(double r) : r(r) {} double area() const override { return 3 * r * r; } };
class Disk : public Circle { public: Disk(double r) : Circle(r) {} double area() const override { return Circle::area() + 1; } };
struct Base { virtual int f(int x) { return x; } virtual int f(double x) { return 100; } int g(int x) { return f(x) + 1; } };
struct Derived : Base { int k = 7; int f(int x) override { return x * k; } };
void show(const Shape& s) { printf("%g\n", s.area()); }
int main() {
  std::vector<std::unique_ptr<Shape>> v;
  v.push_back(std::make_unique<Square>(2.0, 5)); v.push_back(std::unique_ptr<Shape>(new Circle(1))); v.emplace_back(new Disk(2));
  for (auto& s : v) { show(*s); s->grow(2); show(*s); }
  Square q(3, 9); Named* n = &q; printf("%s %d %g\n", n->name(), n->id, ((Shape&)q).area());
  Derived d; Base& b = d; printf("%d %d %d %d\n", b.f(3), b.f(1.5), b.g(2), d.g(5));
  Base c = d; printf("%d %d %zu %zu\n", c.f(3), b.Base::f(4), sizeof(Base), sizeof(Derived));
  Named* m = new Square(1, 3); delete m;
  return 0;
}
"""
OWNERS = r"""
#include <cstdio>
#include <memory>
#include <random>
#include <limits>
#include <vector>
struct A { int v; A(int x) : v(x) {} virtual ~A() { printf("~A %d\n", v); } virtual int f() { return v; } };
struct B : A { B(int x) : A(x) {} ~B() { printf("~B\n"); } int f() override { return 2 * v; } };
struct Free { void operator()(float* p) const { printf("free\n"); delete[] p; } };
int main() {
  std::shared_ptr<void> guard(nullptr, [](void*) { printf("bye\n"); });
  std::shared_ptr<A> a = std::make_shared<B>(4); auto c = a; printf("%d %ld\n", c->f(), a.use_count());
  std::shared_ptr<int> i(new int(3), [](int* p) { printf("drop %d\n", *p); delete p; });
  std::unique_ptr<float, Free> u(new float[3]);
  std::vector<std::shared_ptr<A>> v; v.push_back(a); v.push_back(std::make_shared<A>(9)); a.reset();
  std::unique_ptr<A> p = std::make_unique<B>(7); std::unique_ptr<A> q; q = std::move(p); printf("%d %d\n", q->f(), p == nullptr);
  int n = 5; float z[n] = {1, 2}; printf("%g %g %ld\n", z[1], z[4], c.use_count());
  std::mt19937 g(42); std::mt19937_64 h(7); std::minstd_rand0 m(5);
  std::uniform_int_distribution<unsigned int> all(0, std::numeric_limits<unsigned int>::max());
  std::uniform_int_distribution<long> wide(-5, 1000000000000L); std::uniform_int_distribution<int> few(-100, 100), half;
  for (int k = 0; k < 4; k++) { printf("%u ", all(g)); printf("%ld ", wide(g)); printf("%d ", few(g)); printf("%d\n", half(g)); }
  for (int k = 0; k < 4; k++) { printf("%u ", all(h)); printf("%ld ", wide(h)); printf("%d ", few(h)); printf("%d\n", half(h)); }
  for (int k = 0; k < 4; k++) { printf("%u ", all(m)); printf("%ld ", wide(m)); printf("%d ", few(m)); printf("%d\n", half(m)); }
  return 0;
}
"""

PIECES = r"""
#include <cstddef>
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>
#include <initializer_list>
class Timer { public: void start() { m_StartTime = std::chrono::system_clock::now(); m_bRunning = true; }
  double ms() { std::chrono::time_point<std::chrono::system_clock> endTime; endTime = std::chrono::system_clock::now(); return std::chrono::duration_cast<std::chrono::milliseconds>(endTime - m_StartTime).count(); }
 private: std::chrono::time_point<std::chrono::system_clock> m_StartTime; bool m_bRunning = false; };
template <typename T> struct U { std::vector<T> v; U(std::initializer_list<T> l, bool b) { for (auto& x : l) v.push_back(x); } };
int main() { Timer t; t.start(); printf("%d\n", t.ms() >= 0); std::shared_ptr<void> g(nullptr, [](...) { printf("bye\n"); });
 U<unsigned> u(std::initializer_list<unsigned>{1, 2, 3}, true); printf("%u %zu\n", u.v[2], u.v.size()); std::chrono::time_point<std::chrono::high_resolution_clock> z;
 constexpr int n{4}; float a[n] = {1}; int k = (int)u.v.size(); double v[k]; v[2] = a[0]; printf("%zu %zu %g\n", sizeof a, sizeof v, v[2]);
 int total = 0; for (auto x : std::initializer_list<int>{4, 5}) total += x; printf("%d\n", total); }
"""


@pytest.mark.drawn(1)
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++ here to compare with")
@pytest.mark.parametrize("text", [VIRTUAL, OWNERS, PIECES], ids=["virtual", "owners", "pieces"])
def test_it_prints_what_a_compiler_prints(text, run, tmp_path):
    (tmp_path / "real.cpp").write_text(text)
    built = str(tmp_path / "real")
    subprocess.run(["g++", "-std=c++17", "-w", str(tmp_path / "real.cpp"), "-o", built], check=True)
    report = run(text)
    assert report.output == subprocess.run([built], capture_output=True, check=True).stdout.decode(), report.message
    assert report.findings == []


def test_static_functions_have_addresses(run):
    text = """#include <stdio.h>
struct A { static int two(int x) { return 2 * x; } };
int main() { int (*f)(int) = A::two; int (*g)(int) = &A::two; printf("%d %d", f(3), g(4)); }
"""
    assert run(text).output == "6 8"


def test_a_call_of_an_undefined_method_is_reported(run):
    report = run(
        "struct S { virtual int f() = 0; int g() { return f(); } S() { g(); } }; struct D : S { int f() override { return 1; } }; int main() { D d; return d.g() - 1; }"
    )
    assert report.ended == "crash"
    report = run("struct S { virtual int f() { return 0; } };\nint main() {\n  S* s = nullptr;\n  return s->f();\n}")
    assert [(str(f.kind), f.line) for f in report.faults] == [("null-pointer", 4)]


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("text", "ended", "says"),
    [
        (
            "#include <stdlib.h>\nstruct S { virtual int f() { return 1; } }; int main() { S* s = (S*)calloc(1, sizeof(S)); return s->f(); }",
            "crash",
            "",
        ),
        (
            "#include <string.h>\nstruct S { virtual int f() { return 1; } }; int main() { S s; memset(&s, 77, sizeof s); S* p = &s; return p->f(); }",
            "crash",
            "",
        ),
        ("struct S { virtual int f(); }; int main() { S s; S* p = &s; return p->f(); }", "crash", ""),
        (
            "struct S { int a; virtual int f() { return a; } }; int main() { S* s = new S(3); return s->f(); }",
            "refused",
            "no constructor of S",
        ),
        ("int main() { for (auto& x : 3) x = 1; }", "refused", "int has no member begin"),
        (
            "struct A { int get() { return 1; } }; int main() { A a; return a.get; }",
            "refused",
            "get is a function of A and is not called: get()",
        ),
        ("template <class T> " * 3000 + "int f(); int main() { return f(); }", "refused", "nested too deep"),
    ],
    ids=["never made", "written over", "never defined", "no aggregate", "no range", "not called", "deep"],
)
def test_bad_calls_end_with_a_message(text, ended, says, run):
    """Each of these once crashed the process, or ended in a Python exception."""
    report = run(text)
    assert report.ended == ended, (report.ended, report.message)
    assert says in report.message


def test_kernels_are_launched_through_pointers(run):
    report = run(r"""
#include <cstdio>
#include <vector>
__global__ void add(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] += 1; }
__global__ void mul(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 3; }
template <int K> __global__ void sub(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] -= K; }
typedef void (*Kernel)(float*, int);
struct Entry { const char* name; Kernel k; };
template <typename F> void bench(F f, float* d) { f<<<1, 32>>>(d, 32); }
void go(void (*f)(float*, int), float* d) { f<<<1, 32>>>(d, 32); }
int main() {
  float* d; cudaMalloc(&d, 32 * sizeof(float)); cudaMemset(d, 0, 32 * 4);
  Entry all[] = {{"add", add}, {"mul", mul}, {"sub", sub<2>}};
  for (auto& e : all) e.k<<<1, 32>>>(d, 32);
  bench(add, d); go(mul, d); go(sub<5>, d); bench(sub<7>, d);
  auto k = sub<1>; k<<<1, 32>>>(d, 32);
  std::vector<Kernel> v = {add, mul}; v[1]<<<1, 32>>>(d, 32);
  int n = 32; void* args[] = {&d, &n};
  printf("%d ", cudaLaunchKernel((void*)add, dim3(1), dim3(32), args, 0, 0));
  float h[32]; cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  cudaFree(d);
  printf("%g\n", h[3]);
}""")
    assert (report.output, report.findings) == ("0 -20\n", []), report.message


def test_a_kernel_without_parameters_is_launched_by_name(run):
    report = run(r"""
#include <cstdio>
__global__ void plain() { printf("plain "); }
template <class T> __global__ void sized() { printf("%d ", (int)sizeof(T)); }
int main() {
  void** none = 0; void (*p)() = plain;
  cudaLaunchKernel(&plain, dim3{1, 1, 1}, dim3{1, 1, 1}, nullptr); cudaLaunchKernel(plain, 1, 1, NULL, 0); cudaLaunchKernel(p, 1, 1, none);
  cudaLaunchKernel(sized<double>, 1, 1, none); cudaLaunchCooperativeKernel(&sized<short>, 1, 1, none, 0, 0); printf("%d\n", cudaDeviceSynchronize());
}""")
    assert (report.output, report.findings) == ("plain plain plain 8 2 0\n", []), report.message


def test_default_arguments_complete_a_launch(run):
    report = run("void f(int* p, int n = 0, int m = 1) {}\nint main() { f(2.5, 4); }\n")
    assert "no f takes (double, int)" in report.message


def test_a_launch_through_a_null_pointer_is_named(run):
    report = run("int main() {\n  void (*k)(int) = nullptr;\n  k<<<1, 1>>>(3);\n  return cudaGetLastError();\n}")
    assert [(str(f.kind), f.line) for f in report.faults] == [("launch", 3)]
    assert report.status == 98


def test_headers_are_found_beside_the_including_header(run, tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "one.h").write_text('#include "two.h"\nint one() { return two() - 1; }\n')
    (tmp_path / "parts" / "two.h").write_text("int two() { return 2; }\n")
    assert run('#include "parts/one.h"\nint main() { return one(); }').status == 1
    (tmp_path / "parts" / "two.h").unlink()
    (tmp_path.parent / "two.txt").write_text("int two() { return 2; }\n")
    (tmp_path / "parts" / "one.h").write_text('#include "../../two.txt"\nint one() { return two() - 1; }\n')
    refused = run('#include "parts/one.h"\nint main() { return one(); }').message
    assert "../../two.txt lies outside the program's folder: --include " in refused
    (tmp_path.parent / "two.txt").unlink()
    assert "../../two.txt is neither beside" in run('#include "parts/one.h"\nint main() { return one(); }').message


def test_pinned_memory_may_be_passed_as_device_memory(run):
    report = run(r"""
#include <cstdio>
__global__ void twice(int* x) { x[threadIdx.x] *= 2; }
int main() {
  int *x, h[8]; for (int i = 0; i < 8; i++) h[i] = i;
  cudaHostAlloc((void**)&x, sizeof h, cudaHostAllocDefault);
  cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice); twice<<<1, 8>>>(x); cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost);
  printf("%d\n", h[7]); cudaFreeHost(x);
}""")
    assert (report.output, report.findings) == ("14\n", [])


def test_a_class_and_a_friend_inside_a_class_template(run):
    report = run(r"""
#include <iostream>
#include <vector>
template <class T, int N> struct Box {
  struct Cell { T v; int at; Cell* next; }; Cell cells[N];
  T sum() { T s = 0; for (int i = 0; i < N; i++) s += cells[i].v; return s; } };
template <typename T> class Matrix { std::vector<T> d; size_t c; public: Matrix(size_t r, size_t c, T v) : d(r * c, v), c(c) {}
  T& operator()(size_t i, size_t j) { return d[i * c + j]; }
  __host__ __device__ friend Matrix operator*(T f, const Matrix& m) { Matrix p = m; for (auto& x : p.d) x *= f; return p; }
  friend std::ostream& operator<<(std::ostream& o, const Matrix& m) { for (auto x : m.d) o << x << ' '; return o; } };
int main() {
  Box<float, 4> b; for (int i = 0; i < 4; i++) { b.cells[i].v = i; b.cells[i].next = &b.cells[0]; }
  Matrix<int> m(1, 3, 7); m(0, 2) = 9; std::cout << b.sum() << ' ' << b.cells[3].next->v << ' ' << m << 2 * m << std::endl; return 0;
}""")
    assert (report.output, report.faults) == ("6 0 7 7 9 14 14 18 \n", []), report.message


def test_variable_templates_and_traits(run):
    report = run(r"""
#include <cstdio>
#include <type_traits>
template <class T> constexpr bool big = sizeof(T) > 4;
template <class T> T third(T x) { if constexpr (std::is_same_v<T, int>) return x / 3; else return x * 2; }
template <class T> std::enable_if_t<std::is_integral_v<T>, T> quarter(T x) { return x / 4; }
int main() {
  printf("%d %d %d %g %d\n", (int)big<int>, (int)big<double>, third(9), third(1.5), quarter(8));
  printf("%d %d\n", (int)std::is_same<int, int>::value, (int)std::is_same<int, float>::value); return 0; }""")
    assert (report.output, report.faults) == ("0 1 3 3 2\n1 0\n", []), report.message


def test_specifiers_before_a_class_apply_to_its_variables(run):
    report = run(r"""
#include <cstdio>
__host__ __device__ struct Matrix { double data[3][3]; __host__ __device__ double at(int i) const { return data[i][i]; } };
static struct Config { int n; float f; } config = {3, 2.5f};
const struct Point { int x, y; } origin = {1, 2};
__constant__ struct Params { int n; } params;
static const struct { int a; } nameless = {7};
static struct Point other(int x) { return {x, x}; }
__global__ void k(int* o) { *o = params.n * 2; }
int main() {
  int h = 21, *d; cudaMemcpyToSymbol(params, &h, sizeof(h)); cudaMalloc(&d, 4);
  k<<<1, 1>>>(d); cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost); cudaFree(d);
  Matrix m = {{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}}; static_assert(alignof(int) == 4, "");
  printf("%g %d %g %d %d %d %d %zu %zu\n", m.at(1), config.n, config.f, origin.y, nameless.a, h, other(9).x, alignof(Matrix), alignof(char));
}
""")
    assert (report.output, report.findings) == ("5 3 2.5 2 7 42 9 8 1\n", []), report.message


def test_a_class_may_overload_the_address_operator(run):
    report = run(r"""
#include <cstdio>
struct Bits { unsigned v; Bits operator&(const Bits& o) const { return {v & o.v}; } };
struct Handle { int* p; int** operator&() { return &p; } };
struct Plain { int n; };
void make(int** q) { static int n = 5; *q = &n; }
int main() { Bits a{6}, b{3}; Bits* pa = &a; printf("%u %u ", (a & b).v, pa->v); Handle h{nullptr}; make(&h); auto r = &h; printf("%d %d ", *h.p, **r); Plain x{4}; Plain* px = &x; printf("%d\n", px->n); }
""")
    assert (report.output, report.findings) == ("2 6 5 5 4\n", []), report.message


ALLOCATED = r"""
#include <cstdio>
#include <cstdlib>
#include <new>
struct Base { static void* operator new(size_t n) { printf("new %zu\n", n); return malloc(n); } static void operator delete(void* p) { puts("delete"); free(p); }
  void* operator new[](size_t n) { printf("new[] %zu\n", n); return malloc(n); } void operator delete[](void* p) { puts("delete[]"); free(p); } };
struct A : Base { int x; double y; A(int v = 3) : x(v), y(v / 2.0) {} virtual ~A() { printf("~A %d\n", x); } };
struct B : A { int z[4]; B() : A(7) { z[2] = 5; } ~B() { printf("~B %d\n", z[2]); } };
int main() { Base* w = new Base[4]; delete[] w; A* a = new A(5); printf("%d %g\n", a->x, a->y); delete a; A* b = new B; delete b; Base* q = new Base; delete q; }
"""
MANAGED = r"""
#include <cstdio>
struct Managed { void* operator new(size_t n) { void* p; cudaMallocManaged(&p, n); return p; } void operator delete(void* p) { cudaFree(p); } };
struct Count : Managed { int n; Count(int n) : n(n) {} __device__ void add(int k) { atomicAdd(&n, k); } };
__global__ void k(Count* c) { c->add(2); }
int main() { Count* c = new Count(5); k<<<1, 32>>>(c); cudaDeviceSynchronize(); printf("%d\n", c->n); FREE }
"""


def test_operator_new_and_delete_of_a_class(run):
    report = run(ALLOCATED)
    assert (
        report.output == "new[] 4\ndelete[]\nnew 24\n5 2.5\n~A 5\ndelete\nnew 40\n~B 5\n~A 7\ndelete\nnew 1\ndelete\n"
    )
    assert not report.findings


def test_an_object_in_managed_memory_by_its_own_operator_new(run):
    report = run(MANAGED.replace("FREE", "delete c;"))
    assert (report.output, report.findings) == ("69\n", []), report.message
    assert [str(f.kind) for f in run(MANAGED.replace("FREE", "")).findings] == ["leak"]


def test_operator_new_of_the_whole_program_is_not_used(run):
    report = run(
        "#include <cstdlib>\nvoid* operator new(size_t n) { return malloc(n); }\nint main() { delete new int; }\n"
    )
    assert any("operator new is supported in classes" in note for note in report.notes)


CONDITIONAL = r"""
#include <cstdio>
#include <string>
struct N { int v; N(int v) : v(v) { printf("+%d ", v); } N(const N& o) : v(o.v) { printf("c%d ", v); } ~N() { printf("-%d ", v); } int get() const { return v; } const N& self() const { return *this; } };
N make(int v) { return N(v); }
int f(const N& a) { return a.v; }
int main() {
  for (int i = 0; i < 3; i++) {
    const char* s = "x";
    printf("%s|", i == 1 ? s : std::to_string(i * 111111111).c_str());
    int k = i == 0 ? make(1).get() : i == 1 ? make(2).get() + make(3).get() : 9; printf("%d\n", k);
    printf("%d ", f(i ? N(4) : make(5))); puts("");
    N n = i == 2 ? make(6) : N(7); printf("[%d]\n", n.v);
    const N& r = i ? N(8) : N(9); printf("<%d>\n", r.v);
    bool b = i && make(10).get() > 3; printf("%d\n", b);
    puts("");
  }
}
"""
SPECIAL = r"""
#include <cstdio>
template <typename T> __host__ __device__ T lowest();
template <> __host__ __device__ float lowest<float>() { return -1.5f; }
template <> __host__ __device__ int lowest<int>() { return -7; }
template <typename T> __host__ __device__ const char* name(T) { return "any"; }
template <> __host__ __device__ const char* name<double>(double) { return "double"; }
template <> __host__ __device__ const char* name(int*) { return "int*"; }
template <int N> __host__ __device__ int fact() { return N * fact<N - 1>(); }
template <> __host__ __device__ int fact<0>() { return 1; }
template <class T, int N> struct V { T v[N]; template <class U> __host__ __device__ U sum() const { U s = 0; for (int i = 0; i < N; i++) s += v[i]; return s; } };
template <bool B> __global__ void k(int* o) { o[0] = fact<5>() + B; o[1] = lowest<int>(); o[2] = (int)(2 * lowest<float>()); }
template <> __global__ void k<false>(int* o) { o[0] = -1; o[1] = fact<3>(); o[2] = 5; }
int main() { int x = 0, h[3], *d; printf("%s %s %s %d %g %d\n", name(1.0), name(&x), name('c'), fact<6>(), lowest<float>(), lowest<int>());
  cudaMalloc(&d, 12); k<true><<<1, 1>>>(d); cudaMemcpy(h, d, 12, cudaMemcpyDeviceToHost); printf("%d %d %d\n", h[0], h[1], h[2]);
  k<false><<<1, 1>>>(d); cudaMemcpy(h, d, 12, cudaMemcpyDeviceToHost); printf("%d %d %d\n", h[0], h[1], h[2]); cudaFree(d);
  V<float, 3> v{{1, 2, 3.5f}}; printf("%g %d\n", v.sum<float>(), v.template sum<int>()); }
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is the reference")
def test_temporaries_of_a_conditional_operator_live_as_long_as_with_a_compiler(run, tmp_path):
    """`b ? s : to_string(i).c_str()` was freed before it was printed."""
    source = tmp_path / "conditional.cpp"
    source.write_text(CONDITIONAL)
    subprocess.run(["g++", "-std=c++17", "-o", tmp_path / "made", source], check=True)
    printed = subprocess.run([tmp_path / "made"], capture_output=True, text=True, check=True).stdout
    report = run(CONDITIONAL)
    assert report.output == printed
    assert not report.findings


def test_explicit_specialisations_of_function_templates_and_kernels(run):
    report = run(SPECIAL)
    assert report.output == "double int* any 720 -1.5 -7\n121 -7 -3\n-1 6 5\n6.5 6\n", report.message
    assert not report.findings


def test_constants_of_template_classes_are_computed_once(run):
    """They took as many steps as the value has units: the limit of time ended this one."""
    report = run("""#include <cstdio>
template <int N> struct Fib { static const long v = Fib<N - 1>::v + Fib<N - 2>::v; };
template <> struct Fib<1> { static const long v = 1; };
template <> struct Fib<0> { static const long v = 0; };
template <int N> struct Same { enum { v = Same<N - 1>::v + Same<N - 2>::v }; };
template <> struct Same<1> { enum { v = 1 }; };
template <> struct Same<0> { enum { v = 0 }; };
int main() { printf("%ld %d\\n", Fib<80>::v, (int)Same<40>::v); }
""")
    assert report.output == "23416728348467685 102334155\n", report.message
