"""Programs as WebAssembly: the output, status and findings of machine code, and nothing beyond the linear memory."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import ctypes
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from seeds import next_seed, sample_size
from tilewise.emulator.host.options import NATIVE, WASM, Options
from tilewise.emulator.host.process import run_program
from tilewise.emulator.host.target import Trapped
from tilewise.emulator.host.target.webassembly import WebAssembly
from tilewise.emulator.machine.findings import Kind
from tilewise.errors import EngineError

pytest.importorskip("wasmtime", reason="wasmtime is an extra: tilewise[wasm]")
pytestmark = pytest.mark.drawn(12)  # each program is compiled in two processes, 0.3 to 3 s

TILED = r"""#include <cstdio>
#define TILE_WIDTH 8
__global__ void product(const float* M, const float* N, float* P, int width) {
  __shared__ float Ms[TILE_WIDTH][TILE_WIDTH], Ns[TILE_WIDTH][TILE_WIDTH];
  int row = blockIdx.y * TILE_WIDTH + threadIdx.y, column = blockIdx.x * TILE_WIDTH + threadIdx.x;
  float sum = 0;
  for (int phase = 0; phase < (width + TILE_WIDTH - 1) / TILE_WIDTH; phase++) {
    int c = phase * TILE_WIDTH + threadIdx.x, r = phase * TILE_WIDTH + threadIdx.y;
    Ms[threadIdx.y][threadIdx.x] = row < width && c < width ? M[row * width + c] : 0;
    Ns[threadIdx.y][threadIdx.x] = r < width && column < width ? N[r * width + column] : 0;
    __syncthreads();
    for (int k = 0; k < TILE_WIDTH; k++) sum += Ms[threadIdx.y][k] * Ns[k][threadIdx.x];
    __syncthreads();
  }
  if (GUARD) P[row * width + column] = sum;
}
int main() {
  const int n = 37; static float h[n * n]; float *a, *b, *c; double total = 0;
  for (int i = 0; i < n * n; i++) h[i] = i % 7 - 3;
  cudaMalloc(&a, sizeof h); cudaMalloc(&b, sizeof h); cudaMalloc(&c, sizeof h);
  cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); cudaMemcpy(b, h, sizeof h, cudaMemcpyHostToDevice);
  product<<<dim3(5, 5), dim3(TILE_WIDTH, TILE_WIDTH)>>>(a, b, c, n);
  cudaMemcpy(h, c, sizeof h, cudaMemcpyDeviceToHost);
  for (int i = 0; i < n * n; i++) total += h[i] * (i % 13);
  printf("%.9g %g\n", total, h[n * n - 1]);
  cudaFree(a); cudaFree(b); cudaFree(c);
}
"""
PROGRAMS = {
    "numbers": r"""#include <cstdio>
#include <cmath>
#include <climits>
int main(int argc, char** argv) {
  double x = argc + 0.5; float y = argc * 1.25f; long long n = argc; unsigned u = ~0u;
  printf("%g %g %g %g %g %g\n", sin(x), pow(x, 3.5), fmod(-7.5, x), floor(-x), fma(x, x, 1.0), atan2(x, -x));
  printf("%.9g %.9g %.9g %.9g %d\n", expf(y), logf(y), cbrtf(y), tanhf(y), (int)lround(2.5));
  printf("%lld %u %d %llx %d\n", n * LLONG_MAX, u * 3u, INT_MIN / (argc + 1), 0x123456789abcdefULL >> argc, (char)(200 + argc));
  printf("%d %d %u %lld\n", (int)(x * 1e3), (int)-y, (unsigned)(y * 1e9f), (long long)(x * 1e17));
  return 5;
}""",
    "objects": r"""#include <cstdio>
#include <string>
#include <vector>
#include <map>
#include <algorithm>
#include <functional>
#include <cstdlib>
struct Shape { virtual double area() const { return 0; } virtual ~Shape() { puts("end of a shape"); } };
struct Square : Shape { double a; Square(double a) : a(a) {} double area() const override { return a * a; } };
int descending(const void* a, const void* b) { return *(const int*)b - *(const int*)a; }
void last() { puts("last"); }
struct Still { ~Still() { puts("end of a static object"); } } still;
int main() {
  atexit(last);
  std::map<std::string, int> count; for (const char* w : {"b", "a", "b"}) count[w]++;
  for (auto& one : count) printf("%s %d\n", one.first.c_str(), one.second);
  std::vector<int> v = {3, 1, 2}; std::sort(v.begin(), v.end(), [](int a, int b) { return a > b; });
  int a[4] = {2, 9, 4, 7}; qsort(a, 4, 4, descending);
  std::function<int(int)> twice = [&](int x) { return 2 * x + v[0]; };
  int (*choose[2])(const void*, const void*) = {descending, 0};
  Shape* s = new Square(1.5); printf("%g %d %d %d %d\n", s->area(), v[2], a[0], twice(4), choose[0](a, a + 1)); delete s;
}""",
    "exceptions": r"""#include <cstdio>
