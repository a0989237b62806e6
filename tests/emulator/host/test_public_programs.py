"""Constructs of public programs, each as a small program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewise.emulator.host.process import run_program
from tilewise.emulator.host.program_report import ProgramReport
from tilewise.emulator.host.runtime.faults import Faults
from tilewise.emulator.machine.findings import Finding, Kind
from tilewise.emulator.source.source import Source

pytestmark = pytest.mark.drawn(4)  # each program is compiled in a process, 0.2 to 2 s


@pytest.fixture
def ran(tmp_path):
    def run(text: str, **given: object) -> ProgramReport:
        path = Path(tmp_path) / "program.cu"
        path.write_text("#include <cstdio>\n" + text)
        return run_program(path, capture=True, **given)

    return run


def test_a_launch_may_omit_default_arguments(ran):
    report = ran("""
const int FOUR = 4;
__global__ void scale(float *x, float by = 2, int n = FOUR) { for (int i = 0; i < n; i++) x[i] *= by; }
template <class T> __global__ void fill(T *x, T value = T(3)) { x[threadIdx.x] = value; }
int main() {
  float h[4], *d;
  cudaMalloc(&d, 16);
  fill<<<1, 4>>>(d);
  scale<<<1, 1>>>(d);
  scale<<<1, 1>>>(d, 10.0f);
  cudaMemcpy(h, d, 16, cudaMemcpyDeviceToHost);
  printf("%g %g\\n", h[0], h[3]);
  cudaFree(d);
}
""")
    assert (report.output, report.findings) == ("60 60\n", [])


def test_arguments_after_a_missing_one_are_missing(ran):
    report = ran("""
int main(int argc, char **argv) {
  char *from = argv[1], *to = argv[2];
  FILE *in = fopen(from, "r"), *out = fopen(to, "w");
  fclose(in); fclose(out);
}
""")
    assert (report.wanted, report.findings) == ("arguments", [])


def test_tuples_have_a_member_per_type(ran):
    report = ran("""
#include <tuple>
int twice(const float *x, int n) { return n * 2; }
int main() {
  const std::tuple<const char *, int (*)(const float *, int), unsigned> table[] = {{"a", twice, 3}, {"b", twice, 4}};
  for (const auto &[name, function, n] : table) printf("%s %d\\n", name, function(nullptr, n));
  auto [x, y] = std::make_tuple(1, 2.5);
  auto three = std::make_tuple(4, 'b', 0.5f);
  printf("%d %g %zu %d %c\\n", x, y, sizeof(std::tuple<int, float>), std::get<0>(three), std::get<1>(three));
}
""")
    assert (report.output, report.message) == ("a 6\nb 8\n1 2.5 8 4 b\n", "")


def test_every_status_of_the_runtime_has_its_name_and_text(ran):
    report = ran("""
int main() {
  printf("%s: %s\\n", cudaGetErrorName(cudaErrorInvalidPc), cudaGetErrorString(cudaErrorInvalidPc));
  printf("%s %d\\n", cudaGetErrorString(cudaErrorMisalignedAddress), cudaErrorNoKernelImageForDevice);
}
""")
    assert report.output == "cudaErrorInvalidPc: invalid program counter\nmisaligned address 209\n"


@pytest.mark.parametrize("reading", ['scanf("%d", &n);', "std::cin >> n;"])
def test_faults_caused_by_missing_input_are_not_reported(ran, reading):
    text = "#include <iostream>\nint main() {\n  int n;\n  " + reading + '\n  printf("%d\\n", 100 / n);\n}\n'
    report = ran(text, stdin=b"")
    assert (report.findings, report.message) == (
        [],
        "line 6: the program wants input and was given none: tilewise run FILE < INPUT",
    )
    assert ran(text, stdin=b"20").output == "5\n"


def test_faults_of_a_program_that_checks_its_input_are_reported(ran):
    report = ran("""
