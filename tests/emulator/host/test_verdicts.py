"""Programs as students write them, one mistake each: the first finding names line, variable and correction."""

from __future__ import annotations

import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(4)  # each program is compiled in a process, 0.3 to 1 s

START = """\
#include <cstdio>
#include <cstdlib>
__global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
int main() {
  int n = 1000;
  size_t bytes = n * sizeof(float);
  float *a = (float*)malloc(bytes), *b = (float*)malloc(bytes), *c = (float*)malloc(bytes), *da, *db, *dc;
  for (int i = 0; i < n; i++) a[i] = b[i] = i;
"""
PARTS = {
    "allocate": "  cudaMalloc(&da, bytes); cudaMalloc(&db, bytes); cudaMalloc(&dc, bytes);\n",
    "in": "  cudaMemcpy(da, a, bytes, cudaMemcpyHostToDevice); cudaMemcpy(db, b, bytes, cudaMemcpyHostToDevice);\n",
    "launch": "  add<<<(n + 255) / 256, 256>>>(da, db, dc, n);\n",
    "out": "  cudaMemcpy(c, dc, bytes, cudaMemcpyDeviceToHost);\n",
}  # of lines 12 to 15
END = """\
  double s = 0;
  for (int i = 0; i < n; i++) s += c[i];
  printf("%g\\n", s);
  cudaFree(da); cudaFree(db); cudaFree(dc);
  free(a); free(b); free(c);
}
"""


def program(**changed):
    return START + "".join({**PARTS, **changed}.values()) + END


