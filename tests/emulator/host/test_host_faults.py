"""Faults of host code, each planted into a correct program and reported at its line."""

from __future__ import annotations

import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program
from tilewise.emulator.host.runtime.faults import Faults
from tilewise.emulator.machine.findings import Kind

pytestmark = pytest.mark.drawn(3)  # each program is compiled in a process, 0.2 to 2 s

RIGHT = """\
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#define TILE 8
__global__ void multiply(const float* A, const float* B, float* C, int n) {
  __shared__ float As[TILE][TILE], Bs[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  float sum = 0;
  for (int p = 0; p < (n + TILE - 1) / TILE; ++p) {
    As[threadIdx.y][threadIdx.x] = row < n && p * TILE + threadIdx.x < n ? A[row * n + p * TILE + threadIdx.x] : 0;
    Bs[threadIdx.y][threadIdx.x] = col < n && p * TILE + threadIdx.y < n ? B[(p * TILE + threadIdx.y) * n + col] : 0;
    __syncthreads();
    for (int k = 0; k < TILE; ++k) sum += As[threadIdx.y][k] * Bs[k][threadIdx.x];
    __syncthreads();
  }
  if (row < n && col < n) C[row * n + col] = sum;
}
int main() {
  int n = 20;
  size_t bytes = n * n * sizeof(float);
  float* a = (float*)malloc(bytes);
  float* b = (float*)malloc(bytes);
  float* c = (float*)malloc(bytes);
  for (int i = 0; i < n * n; i++) { a[i] = rand() % 10; b[i] = rand() % 10; }
  float *da, *db, *dc;
  cudaMalloc(&da, bytes);
  cudaMalloc(&db, bytes);
  cudaMalloc(&dc, bytes);
  cudaMemcpy(da, a, bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(db, b, bytes, cudaMemcpyHostToDevice);
  dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
  multiply<<<grid, block>>>(da, db, dc, n);
  cudaMemcpy(c, dc, bytes, cudaMemcpyDeviceToHost);
  int bad = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      float sum = 0;
      for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
      if (fabsf(sum - c[i * n + j]) > 1e-3f) bad++;
    }
  printf(bad ? "FAILED\\n" : "PASSED\\n");
  cudaFree(da); cudaFree(db);
  cudaFree(dc);
  free(a); free(b);
  free(c);
  return bad != 0;
}
"""

# text to replace, replacement, kind of finding, part of the reported line
WRONG = {
    "a copy is missing": ("  cudaMemcpy(db, b, bytes, cudaMemcpyHostToDevice);\n", "", "uninitialised-read", "? B["),
    "a copy goes the wrong way": (
        "cudaMemcpy(da, a, bytes, cudaMemcpyHostToDevice)", "cudaMemcpy(da, a, bytes, cudaMemcpyDeviceToHost)", "copy",
        "cudaMemcpy(da",
    ),
    "a copy's pointers are swapped": ("cudaMemcpy(c, dc,", "cudaMemcpy(dc, c,", "copy", "cudaMemcpy(dc"),
    "a copy is too long": ("cudaMemcpy(db, b, bytes,", "cudaMemcpy(db, b, bytes * 2,", "copy", "cudaMemcpy(db"),
    "a copy is too short": ("cudaMemcpy(db, b, bytes,", "cudaMemcpy(db, b, n * n,", "uninitialised-read", "? B["),
    "an allocation on the card lacks sizeof": (
        "cudaMalloc(&db, bytes)", "cudaMalloc(&db, n * n)", "small-allocation", "cudaMalloc(&db",
    ),
    "an allocation on the host lacks sizeof": (
        "float* c = (float*)malloc(bytes)", "float* c = (float*)malloc(n * n)", "small-allocation", "float* c",
    ),
    "a kernel is given host memory": (
        ">>>(da, db, dc, n)", ">>>(a, db, dc, n)", "host-pointer-on-the-device", "multiply<<<",
    ),
    "the host reads the card's memory": ("sum - c[i", "sum - dc[i", "device-pointer-on-the-host", "dc[i"),
    "results are never copied back": (
        "  cudaMemcpy(c, dc, bytes, cudaMemcpyDeviceToHost);\n", "", "uninitialised-read", "c[i * n + j]) >",
    ),
    "memory of the card is never freed": ("  cudaFree(dc);\n", "", "leak", "cudaMalloc(&dc"),
    "memory of the host is never freed": ("  free(c);\n", "", "leak", "float* c"),
    "memory is freed twice": ("  free(c);\n", "  free(c); free(a);\n", "double-free", "free(c); free(a)"),
    "memory is freed by the wrong call": ("  cudaFree(dc);\n", "  free(dc);\n", "wrong-free", "free(dc)"),
    "a block is too large and nobody asks": ("#define TILE 8", "#define TILE 40", "launch", "multiply<<<"),
    "a grid has no blocks": ("grid((n + TILE - 1) / TILE, (n", "grid(n / 32, (n", "launch", "multiply<<<"),
    "a variable has no value": ("int bad = 0;", "int bad;", "uninitialised-read", "printf(bad"),
    "an index leaves the host's array": (
        "i < n * n; i++) { a", "i <= n * n; i++) { a", "out-of-bounds", "a[i] = rand()",
    ),
}  # fmt: skip