__global__ void twice(float* x, int n) {
  int i = threadIdx.x;
  if (i <= n) x[i] = 2 * i;
}
int main() {
  int n;
  if (scanf("%d", &n) != 1) n = 20;
  float* x;
  cudaMalloc(&x, n * sizeof(float));
  twice<<<1, 32>>>(x, n);
  cudaFree(x);
}
""", stdin=b"")  # fmt: skip
    assert [f.kind.value for f in report.faults] == ["out-of-bounds"]


def test_a_loop_to_the_end_of_an_empty_input_is_right(ran):
    report = ran("""
#include <iostream>
int main() {
  long s = 0;
  for (int x; scanf("%d", &x) == 1;) s += x;
  for (int x; std::cin >> x;) s += x;
  printf("%ld\\n", s);
}
""", stdin=b"")  # fmt: skip
    assert (report.output, report.findings, report.message) == ("0\n", [], "")


def test_programs_of_the_first_samples_find_their_library(ran, tmp_path):
    (tmp_path / "numbers.txt").write_text("1.5 2 3\n")
    report = ran("""
#include <stdlib.h>
#include <math.h>
#include <string.h>
#include <cutil.h>
int main(int argc, char **argv) {
  unsigned timer, n = 0;
  float *a = NULL, b[3] = {1.5f, 2, 3.001f};
  CUT_DEVICE_INIT(argc, argv);
  CUT_SAFE_CALL(cutCreateTimer(&timer));
  cutStartTimer(timer);
  CUTBoolean read = cutReadFilef("numbers.txt", &a, &n, true);
  cutStopTimer(timer);
  printf("%d %u %g %d %d\\n", read, n, a[0], cutComparefe(a, b, n, 0.01f), cutComparef(a, b, n));
  int *i = NULL;
  cutReadFilei("numbers.txt", &i, &n);
  printf("%d %d %d\\n", cutGetTimerValue(timer) > 0, i[0], i[2]);
  cutFree(i);
  cutFree(a);
  CUT_EXIT(argc, argv);
}
""")
    assert (report.output, report.message) == ("1 3 1.5 1 0\n1 1 3\n", "")


def test_a_line_is_reported_once_by_the_interpreted_and_the_compiled_kernel():
    text = "y[i] = x[i];\n" * 3
    faults = Faults(Source("program.cu", text))
    kind = Kind.UNINITIALISED_READ
    for line, access in ((1, "kernel"), (2, "load"), (3, "kernel"), (1, "read")):
        faults.add(kind, line, f"compiled {access}", access=access)
    for line in (1, 2):
        faults.add_kernel(Finding(kind, "interpreted", faults.place(line), "x", "read", count=1))
    found = sorted((f.line, f.message) for f in faults.all())
    assert found == [(1, "compiled read"), (1, "interpreted"), (2, "interpreted"), (3, "compiled kernel")]


def test_a_stream_that_was_destroyed_and_an_event_that_was_never_recorded_are_named(ran):
    report = ran("""
__global__ void fill(float *x) { x[threadIdx.x] = 1; }
int main() {
  float *x, h[4], ms;
  cudaStream_t s, t;
  cudaEvent_t start, stop;
  cudaMalloc(&x, 16);
  cudaStreamCreate(&s); cudaStreamCreate(&t);
  cudaEventCreate(&start); cudaEventCreate(&stop);
  cudaEventRecord(start, s);
  fill<<<1, 4, 0, s>>>(x);
  cudaStreamSynchronize(s);
  cudaStreamDestroy(s);
  fill<<<1, 4, 0, s>>>(x);
  fill<<<1, 4, 0, t>>>(x); fill<<<1, 4, 0, cudaStreamPerThread>>>(x);
  cudaStreamDestroy(t);
  cudaMemcpy(h, x, 16, cudaMemcpyDeviceToHost);
  cudaEventElapsedTime(&ms, start, stop);
  printf("%g %g\\n", h[3], ms);
  cudaFree(x);
}
""")
    assert [(str(f.kind), f.line, f.array, f.message) for f in report.findings] == [
        ("argument", 15, "", "this stream was destroyed at line 14"),
        ("argument", 19, "stop", "stop was never recorded, so there is no time between the two"),
    ]


def test_uninitialised_elements_are_counted_beyond_the_first_megabyte(ran):
    report = ran("""