#include <stdexcept>
int deep(int n) { if (n == 0) throw std::runtime_error("far down"); return deep(n - 1) + 1; }
int main() {
  try { deep(20); } catch (const std::exception& e) { printf("%s\n", e.what()); }
  deep(3);
}""",
    "recursion": "#include <cstdio>\nint down(int n) { volatile int a[30]; a[0] = n; return n < 0 ? 0 : down(n + 1) + a[0]; }\nint main() { printf(\"%d\\n\", down(1)); }",
    "mutual recursion": "#include <cstdio>\nint odd(unsigned n); int even(unsigned n) { return n == 0 ? 1 : odd(n - 1) + 1; } int odd(unsigned n) { return n == 0 ? 0 : even(n - 1) + 1; }\nint main(int argc, char**) { printf(\"%d\\n\", even(4000000000u + argc)); }",
    "overrun": "#include <cstdlib>\nint main() { int* p = (int*)malloc(40); p[10] = 1; int s = p[3]; free(p); return p[0] + s; }",
    "null": "int main(int argc, char**) { int* p = argc > 5 ? &argc : 0; return p[2]; }",
    "wild": "int main(int argc, char**) { long* p = (long*)(0x123456789abcL + argc); *p = 1; return 0; }",
    "wild call": "int main(int argc, char**) { void (*f)() = (void (*)())(long)argc; f(); return 0; }",
    "files": '#include <cstdio>\nint main() { FILE* f = fopen("no such file", "r"); if (!f) { perror("it"); return 2; } char line[20]; fgets(line, 20, f); }',
    "division": "#include <cstdio>\nint main(int argc, char**) { printf(\"before\\n\"); return 7 / (argc - 1); }",
    "tiled": "#define GUARD row < width && column < width\n" + TILED,
    "unguarded": "#define GUARD true\n" + TILED,
    "kernel": r"""#include <cstdio>
__device__ float weigh(float x) { return expf(-x * x) + sinf(x) * rsqrtf(x + 1) + (x > 2 ? powf(x, 1.5f) : x / 3); }
__global__ void sums(float* out, int* count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { out[i] = weigh(i * 0.01f); atomicAdd(count, i % 3); }
}
__global__ void reduce(const float* in, float* out, int n) {
  extern __shared__ float part[];
  part[threadIdx.x] = threadIdx.x < n ? in[threadIdx.x] : 0;
  for (int s = blockDim.x / 2; s > 0; s /= 2) { __syncthreads(); if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s]; }
  if (threadIdx.x == 0) *out = part[0];
}
int main() {
  float *x, *s, h; int *c, k = 0; cudaMalloc(&x, 4000); cudaMalloc(&s, 4); cudaMalloc(&c, 4); cudaMemset(c, 0, 4);
  sums<<<8, 128>>>(x, c, 1000); reduce<<<1, 256, 1024>>>(x, s, 1000);
  cudaMemcpy(&h, s, 4, cudaMemcpyDeviceToHost); cudaMemcpy(&k, c, 4, cudaMemcpyDeviceToHost);
  printf("%.7g %d\n", h, k); cudaFree(x); cudaFree(s); cudaFree(c);
}""",
    "device recursion": r"""#include <cstdio>