def program(tmp_path, text):
    path = tmp_path / "program.cu"
    path.write_text(text)
    return run_program(path, capture=True)


def test_the_right_program_runs_and_nothing_is_found(tmp_path):
    report = program(tmp_path, RIGHT)
    assert (report.ended, report.status, report.output) == ("exit", 0, "PASSED\n")
    assert report.findings == []


@pytest.mark.drawn(6)
@pytest.mark.parametrize("fault", WRONG)
def test_each_fault_is_named_at_its_line(fault, tmp_path):
    before, after, kind, line = WRONG[fault]
    assert before in RIGHT
    report = program(tmp_path, RIGHT.replace(before, after))
    found = [f for f in report.findings if str(f.kind) == kind and line in f.place.text]
    assert found, [(str(f.kind), f.line, f.message) for f in report.findings]
    assert found[0].hint


def test_a_copy_behind_the_end_of_a_block_names_the_block(tmp_path):
    """Not: memory that was never allocated."""
    text = "int main() { float h[8] = {0}; float* d; cudaMalloc(&d, 8);\n"
    report = program(tmp_path, f"{text}cudaMemcpy(d + 3, h, 4, cudaMemcpyHostToDevice); cudaFree(d); }}\n")
    (found,) = report.findings
    assert (found.kind.value, found.line) == ("copy", 2)
    assert "writes past the end of d (8 bytes from cudaMalloc at line 1)" in found.message


def test_int_min_by_minus_one_is_not_called_a_division_by_zero(tmp_path):
    path = tmp_path / "program.cu"
    path.write_text("int main(int argc, char**) { int least = -2147483647 - argc;\n return least / -argc; }\n")
    report = run_program(path, capture=True)
    assert [(f.kind.value, f.place.line) for f in report.faults] == [("division", 2)]
    assert "divided by -1" in report.faults[0].message
    assert report.status == 136


SEVERAL_ON_A_LINE = """#include <stdio.h>
#define cudaCheck(x) do { cudaError_t e = (x); if (e) printf("%d\\n", e); } while (0)
__global__ void k(float *a, float *b, float *c) { int i = threadIdx.x; c[i] = a[i] + b[i]; }
int main() {
  float *x, *y, *z, h[32];
  cudaMalloc(&x, 128); cudaMalloc(&y, 128); cudaMalloc(&z, 128);
  cudaMemset(x, 0, 128);
  k<<<1, 32>>>(x, y, z);
  cudaMemcpy(h, z, 128, cudaMemcpyDeviceToHost); cudaMemcpy(h, z, 256, cudaMemcpyDeviceToHost);
  float *w;
  cudaCheck(cudaMalloc(&w, 128));
  k<<<1, 32>>>(x, w, z);
  cudaFree(x); cudaFree(y); cudaFree(z); printf("%g\\n", h[3]);
}
"""