__global__ void fill(float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] = 1; }
int main() {
  int n = 300100;
  float *x, *h = (float *)malloc(n * 4), s = 0;
  cudaMalloc(&x, n * 4);
  fill<<<n / 1000, 1000>>>(x);
  cudaMemcpy(h, x, n * 4, cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; i++) s += h[i];
  printf("%g\\n", s);
  free(h); cudaFree(x);
}
""")
    (found,) = report.findings
    assert found.message.startswith("100 of 300100 elements of x are stored by no thread, first x[300000]")


def test_static_variables_and_references_take_their_type_from_their_value(ran):
    report = ran("""
#include <chrono>
int twice(int n) { return 2 * n; }
struct C { static int three() { return 3; } };
int counted() { static auto n = 0; static auto &same = n; const static auto step = 2L; same += step; return n; }
int table[3] = {1, 2, 3};
auto &first = table[0];
int main() {
  constexpr static auto &g = C::three;
  constexpr static auto &now = std::chrono::steady_clock::now;
  static const auto &f = twice;
  auto t = now();
  counted();
  first = 7;
  printf("%d %d %d %d\\n", f(4), g(), counted(), table[0]);
}
""")
    assert (report.output, report.message) == ("8 3 4 7\n", "")


def test_vectors_of_one_value_and_of_a_shorter_one_in_kernels(ran):
    report = ran("""
#include <helper_math.h>
__global__ void sums(float *out) {
  float4 a = make_float4(3.0f), b = make_float4(make_float3(1, 2, 3), 4);
  float3 c = make_float3(b);
  out[0] = a.x + a.y + a.z + a.w; out[1] = b.x * 1000 + b.y * 100 + b.z * 10 + b.w; out[2] = c.z;
}
int main() {
  float h[3], *out;
  cudaMalloc(&out, 12);
  sums<<<1, 1>>>(out);
  cudaMemcpy(h, out, 12, cudaMemcpyDeviceToHost);
  printf("%g %g %g\\n", h[0], h[1], h[2]);
  cudaFree(out);
}
""")
    assert (report.output, report.findings) == ("12 1234 3\n", [])


def test_a_vector_takes_its_memory_from_the_programs_allocator(ran):
    report = ran("""
#include <vector>
template <class T> struct Managed {
  using value_type = T;
  T *allocate(size_t n) { T *p = nullptr; cudaMallocManaged(&p, n * sizeof(T)); return p; }
  void deallocate(T *p, size_t n) { cudaFree(p); }
};
template <class T, class A> T sum(const std::vector<T, A> &v) { T s = 0; for (T x : v) s += x; return s; }
__global__ void count(int *a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = i; }
int main() {
  std::vector<int, Managed<int>> a(100);
  count<<<4, 32>>>(a.data(), 100);
  cudaDeviceSynchronize();
  std::vector<int> b(a.begin(), a.end());
  a.resize(101);
  std::allocator<int> plain;
  int *p = plain.allocate(2);
  p[1] = 5;
  printf("%d %d %d %d\\n", sum(a), sum(b), a[100], p[1]);
  plain.deallocate(p, 2);
}
""")
    assert (report.output, report.findings) == ("4950 4950 0 5\n", [])


def test_an_overrun_vector_is_named(ran):
    report = ran("""
#include <vector>
void fill(std::vector<float> &v, int n) { for (int i = 0; i <= n; i++) v[i] = i; }
int main() {
  std::vector<float> a(10), b(10, 1.0f), c(10);
  std::vector<int> grown;
  grown.push_back(1);
  fill(b, 10);
  printf("%d\\n", grown[1]);
}
""")
    assert [(f.line, f.array) for f in report.faults] == [(4, "b"), (10, "grown")]


def test_what_a_program_leaves_behind_that_lacks_a_file_is_no_leak(ran):
    program = """