struct Op { int k; __device__ int go(int x) const { return x < 2 ? x : go(x - 1) + go(x - 2) + k; } };
__global__ void run(int* out, Op op) { out[threadIdx.x] = op.go(threadIdx.x % 12); }
int main() { int *d, h[64]; cudaMalloc(&d, 256); run<<<1, 64>>>(d, Op{1}); cudaMemcpy(h, d, 256, cudaMemcpyDeviceToHost);
  long t = 0; for (int v : h) t += v; printf("%ld\n", t); cudaFree(d); }""",
}  # fmt: skip


def outcome(path, target, interpret):
    # the time of a run is bounded, so that a program that never ends fails here
    report = run_program(path, options=Options(target=target, interpret=interpret, seconds=30), capture=True)
    findings = [(f.kind, f.line, f.count, f.message) for f in report.findings]
    return report.status, report.ended, report.message, report.output, report.errors, findings


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_and_reports_the_same_as_machine_code(tmp_path, name):
    path = tmp_path / "program.cu"
    path.write_text(PROGRAMS[name])
    for interpret in (4.0, 0.0) if "<<<" in PROGRAMS[name] else (4.0,):
        assert outcome(path, WASM, interpret) == outcome(path, NATIVE, interpret)


def test_the_runtime_reaches_nothing_outside_the_linear_memory():
    """Whatever address and size a program passes to a function of the runtime."""
    target = WebAssembly()
    there, data = target.reserve(1 << 16)
    assert target.host(there, 1 << 16) == data.ctypes.data
    draw = random.Random(next_seed())
    edges = [0, 1, -1, 1 << 31, 1 << 32, 1 << 63, (1 << 64) - 1, there, target._size, -(1 << 63)]
    for _ in range(sample_size(4000)):
        address = draw.choice(edges) + draw.choice([0, draw.randrange(-(1 << 20), 1 << 20)])
        size = draw.choice(edges) + draw.randrange(1 << 12)
        if address >= 0 and size >= 0 and address + size <= target._size:
            assert 0 <= target.host(address, size) - target._start <= target._size - size
        else:
            with pytest.raises(EngineError, match="outside of its memory"):
                target.host(address, size)


PRODUCT = """
declare {i64, i1} @llvm.smul.with.overflow.i64(i64, i64)
define i32 @start(i64 %a, i64 %b) {
  %made = call {i64, i1} @llvm.smul.with.overflow.i64(i64 %a, i64 %b)
  %over = extractvalue {i64, i1} %made, 1
  %out = zext i1 %over to i32
  ret i32 %out
}
"""


@pytest.mark.parametrize("level", [0, 2])
def test_products_of_long_numbers_overflow_where_they_do(level):
    """LLVM calls a function of ours for them; its own instructions for these products compare the wrong half."""
    overflows = WebAssembly().load(PRODUCT, {}, "start", ("i32", "i64", "i64"), level)
    draw = random.Random(next_seed())
    edges = [0, 1, -1, 2, 5, 1 << 31, -(1 << 31), 1 << 32, 3037000499, 3037000500, (1 << 63) - 1, -(1 << 63)]
    for _ in range(sample_size(2000)):
        a, b = (draw.choice([*edges, draw.getrandbits(63) >> draw.randrange(63)]) for _ in range(2))
        assert overflows(a, b) == (not -(1 << 63) <= a * b < 1 << 63), (a, b)


RAW = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
define i64 @other(i64 %a) { ret i64 %a }
@kept = internal global ptr @other
define i64 @start(i64 %kind, i64 %at, i64 %n) {
  %p = inttoptr i64 %at to ptr
  switch i64 %kind, label %call [i64 0, label %store  i64 1, label %load  i64 2, label %set  i64 3, label %move]
store:
  store volatile i64 %n, ptr %p, align 1
  ret i64 0
load:
  %v = load volatile i64, ptr %p, align 1
  ret i64 %v
set:
  call void @llvm.memset.p0.i64(ptr %p, i8 7, i64 %n, i1 true)
  ret i64 0
move:
  call void @llvm.memmove.p0.p0.i64(ptr %p, ptr inttoptr (i64 65536 to ptr), i64 %n, i1 true)
  ret i64 0
call:
  %f = load volatile ptr, ptr @kept
  %c = call i64 %p(i64 %n)
  ret i64 %c
}
"""


@pytest.mark.slow  # in the default run the attacks of test_attacks.py cover it
def test_raw_accesses_reach_the_linear_memory_and_nothing_else():
    """Three hundred attempts and more, with no check of ours before them."""
    target = WebAssembly()
    there, data = target.reserve(1 << 20)
    run = target.load(RAW, {}, "start", ("i64", "i64", "i64", "i64"))
    draw = random.Random(next_seed())
    size = target._size
    starts = [0, 8, 65536, there, there + (1 << 19), size - 16, size - 8, size - 7, size, size + 4096, 1 << 47, 1 << 63]
    starts += [data.ctypes.data, id(target), ctypes.addressof(ctypes.c_int()), (1 << 64) - 8]  # of this process
    for _ in range(sample_size(2000)):
        kind, at = draw.randrange(5), draw.choice(starts) + draw.choice([0, draw.randrange(16)])
        n = draw.choice([0, 1, 8, 4096, 1 << 40, (1 << 63) - 1, draw.getrandbits(64)]) & (1 << 64) - 1
        at &= (1 << 64) - 1
        if kind == 4:
            fine, n = at == 1, n >> 1  # the entry of @other in the module's table
        else:
            length = 8 if kind < 2 else n
            fine = not length or (at + length <= size and (kind != 3 or n <= size - 65536))
        given = [x - (1 << 64) if x >> 63 else x for x in (kind, at, n)]
        if fine and 2 <= kind <= 3 and n > 1 << 20:
            continue  # would fill this machine's memory
        if fine:
            result = run(*given)
            assert kind != 4 or result == n
        else:
            with pytest.raises(Trapped):
                pytest.fail(f"{kind} at {at:#x}, {n}: {run(*given)}")