SUM = """\
#include <cstdio>
__global__ void total(const int* x, int* s, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  LINE
}
int main() {
  int h[256], r[8] = {0}, *x, *s;
  for (int i = 0; i < 256; i++) h[i] = i % 8;
  cudaMalloc(&x, sizeof h);
  cudaMalloc(&s, sizeof r);
  cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice);
  cudaMemset(s, 0, sizeof r);
  total<<<2, 128>>>(x, s, 256);
  cudaMemcpy(r, s, sizeof r, cudaMemcpyDeviceToHost);
  printf("%d\\n", r[0]);
  cudaFree(x); cudaFree(s);
}
"""
PINNED = """\
#include <cstdio>
__global__ void twice(float* x) { x[threadIdx.x] *= 2; }
int main() {
  float *h, *d;
  cudaMallocHost(&h, 256);
  cudaMalloc(&d, 256);
  for (int i = 0; i < 64; i++) h[i] = i;
  cudaStream_t s;
  cudaStreamCreate(&s);
  cudaMemcpyAsync(d, h, 256, cudaMemcpyHostToDevice, s);
  twice<<<1, 64, 0, s>>>(d);
  cudaMemcpyAsync(h, d, 256, cudaMemcpyDeviceToHost, s);
  WAIT
  printf("%g\\n", h[3]);
  cudaStreamDestroy(s);
  cudaFree(d); cudaFreeHost(h);
}
"""
# program, kind, line, variable, part of the hint
MISTAKES = {
    "one copy of two on a line": (
        program(**{"in": PARTS["in"].replace("(db, b", "(da, b")}), "uninitialised-read", 5, "b", "copied into db",
    ),
    "the second of three mallocs": (
        program().replace("s = 0;", "s = b[n];"), "out-of-bounds", 16, "b", "length",
    ),
    "a grid rounded down": (
        program(launch="  add<<<n / 256, 256>>>(da, db, dc, n);\n"), "uncovered", 14, "dc", "round the grid up",
    ),
    "copied back before the launch": (
        program(launch=PARTS["out"], out=PARTS["launch"]), "uninitialised-read", 14, "dc", "after the launch",
    ),
    "the wrong direction": (
        program(out="  cudaMemcpy(c, dc, bytes, cudaMemcpyHostToDevice);\n"), "copy", 15, "c", "cudaMemcpyDeviceToHost",
    ),
    "a copy of n bytes to the card": (
        program(**{"in": PARTS["in"].replace("(db, b, bytes", "(db, b, n")}),
        "uninitialised-read", 5, "b", "line 13 gave db 1000 of its 4000 bytes",
    ),
    "a copy of n bytes to the host": (
        program(out="  cudaMemcpy(c, dc, n, cudaMemcpyDeviceToHost);\n"),
        "uninitialised-read", 17, "c", "line 15 gave c 1000 of its 4000 bytes",
    ),
    "the address of a pointer": (
        program(out="  cudaMemcpy(c, &dc, bytes, cudaMemcpyDeviceToHost);\n"), "copy", 15, "c", "give dc itself",
    ),
    "a histogram": (SUM.replace("LINE", "if (i < n) s[x[i]]++;"), "race", 4, "s", "atomicAdd(&s[x[i]]"),
    "a sum": (SUM.replace("LINE", "*s = *s + x[i];"), "race", 4, "s", "atomicAdd(s"),
    "a maximum": (SUM.replace("LINE", "if (x[i] > s[0]) s[0] = x[i];"), "race", 4, "s", "atomicMax(&s[0]"),
    "no wait for a copy": (PINNED.replace("WAIT", ""), "not-synchronised", 14, "h", "cudaStreamSynchronize"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_the_first_finding_is_the_mistake(name, tmp_path):
    from tilewise.teaching.trace.program_text import ordered

    text, kind, line, variable, change = MISTAKES[name]
    (tmp_path / "p.cu").write_text(text)
    found = ordered(run_program(tmp_path / "p.cu", capture=True))
    assert found, name
    first = found[0]
    assert (str(first.kind), first.line, first.array) == (kind, line, variable), [str(f) for f in found]
    assert change in first.hint


def test_symptoms_point_to_the_copy_that_failed(tmp_path):
    text = program(**{"in": "  cudaMemcpy(a, da, bytes, cudaMemcpyHostToDevice);\n"})
    (tmp_path / "p.cu").write_text(text)
    report = run_program(tmp_path / "p.cu", capture=True)
    unread = next(f for f in report.findings if f.array == "a" and str(f.kind) == "uninitialised-read")
    assert "the copy at line 13 failed" in unread.hint


@pytest.mark.parametrize("wait", ["cudaStreamSynchronize(s);", "cudaDeviceSynchronize();", "cudaStreamQuery(s);"])
def test_a_copy_may_be_read_after_synchronisation(wait, tmp_path):
    (tmp_path / "p.cu").write_text(PINNED.replace("WAIT", wait))
    report = run_program(tmp_path / "p.cu", capture=True)
    assert (report.output, report.faults) == ("6\n", [])


def test_an_input_that_is_only_read_is_not_to_be_copied_back(tmp_path):
    """Whether the kernel is interpreted or compiled."""
    text = START.replace("const float*", "float*") + "".join(PARTS[p] for p in ("allocate", "in", "launch")) + "}\n"
    (tmp_path / "p.cu").write_text(text)
    from tilewise.emulator.host.options import Options

    for interpret in (4.0, 0.0):
        report = run_program(tmp_path / "p.cu", [], Options(interpret=interpret), capture=True)
        assert [f.array for f in report.findings if str(f.kind) == "not-copied-back"] == ["dc"]


STEPS = """\
#include <cstdio>
__device__ float* table;
__global__ void publish(float* t) { table = t; }
__global__ void half_of(const float* a) { table[threadIdx.x] = a[threadIdx.x] / 2; }
__global__ void twice(const float* a, float* b) { b[threadIdx.x] = a[threadIdx.x] * 2; }
int main() {
  float *in, *between, *out;
  cudaMallocManaged(&in, 32); cudaMallocManaged(&out, 32); cudaMalloc(&between, 32);
  for (int i = 0; i < 8; i++) in[i] = i;
  publish<<<1, 1>>>(between);
  half_of<<<1, 8>>>(in);
  twice<<<1, 8>>>(between, out);
  cudaDeviceSynchronize();
  printf("%g\\n", out[3]);
  cudaFree(in); cudaFree(between); cudaFree(out);
}
"""


def test_results_in_managed_memory_and_device_pointers_in_symbols(tmp_path):
    """If the last kernel stores to managed memory, intermediate arrays need not be copied back."""
    (tmp_path / "p.cu").write_text(STEPS)
    report = run_program(tmp_path / "p.cu", capture=True)
    assert (report.output, report.findings) == ("3\n", []), report.message


def test_simulated_time_does_not_depend_on_how_a_launch_is_run(tmp_path):
    """The cost model counts statements and sectors in compiled blocks, too."""
    from tilewise.emulator.host.options import Options

    (tmp_path / "p.cu").write_text(
        """
__global__ void mul(const float* a, const float* b, float* c, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int k = 0; k < n; k++) s += a[row * n + k] * b[k * n + col];
  c[row * n + col] = s;
}
int main() {
  float *a, *b, *c;
  cudaMalloc(&a, 65536); cudaMalloc(&b, 65536); cudaMalloc(&c, 65536);
  cudaMemset(a, 0, 65536); cudaMemset(b, 0, 65536);
  mul<<<dim3(8, 8), dim3(16, 16)>>>(a, b, c, 128);
}
"""
    )
    interpreted, compiled = (
        run_program(tmp_path / "p.cu", [], Options(interpret=seconds), capture=True).launches[0] for seconds in (4, 0)
    )
    assert compiled["compiled_blocks"] == 64
    assert compiled["microseconds"] == pytest.approx(interpreted["microseconds"], rel=0.5)


def test_a_missing_argument_is_no_fault(tmp_path):
    (tmp_path / "p.cu").write_text("#include <cstdlib>\nint main(int argc, char** argv) { return atoi(argv[1]); }\n")
    report = run_program(tmp_path / "p.cu", capture=True)
    assert (report.findings, report.wanted, report.status) == ([], "arguments", 139)
    assert "tilewise run FILE -- ARGUMENTS" in report.message
    assert run_program(tmp_path / "p.cu", ["7"], capture=True).status == 7


def test_missing_input_is_named(tmp_path):
    from tilewise.teaching.trace.program_text import program_text

    (tmp_path / "p.cu").write_text(
        '#include <cstdio>\nint main() { int n, k = 0; scanf("%d", &n); while (k < n) k++; printf("%d\\n", k); }\n'
    )
    report = run_program(tmp_path / "p.cu", capture=True)
    assert (report.wanted, report.exit_code, report.faults) == ("input", 1, [])
    assert program_text(report).startswith("line 2: the program wants input and was given none")
    report = run_program(tmp_path / "p.cu", capture=True, stdin=b"4")
    assert (report.output, report.wanted, report.findings) == ("4\n", "", [])


def test_getchar_reads_what_scanf_left(tmp_path):
    """scanf reads a character ahead; the usual loop to the end of the line must find it."""
    main = 'int n; scanf("%d", &n); while (getchar() != 10); printf("%d %c", n, getchar());'
    (tmp_path / "p.cu").write_text("#include <cstdio>\nint main() { " + main + " }\n")
    assert run_program(tmp_path / "p.cu", capture=True, stdin=b"4\nxy\nz").output == "4 x"


def test_a_character_pushed_back_is_read_next(tmp_path):
    """Also on stdin, which cannot be sought, and where it is another than the one that was read; fseek drops it."""
    main = """
  int c, n = 0; while ((c = getchar()) >= '0' && c <= '9') n = 10 * n + c - '0';
  printf("%d %d ", n, ungetc(c, stdin)); printf("%c", getchar());
  ungetc('#', stdin); printf("%c %d\\n", getchar(), ungetc(EOF, stdin));
  FILE* f = fopen("t.txt", "w+"); fputs("abcdef", f); rewind(f); getc(f); getc(f); ungetc('Z', f);
  printf("%ld ", ftell(f)); fseek(f, 1, SEEK_CUR); printf("%c ", getc(f)); while (getc(f) != EOF);
  printf("%d ", feof(f)); clearerr(f); printf("%d\\n", feof(f)); fclose(f);"""
    (tmp_path / "p.cu").write_text("#include <cstdio>\nint main() { " + main + " }\n")
    assert run_program(tmp_path / "p.cu", capture=True, stdin=b"12+3").output == "12 43 +# -1\n1 c 1 0\n"


def test_fgets_of_one_byte_reads_nothing(tmp_path):
    main = "char x[4] = {'x'}; bool same = fgets(x, 1, stdin) == x; printf(\"%d %d %c\", same, x[0], getchar());"
    (tmp_path / "p.cu").write_text("#include <cstdio>\nint main() { " + main + " }\n")
    assert run_program(tmp_path / "p.cu", capture=True, stdin=b"4\n").output == "1 0 4"


def test_random_bytes_of_the_system_are_the_same_in_every_run(tmp_path):
    (tmp_path / "p.cu").write_text(
        """
#include <cstdio>
#include <fstream>
int main() {
  unsigned one = 0, two = 0;
  FILE* f = fopen("/dev/urandom", "rb");
  fread(&one, 4, 1, f);
  fclose(f);
  std::ifstream g("/dev/urandom", std::ios::binary);
  g.read((char*)&two, 4);
  printf("%d %u\\n", one == two && one != 0, one);
}
"""
    )
    first, second = (run_program(tmp_path / "p.cu", capture=True) for _ in range(2))
    assert first.output.startswith("1 ")
    assert (first.output, first.findings, first.notes) == (second.output, [], [])


def test_an_unsupported_kernel_is_refused_even_if_its_launch_fails(tmp_path):
    (tmp_path / "p.cu").write_text(
        "__global__ void k(int* x) { x[0] = undeclared; }\nint main() { k<<<1, 4096>>>(0); return 0; }\n"
    )
    report = run_program(tmp_path / "p.cu", capture=True)
    assert (report.ended, report.status) == ("refused", 2)
    assert "undeclared is not declared" in report.message


def test_an_unknown_type_is_named(tmp_path):
    (tmp_path / "p.cu").write_text("int f(int n, Matrix m) { return n; }\nint main() { return f(0, 1); }\n")
    report = run_program(tmp_path / "p.cu", capture=True)
    assert "1:14: Matrix is not a type that is known here" in report.message
    (tmp_path / "p.cu").write_text("__global__ void k(flaot* x) { }\nint main() { return 0; }\n")
    report = run_program(tmp_path / "p.cu", capture=True)
    assert "not used" in report.notes[0]
    assert "flaot is not a type that is known here" in report.notes[0]


def test_a_preprocessor_branch_for_other_cards_is_not_checked(tmp_path):
    from tilewise.teaching.trace import check

    (tmp_path / "p.cu").write_text(
        """
__global__ void k(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = i; }
int main() {
  cudaDeviceProp prop;
  cudaGetDeviceProperties(&prop, 0);
  float h[64], *x;
  cudaMalloc(&x, 256);
  if (prop.major < 2) k<<<1, 4096>>>(x, 64);
  else k<<<1, 64>>>(x, 64);
  cudaMemcpy(h, x, 256, cudaMemcpyDeviceToHost);
  cudaFree(x);
}
"""
    )
    report = check(tmp_path / "p.cu")
    assert (report.findings, report.not_judged) == ((), {}), report


def test_a_kernel_is_compiled_for_the_card(tmp_path):
    """Its branch of #if, interpreted and compiled; the host has no __CUDA_ARCH__."""
    from tilewise.emulator.host.options import Options

    (tmp_path / "p.cu").write_text(
        """
#include <cstdio>
#ifdef __CUDA_ARCH__
#error the host
#endif
__global__ void k(int* x) {
#if __CUDA_ARCH__ >= 800
  x[threadIdx.x] = 8;
#else
  x[threadIdx.x] = __CUDA_ARCH__;
#endif
}
int main() {
  int *d, h[32];
  cudaMalloc(&d, sizeof h);
  k<<<1, 32>>>(d);
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  printf("%d", h[3]);
  cudaFree(d);
}
"""
    )
    for card, interpret, expected in (("t4", 4.0, "750"), ("t4", 0.0, "750"), ("a100", 4.0, "8")):
        report = run_program(tmp_path / "p.cu", [], Options(card=card, interpret=interpret), capture=True)
        assert (report.output, report.findings) == (expected, []), report.message


def test_libraries_give_the_values_of_the_originals(tmp_path):
    """seed_seq and drand48 have g++'s and glibc's values."""
    (tmp_path / "p.cu").write_text(
        """
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <cublas_v2.h>
#include <cuda_fp16.h>
#define SUM(a, b, c, d, e, f, g, h, i) (a + b + c + d + e + f + g + h + i)
struct Grid { float m[2]; int n; };
int main() {
  std::cin.tie(nullptr);
  std::seed_seq q{1, 2, 3, 4, 5};
  std::mt19937 g(q);
  std::mt19937_64 big(q);
  srand48(7);
  unsigned seed = 3;
  std::cout << g() << " " << big() << " " << drand48() << " " << lrand48() << " " << rand_r(&seed) << std::endl;
  cudaDeviceProp prop = {0};
  Grid grid = {1, 2, 3};
  std::cout << std::pow<long, long>(3, 4) << " " << prop.major << prop.name << grid.n << SUM(1, 2, 3, 4, 5, 6, 7, 8, 9);
  __half one = __float2half(1), zero = __float2half(0), h[4] = {one, zero, one, one}, *d;
  cudaMalloc(&d, sizeof h);
  cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice);
  cublasHandle_t handle;
  cublasCreate(&handle);
  cublasHgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, d, 2, d, 2, &zero, d, 2);
  cublasDestroy(handle);
  cudaFree(d);
}
"""
    )
    report = run_program(tmp_path / "p.cu", capture=True)
    assert report.output == "3204071345 6152590168887819645 0.266444 1464659504 1430195325\n81 0345", (
        report.message,
        report.output,
    )
    assert not report.faults


LOCAL = """\
#include <cstdio>
__global__ void k(const int* x, int* s) {
  int t = threadIdx.x;
  LINE
}
int main() {
  int h[32], *x, *s;
  for (int i = 0; i < 32; i++) h[i] = i;
  cudaMalloc(&x, sizeof h);
  cudaMalloc(&s, sizeof h);
  cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice);
  k<<<1, 32>>>(x, s);
  cudaMemcpy(h, s, sizeof h, cudaMemcpyDeviceToHost);
  printf("%d\\n", h[3]);
  cudaFree(x); cudaFree(s);
}
"""


@pytest.mark.parametrize("seconds", [4, 0], ids=["interpreted", "compiled"])
@pytest.mark.parametrize(("line", "variable"), [
    ("int a[4]; a[0] = x[t]; s[t] = a[0] + a[1 + t % 3];", "a"),
    ("int sum; sum += x[t]; s[t] = sum;", "sum"),
    ("int a[2][2]; for (int i = 0; i < 2; i++) a[i][i] += x[t]; s[t] = a[0][0];", "a"),
    ("int a[4]; a[t % 4] = x[t]; for (int i = 0; i < 4; i++) if (i == t % 4) s[t] = a[i]; s[t] += a[0];", "a"),
    ("int a[4]; for (int i = 0; i < 4; i++) if (i == t % 4) a[i] = t; s[t] = a[t % 4];", ""),
    ("int v, w[3]; bool late = t > 99; if (late) v = w[0] = w[1] = w[2] = 1; s[t] = late && v > 1 ? w[t % 3] : 1;", ""),
])  # fmt: skip
def test_an_uninitialised_local_variable_of_a_kernel_is_named(tmp_path, line, variable, seconds):
    """Threads that a condition excludes read nothing."""
    (tmp_path / "p.cu").write_text(LOCAL.replace("LINE", line))
    report = run_program(tmp_path / "p.cu", [], Options(interpret=seconds), capture=True)
    named = {(str(f.kind), f.line, f.array) for f in report.findings}
    assert named == ({("uninitialised-read", 4, variable)} if variable else set())


def test_a_local_array_larger_than_local_memory_is_named_at_its_line(tmp_path):
    (tmp_path / "p.cu").write_text(LOCAL.replace("LINE", "int a[1 << 18]; a[t] = x[t]; s[t] = a[t];"))
    report = run_program(tmp_path / "p.cu", capture=True)
    first = report.findings[0]
    assert (str(first.kind), first.line, first.array) == ("stack", 4, "a")
    assert "524288 bytes of local memory" in first.message


OTHERS = {
    "a __constant__ variable freed": (
        "__constant__ float mask[3];\nint main() {\n  float h[3] = {1, 2, 3};\n  cudaMemcpyToSymbol(mask, h, 12);\n"
        "  cudaFree(mask);\n}\n", "wrong-free", 5, "mask", "leave it out"),
    "a null pointer for a kernel": (
        "__global__ void k(float* c, int n) {\n  if (threadIdx.x < n) c[threadIdx.x + 1] = 1;\n}\n"
        "int main() { float* p = nullptr; k<<<1, 4>>>(p, 4); cudaDeviceSynchronize(); }\n",
        "null-pointer", 2, "c", "cudaMalloc"),
    "one element too many of a local array": (
        "#include <cstdio>\nint main() {\n  int a[4] = {1, 2, 3, 4}, s = 0;\n  for (int i = 0; i <= 4; i++)\n"
        "    s += a[i];\n  printf(\"%d\\n\", s);\n}\n", "out-of-bounds", 5, "a", "length"),
    "a local array that was to be copied back": (
        LOCAL.replace("LINE", "s[t] = x[t];").replace("  cudaMemcpy(h, s, sizeof h", "  int r[32];\n  //")
        .replace("h[3]", "r[3]"), "uninitialised-read", 15, "r", "cudaMemcpyDeviceToHost"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_line_variable_and_change_are_named(name, tmp_path):
    text, kind, line, variable, change = OTHERS[name]
    (tmp_path / "p.cu").write_text(text)
    found = run_program(tmp_path / "p.cu", capture=True).findings
    first = next(f for f in found if str(f.kind) == kind)
    assert (first.line, first.array) == (line, variable), [str(f) for f in found]
    assert change in first.hint


@pytest.mark.parametrize(("variable", "refused"), [
    ("int limit = 3;", "limit is a variable of the host: make it const"),
    ("const int limit = 3;", ""),
    ("#define limit (std::cout << 1, 3)\n#include <iostream>", "std::cout is the host's: a kernel prints with printf"),
])  # fmt: skip
def test_a_kernel_cannot_access_host_variables(variable, refused, tmp_path):
    (tmp_path / "p.cu").write_text(
        f"{variable}\n" + LOCAL.replace("LINE", "if (t < limit) s[t] = x[t]; else s[t] = 0;")
    )
    report = run_program(tmp_path / "p.cu", capture=True)
    assert refused in report.message
    assert (report.ended == "refused") == bool(refused)


def test_a_missing_argument_that_went_through_a_variable_is_no_fault(tmp_path):
    (tmp_path / "p.cu").write_text("""#include <cstdio>
void load(const char* filename) {
  FILE* f = fopen(filename, "rb");
  if (!f) printf("none\\n");
}
int main(int argc, char** argv) {
  if (argc != 2) printf("one file\\n");
  char* filename = argv[1];
  load(filename);
}
""")
    report = run_program(tmp_path / "p.cu", capture=True)
    assert (report.wanted, report.faults) == ("arguments", [])


def test_what_a_copy_in_the_wrong_direction_leaves_out_is_no_further_fault(tmp_path):
    program = tmp_path / "program.cu"
    text = START.replace("*c = (float*)malloc(bytes)", "c[1000]") + PARTS["allocate"] + PARTS["in"] + PARTS["launch"]
    text += "  cudaMemcpy(c, dc, bytes, cudaMemcpyHostToDevice);\n  float sum = 0;\n"
    text += "  for (int i = 0; i < n; i++) sum += c[i];\n"
    text += '  printf("%g", sum);\n  cudaFree(da); cudaFree(db); cudaFree(dc); free(a); free(b);\n}\n'
    program.write_text(text)
    (finding,) = run_program(program, [], Options(), capture=True).findings
    assert (finding.kind, finding.line) == ("copy", 15)


def test_a_copy_before_the_launch_brings_no_result_back(tmp_path):
    program = tmp_path / "program.cu"
    text = START + PARTS["allocate"] + PARTS["in"] + "  cudaMemset(dc, 0, bytes);\n" + PARTS["out"] + PARTS["launch"]
    text += '  cudaDeviceSynchronize();\n  printf("%g", c[5]);\n'
    text += "  cudaFree(da); cudaFree(db); cudaFree(dc); free(a); free(b); free(c);\n}\n"
    program.write_text(text)
    (finding,) = run_program(program, [], Options(), capture=True).findings
    assert (finding.kind, finding.line) == ("not-copied-back", 16)
    program.write_text(text.replace(PARTS["launch"], "").replace(PARTS["out"], PARTS["launch"] + PARTS["out"]))
    assert run_program(program, [], Options(), capture=True).findings == []