#include <cstdlib>
int main(int argc, char **argv) {
  float *h = (float *)malloc(400), *d;
  cudaMalloc(&d, 400);
  FILE *in = fopen("data.bin", "rb");
  if (!in) END;
  free(h);
  cudaFree(d);
}
"""
    for end in ("exit(1)", "return 1", "abort()"):
        report = ran(program.replace("END", end))
        assert report.findings == []
        assert report.status
        assert report.wanted == ("" if end == "abort()" else "the file data.bin")
    assert [f.kind for f in ran(program.replace("END", "return 0")).findings] == [Kind.LEAK, Kind.LEAK]
    assert ran("int main(int argc, char **argv) { return argc < 2; }").wanted == "arguments"


def test_a_class_template_is_a_template_argument(ran):
    report = ran("""
template <class T> struct Max { __device__ T operator()(T a, T b) const { return a > b ? a : b; } };
template <class T> struct Sum { __host__ __device__ T operator()(T a, T b) const { return a + b; } };
template <template <typename> class Op, typename T, int width = 32> __device__ T all(T v) {
  for (int m = width / 2; m > 0; m /= 2) v = Op<T>()(v, __shfl_xor_sync(0xffffffff, v, m, width));
  return v;
}
template <template <class> class Op, class T> struct Fold { Op<T> op; T of(T a, T b) { return op(a, b); } };
template <template <class> class C, class T> T both(const C<T> &op) { return op(T(4), T(5)); }
__global__ void reduce(int *x) {
  int least = all<Max, int>(x[threadIdx.x]), sum = all<Sum>(x[threadIdx.x]);
  if (threadIdx.x == 0) { x[32] = least; x[33] = sum; }
}
int main() {
  int h[32], *d;
  for (int i = 0; i < 32; i++) h[i] = i;
  cudaMalloc(&d, 2 * sizeof h);
  cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice);
  reduce<<<1, 32>>>(d);
  cudaMemcpy(h, d + 32, 8, cudaMemcpyDeviceToHost);
  Fold<Sum, double> fold;
  printf("%d %d %g %d\\n", h[0], h[1], fold.of(1.5, 2), both(Sum<int>()));
  cudaFree(d);
}
""")
    assert (report.output, report.findings) == ("31 496 3.5 9\n", [])


def test_arrays_of_arrays_are_initialised_without_inner_braces(ran):
    report = ran(
        "#include <cstdio>\n__constant__ float mask[3][3] = {0, 1, 0, 1, 4, 1, 0, 1};\n"
        "__global__ void k(float* p) { p[threadIdx.x] = mask[threadIdx.x / 3][threadIdx.x % 3]; }\n"
        "int main() { int a[2][2][2] = {1, 2, 3, 4, 5, 6, 7}; float *p, h[9]; cudaMalloc(&p, 36); k<<<1, 9>>>(p);\n"
        '  cudaMemcpy(h, p, 36, cudaMemcpyDeviceToHost); cudaFree(p); for (float x : h) printf("%g ", x);\n'
        '  printf("%d %d %d\\n", a[0][1][1], a[1][1][0], a[1][1][1]); }\n'
    )
    assert (report.output, report.findings) == ("0 1 0 1 4 1 0 1 0 4 7 0\n", [])
    assert ran("int main() { int a[2][2] = {1, 2, 3, 4, 5}; return a[0][0]; }\n").ended == "refused"


def test_strncmp_and_strncpy_read_at_most_n_bytes(ran):
    start = "#include <cstdio>\n#include <cstring>\nint main() { char magic[2] = {'P', '6'}, to[4];\n"
    report = ran(start + 'strncpy(to, magic, 2); to[2] = 0; printf("%s %d", to, strncmp(magic, "P61", 2)); }\n')
    assert (report.output, report.findings) == ("P6 0", [])
    report = ran(start + 'printf("%d", strncmp(magic, "P61", 3)); }\n')
    assert [(f.kind.value, f.place.line) for f in report.findings] == [("out-of-bounds", 5)]


def test_default_arguments_and_member_initialisers_do_not_name_variables_of_the_caller(ran):
    report = ran(
        "#include <cstdio>\nint n = 5;\nint f(int a = n) { return a; }\nstruct S { int v = n; S(int n) {} };\n"
        "__global__ void k(int* p, int a = n) { *p = a; }\nstruct P { int x = n, y; };\n"
        "int main() { int n = 7, h, *p; S s(9); P pair{}; cudaMalloc(&p, 4); k<<<1, 1>>>(p);\n"
        "  cudaMemcpy(&h, p, 4, cudaMemcpyDeviceToHost); cudaFree(p);\n"
        '  printf("%d %d %d %d %d", f(), s.v, pair.x, h, n); }\n'
    )
    assert (report.output, report.findings) == ("5 5 5 5 7", [])


def test_a_function_that_is_declared_below_its_use_is_refused(ran):
    program = """