def test_of_several_allocations_on_a_line_the_right_one_is_named(tmp_path):
    path = tmp_path / "program.cu"
    path.write_text(SEVERAL_ON_A_LINE)
    found = run_program(path, capture=True).findings
    assert any("copied into y (allocated at line 6)" in f.hint for f in found)
    assert any(f.message.startswith("w (128 bytes from cudaMalloc at line 11)") for f in found)


SYMBOLS = """#include <cstdio>
__constant__ float mask[4];
__device__ float table[4];
__global__ void k(const float* t, float* out) { out[threadIdx.x] = t[threadIdx.x] * mask[threadIdx.x]; }
int main() {
  float h[4] = {1, 2, 3, 4}, r[4], *d, *t; cudaMalloc(&d, 16); cudaGetSymbolAddress((void**)&t, table);
  cudaMemcpyToSymbol(mask, h, 16);
  cudaMemcpyToSymbol(table, h, 16);
  k<<<1, 4>>>(t, d);
  cudaMemcpy(r, d, 16, cudaMemcpyDeviceToHost);
  cudaMemcpyFromSymbol(h, table, 16);
  printf("%g %g", r[1], h[3]); cudaFree(d);
}
"""


@pytest.mark.parametrize(
    ("line", "right", "wrong", "kind", "array", "hint"),
    [
        (7, "ToSymbol(mask, h, 16)", "(mask, h, 16, cudaMemcpyHostToDevice)", "copy", "mask", "ToSymbol(mask, h"),
        (9, "(t, d)", "(table, d)", "host-pointer-on-the-device", "table", "cudaGetSymbolAddress"),
        (11, "FromSymbol(h, table, 16)", "(h, &table[0], 16, cudaMemcpyDeviceToHost)", "copy", "table", "FromSymbol"),
    ],
)  # fmt: skip
def test_the_name_of_a_symbol_is_no_pointer(tmp_path, line, right, wrong, kind, array, hint):
    """On the host it is that of a shadow of the variable, which a card refuses."""
    path = tmp_path / "p.cu"
    path.write_text(SYMBOLS)
    clean = run_program(path, capture=True)
    assert (clean.output, clean.findings) == ("4 4", [])
    path.write_text(SYMBOLS.replace(right, wrong))
    found = run_program(path, capture=True).faults
    assert (kind, line, array) in [(f.kind.value, f.line, f.array) for f in found]
    assert hint in found[0].hint


def test_a_vector_too_short_for_a_copy_is_named(tmp_path):
    path = tmp_path / "p.cu"
    path.write_text("""#include <vector>
int main() {
  std::vector<int> in(64, 1), out(32); int* d; cudaMalloc(&d, 256);
  cudaMemcpy(d, in.data(), 256, cudaMemcpyHostToDevice);
  cudaMemcpy(out.data(), d, 256, cudaMemcpyDeviceToHost); cudaFree(d); return out[0];
}
""")
    (fault,) = run_program(path, capture=True).faults
    assert (fault.kind.value, fault.line, fault.array) == ("small-allocation", 3, "out")
    assert "2 times the elements" in fault.hint


EVENTS = """#include <cstdio>
__global__ void k(float* d) { d[threadIdx.x] = 1; }
int main() {
  float *d, ms, h; cudaEvent_t a, b; cudaEventCreate(&a); cudaEventCreate(&b); cudaMalloc(&d, 128);
  cudaEventRecord(a); k<<<1, 32>>>(d); cudaEventRecord(b);
  WAIT
  cudaEventElapsedTime(&ms, a, b); cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost); printf("%d %g", ms >= 0, h);
  cudaFree(d);
}
"""


@pytest.mark.parametrize(
    ("wait", "found"),
    [
        ("", [("not-synchronised", 7, "b")]),
        ("cudaStreamWaitEvent(0, b);", [("not-synchronised", 7, "b")]),
        ("cudaEventSynchronize(b);", []),
        ("cudaDeviceSynchronize();", []),
        ("cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost);", []),
    ],
)
def test_the_time_of_an_event_that_may_not_have_happened(tmp_path, wait, found):
    path = tmp_path / "p.cu"
    path.write_text(EVENTS.replace("WAIT", wait))
    report = run_program(path, capture=True)
    assert report.output == "1 1"
    assert [(f.kind.value, f.line, f.array) for f in report.faults] == found