@pytest.mark.slow
def test_hostile_arguments_of_imports_do_no_harm():
    tool = Path(__file__).parents[2] / "support" / "hostile_imports.py"
    command = [sys.executable, str(tool), str(sample_size(8000)), str(next_seed() % 2**31)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])


@pytest.mark.slow
def test_drawn_programs_agree(tmp_path):
    """Those of the tests, with a few tokens changed, generated ones, and generated kernels."""
    tool = Path(__file__).parents[2] / "support" / "webassembly_agreement.py"
    command = [sys.executable, str(tool), str(sample_size(120)), "600", str(next_seed() % 2**31)]
    environment = {**os.environ, "OUT": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_code_that_leaves_its_memory_or_its_table_traps_with_a_finding(tmp_path):
    """As if a check of the compiler were missing: the text of `main` is replaced."""
    for instruction, kind in (
        ("store i64 1, ptr inttoptr (i64 -4096 to ptr)", Kind.OUT_OF_BOUNDS),
        ("call void inttoptr (i64 12345 to ptr)()", Kind.OUT_OF_BOUNDS),
        ("call void @deep(i64 1)", Kind.STACK),
    ):
        report = run_replaced(tmp_path, instruction)
        assert [(f["kind"]) for f in report["findings"]] == [kind.value], report
        assert (report["ended"], report["status"]) == ("crash", 139)


def test_a_call_by_another_type_is_a_fault(tmp_path):
    """Machine code takes it, if all that differs is scalars in registers."""
    path = tmp_path / "program.cu"
    path.write_text(
        "void work() {}\nlong twice(long x) { return 2 * x; }\nint main(int argc, char**) {\n"
        "  long (*f[2])(long) = {twice, (long (*)(long))work};\n  return f[argc % 2](1) == 77;\n}\n"
    )
    report = run_program(path, options=Options(target=WASM), capture=True)
    assert [(f.kind, "another type" in f.message) for f in report.findings] == [(Kind.OUT_OF_BOUNDS, True)]


REPLACED = """
import json, sys
from tilewise.emulator.host.options import Options, WASM
from tilewise.emulator.host.running import build, execute
session, text = build(sys.argv[1], Options(target=WASM), lambda document: print(json.dumps(document), flush=True))
head, mark, rest = text.partition("define i32 @start(i32 %argc, ptr %argv, i64 %room) {\\n")
assert mark
deep = '''
define i64 @deep(i64 %n) noinline optnone {
  %m = add i64 %n, 1
  %r = call i64 @deep(i64 %m)
  %s = add i64 %r, %n
  ret i64 %s
}
'''
execute(session, head + deep + mark + "  " + sys.argv[2] + "\\n" + rest, [], "./program", lambda: None)
"""


def run_replaced(folder, instruction):
    path = folder / "program.cu"
    path.write_text("int main() { return 3; }\n")
    command = [sys.executable, "-c", REPLACED, str(path), instruction]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_untrusted_programs_say_what_confines_them(tmp_path):
    path = tmp_path / "program.cu"
    path.write_text('#include <cstdio>\nint main() { puts("here"); return 6; }\n')
    command = [sys.executable, "-m", "tilewise", "run", str(path), "--untrusted", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (6, "here\n"), done.stderr
    assert json.loads(done.stderr)["sandbox"].startswith("WebAssembly")


WITHOUT_SANDBOX = """
import sys
import tilewise.system.sandbox as s
s.missing = lambda: "this system has none"
from tilewise.emulator.host.options import Options, REQUIRED
from tilewise.emulator.host.process import run_program
report = run_program(sys.argv[1], options=Options(target=sys.argv[2], sandbox=REQUIRED), fork=True)
print(report.ended, report.status, report.sandbox)
"""


def test_a_system_without_a_sandbox_runs_strangers_as_webassembly(tmp_path):
    path = tmp_path / "program.cu"
    path.write_text("int main() { return 6; }\n")
    for target, expected in ((WASM, "exit 6 WebAssembly\n"), (NATIVE, "unconfined 2 \n")):
        command = [sys.executable, "-c", WITHOUT_SANDBOX, str(path), target]
        done = subprocess.run(command, capture_output=True, text=True, timeout=90)
        assert done.stdout == expected, done.stderr


def test_without_wasmtime_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "wasmtime", None)
    with pytest.raises(EngineError, match=r"tilewise\[wasm\]"):
        WebAssembly()