struct S { int f() { return g(); } int g() { return 4; } };
BEFORE
template <class T> T use(T x) { return below(x); }
__global__ void k(int *x) { x[threadIdx.x] = DEVICE(threadIdx.x); }
__device__ int twice(int v) { return 2 * v; }
int main() {
  int h[4], *d;
  cudaMalloc(&d, 16);
  k<<<1, 4>>>(d);
  cudaMemcpy(h, d, 16, cudaMemcpyDeviceToHost);
  printf("%d %d %d\\n", S().f(), below(1), h[3]);
  cudaFree(d);
}
int below(int x) { return x + 1; }
"""
    declared = "int below(int); __device__ int twice(int);"
    assert ran(program.replace("BEFORE", declared).replace("DEVICE", "twice")).output == "4 2 6\n"
    host = ran(program.replace("BEFORE", "").replace("DEVICE", ""))
    assert ": below is declared at line 16, below its use: declare it above" in host.message
    kernel = ran(program.replace("BEFORE", "int below(int);").replace("DEVICE", "twice"))
    assert ": twice is declared at line 7, below its use: declare it above" in kernel.message


def test_a_null_pointer_that_was_loaded_from_unset_memory_is_no_second_fault(ran):
    report = ran("""
__global__ void set(double **rows, int n) {
  double *row = rows[threadIdx.x];
  for (int i = 0; i < n; i++) row[i] = i;
}
int main() {
  double **rows;
  cudaMalloc(&rows, 4 * sizeof(double *));
  set<<<1, 4>>>(rows, 10);
  cudaDeviceSynchronize();
  cudaFree(rows);
}
""")
    assert [(f.kind, f.line, f.array) for f in report.faults] == [(Kind.UNINITIALISED_READ, 4, "rows")]


def test_a_lambda_without_captures_is_a_function_pointer(ran):
    report = ran("""
#include <cstdlib>
enum class State { off, on };
int number(State s) { switch (s) { case (State::on): return 1; case (State::off): return 2; } return 0; }
int apply(int (*f)(int), int x) { return f(x); }
struct Op { const char *name; double (*f)(double, double); };
const int base = 10;
int main() {
  auto generic = [](auto x) { return x + base; };
  int (*f)(int) = generic, (*table[])(int) = {f, [](int v) { return -v; }};
  Op ops[] = {{"+", [](double a, double b) { return a + b; }}, {"*", [](double a, double b) { return a * b; }}};
  int v[] = {3, 1, 2};
  qsort(v, 3, sizeof(int), [](const void *a, const void *b) { return *(const int *)a - *(const int *)b; });
  printf("%d %d %d ", apply([](int x) { return 2 * x; }, 4), table[0](1), table[1](5));
  for (auto &o : ops) printf("%s %g ", o.name, o.f(3, 4));
  printf("%d %d %d, %d %d\\n", v[0], v[1], v[2], number(State::on), number(State::off));
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  auto call = [](cudaStream_t, cudaError_t status, void *) { printf("%s\\n", cudaGetErrorString(status)); };
  cudaStreamAddCallback(stream, call, nullptr, 0);
  cudaStreamDestroy(stream);
}
""")
    assert (report.output, report.message) == ("8 11 -5 + 7 * 12 1 2 3, 1 2\nno error\n", "")
    captures = ran(
        "int apply(int (*f)(int)) { return f(1); }\nint main() { int n = 1; apply([n](int x) { return n; }); }"
    )
    assert "no apply takes (lambda at line 3)" in captures.message


def test_a_bracket_that_closes_nothing_is_refused(ran):
    assert ":3:1: this } closes nothing" in ran("int main() { return 0; }\n}\n").message


def test_an_alias_in_a_function_names_its_constants(ran):
    report = ran("""