def test_a_host_pointer_in_an_object_is_a_fault_of_the_launch(tmp_path):
    path = tmp_path / "p.cu"
    path.write_text("""#include <cstdlib>
struct M { int w; float* e; };
__global__ void k(M m) { m.e[threadIdx.x] = 1; }
int main() { M m; m.w = 4; m.e = (float*)malloc(16);
  k<<<1, 4>>>(m);
  free(m.e); return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 7 : 0; }
""")
    report = run_program(path, capture=True)
    assert (report.ended, report.status) == ("exit", 7)
    assert [(f.kind.value, f.line) for f in report.faults] == [("host-pointer-on-the-device", 5)]


def test_too_many_bytes_of_constants_are_refused(tmp_path):
    path = tmp_path / "p.cu"
    path.write_text("""__constant__ float one[16000];
__constant__ float two[384 + MORE];
int main() { float h[1] = {1}; return cudaMemcpyToSymbol(one, h, 4) + cudaMemcpyToSymbol(two, h, 4); }
""")
    assert run_program(path, options=Options(defines={"MORE": "0"}), capture=True).ok
    report = run_program(path, options=Options(defines={"MORE": "1"}), capture=True)
    assert (report.ended, report.status) == ("refused", 2)
    assert "p.cu:2:" in report.message
    assert "take 65540 bytes: a card has 65536" in report.message


def test_a_launch_that_fails_is_advised_what_mends_it(tmp_path):
    path = tmp_path / "p.cu"
    path.write_text("""__global__ void k() { __shared__ float s[16384]; s[threadIdx.x] = 1; }
int main() { k<<<1, 32>>>(); return cudaGetLastError(); }
""")
    (fault,) = run_program(path, capture=True).faults
    assert fault.hint.startswith("use a smaller tile, or extern __shared__")
    path.write_text("__global__ void k() {}\nint main() { k<<<dim3(1, 70000), 32>>>(); return cudaGetLastError(); }\n")
    (fault,) = run_program(path, capture=True).faults
    assert fault.hint.startswith("count in x")


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        ("cudaMalloc(&d, bytes);", True),
        ("for (int i = 0; i < 1; i++) cudaMalloc(&d, bytes);", True),
        ("if (bytes) cudaMalloc(&d, bytes);", True),
        ("CHECK(cudaMalloc(&d, bytes));", False),
        ("cudaError_t e =\n    cudaMalloc(&d, bytes); if (e) return 1;", False),
        ("if (cudaMalloc(&d, bytes) != cudaSuccess) return 1;", False),
    ],
)
def test_an_allocation_that_fails_is_a_fault_where_nothing_checks_it(tmp_path, call, fault):
    text = f"#define CHECK(x) if (x) return 1\nint main() {{ float* d; size_t bytes = 1ul << 46;\n{call} return 0; }}\n"
    path = tmp_path / "program.cu"
    path.write_text(text)
    report = run_program(path, capture=True)
    assert [f.kind.value for f in report.findings] == ["small-allocation"] * fault
    assert any("--card" in note for note in report.notes) is not fault


def test_of_two_arrays_on_a_line_the_right_one_is_named(tmp_path):
    path = tmp_path / "program.cpp"
    path.write_text(
        "int main(int n, char**) { int a[3] = {0}, b[4] = {0}; for (int i = 0; i < n + 3; i++) a[i] = b[i]; }"
    )
    report = run_program(path, [], Options(), capture=True)
    assert [(f.kind.value, f.array) for f in report.faults] == [("out-of-bounds", "a")]


def test_findings_are_told_while_another_thread_adds_some():
    faults = Faults(None)

    class Adding:
        line, kind = 1, Kind.RACE

        @property
        def access(self):
            faults.found[len(faults.found)] = self
            return ""

    faults.found[0] = one = Adding()
    assert faults.all() == [one]