#include <curand_kernel.h>
template <typename T, int N> struct Vec { T val[N]; };
template <typename T> struct Dist { static constexpr int count = 1; };
template <> struct Dist<float> { static constexpr int count = 4; };
template <typename T> __global__ void set(T *x) {
  constexpr int n = Dist<float>::count;
  using V = Vec<float, n>;
  V *v = reinterpret_cast<V *>(x);
  for (int i = 0; i < n; i++) v[threadIdx.x].val[i] = i + n;
}
__global__ void draw(float *x) {
  curandStatePhilox4_32_10_t state;
  curand_init(1, threadIdx.x, 0, &state);
  float4 r = curand_uniform4(&state);
  x[threadIdx.x] = r.x > 0 && r.w <= 1 && r.x != r.y;
}
int main() {
  constexpr int m = Dist<float>::count + 1;
  typedef Vec<char, m> W;
  float h[8], *d;
  cudaMalloc(&d, sizeof h);
  set<float><<<1, 2>>>(d);
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  printf("%zu %g ", sizeof(W), h[7]);
  draw<<<1, 8>>>(d);
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  printf("%g\\n", h[7]);
  cudaFree(d);
}
""")
    assert (report.output, report.message) == ("5 7 1\n", "")


PAUSE = """
#include <iostream>
__global__ void set(int* a) { a[threadIdx.x] = 3; }
int main() {
  int *a, h[4], n = 8;
  READ
  cudaMalloc(&a, sizeof h);
  set<<<1, n>>>(a);
  cudaMemcpy(h, a, sizeof h, cudaMemcpyDeviceToHost);
  printf("%d", h[0]);
  cudaFree(a);
  PAUSE
}
"""


@pytest.mark.parametrize("pause", ["getchar();", "std::cin.get();"])
def test_a_pause_at_the_end_is_no_missing_input(ran, pause):
    text = PAUSE.replace("PAUSE", pause)
    report = ran(text.replace("READ", ""))
    assert (report.wanted, report.exit_code, [f.line for f in report.faults]) == ("", 1, [4])
    assert ran(text.replace("READ", 'scanf("%d", &n);')).wanted == "input"


def test_an_assertion_about_arguments_that_were_not_given_is_no_fault(ran):
    text = """
#include <cassert>
#include <cstdlib>
int main(int argc, char **argv) {
  assert(argc == 2);
  int n = atoi(argv[1]);
  assert(n > 2);
  printf("%d", n);
}
"""
    report = ran(text)
    assert (report.wanted, report.findings) == ("arguments", [])
    (finding,) = ran(text, arguments=["1"]).findings
    assert (finding.kind, finding.line) == ("assertion", 8)


def test_an_assertion_about_data_that_was_made_up_is_no_fault(ran):
    report = ran("""
#include <cassert>
#include <wb.h>
int main(int argc, char **argv) {
  wbArg_t args = wbArg_read(argc, argv);
  int length;
  float *data = (float *)wbImport(wbArg_getInputFile(args, 0), &length);
  assert(length == (int)data[0]);
}
""")
    assert (report.wanted, report.findings) == ("the file 0 of the data set", [])


@pytest.mark.parametrize("name", ["char name[64]", "std::string name"])
def test_a_name_that_no_input_gave_is_missing_input(ran, name):
    report = ran(f"""
#include <iostream>
#include <string>
int main() {{
  {name};
  int width;
  std::cin >> name;
  FILE *in = fopen(&name[0], "rb");
  fread(&width, 4, 1, in);
  printf("%d", width);
}}
""")
    assert (report.wanted, report.findings) == ("input", [])
