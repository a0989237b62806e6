"""Races in kernels that only run compiled, and copies of uninitialised variables and shared memory."""

# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(2)  # each program is compiled in a process, 0.2 to 2 s

ROWS = """#include <cstdio>
__global__ void turned(float** rows, float* out, int n) {
  __shared__ float tile[8][8]; __shared__ int last;
  int x = threadIdx.x, y = threadIdx.y;
  for (int p = 0; p < 2; p++) {
    tile[y][x] = rows[y][x] + p;
    FIRST
    out[y * n + x] = tile[x][y];
    if (x == 0) last = 7;
    SECOND
  }
}
int main() {
  float *row[8], **rows, *out, h[64];
  for (int i = 0; i < 64; i++) h[i] = i;
  cudaMalloc(&rows, sizeof row); cudaMalloc(&out, sizeof h);
  for (int i = 0; i < 8; i++) { cudaMalloc(&row[i], 32); cudaMemcpy(row[i], h + 8 * i, 32, cudaMemcpyHostToDevice); }
  cudaMemcpy(rows, row, sizeof row, cudaMemcpyHostToDevice);
  turned<<<1, dim3(8, 8)>>>(rows, out, 8);
  cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost); printf("%g %g\\n", h[1], h[8]);
  for (int i = 0; i < 8; i++) cudaFree(row[i]);
  cudaFree(rows); cudaFree(out);
}
"""
BARRIER = "__syncthreads();"
HANDED_ON = """int main() {
  const int n = 100, planes = 6; float h[n * planes], o[n * planes] = {0};
  for (int i = 0; i < n * planes; i++) h[i] = i % 13;
  float *a, *b; cudaMalloc(&a, sizeof(h)); cudaMalloc(&b, sizeof(o)); cudaMemcpy(a, h, sizeof(h), cudaMemcpyHostToDevice); cudaMemset(b, 0, sizeof(o));
  march<<<(n + 15) / 16, 18>>>(a, b, n, planes); cudaMemcpy(o, b, sizeof(o), cudaMemcpyDeviceToHost);
  int bad = 0; for (int i = 1; i < planes - 1; i++) for (int k = 1; k < n - 1; k++) bad += o[i * n + k] != h[(i - 1) * n + k] + h[(i + 1) * n + k] + h[i * n + k - 1] + h[i * n + k + 1];
  printf("%d\\n", bad); cudaFree(a); cudaFree(b);
}
"""
REGISTERS = """#include <stdio.h>
__global__ void march(const float *in, float *out, int n, int planes) {
  __shared__ float tile[18];
  int k = blockIdx.x * 16 + (int)threadIdx.x - 1;
  float prev, curr, next;
  if (k >= 0 && k < n) { curr = in[k]; tile[threadIdx.x] = curr; }
  for (int i = 0; i < planes; ++i) {
    if (i + 1 < planes && k >= 0 && k < n) next = in[(i + 1) * n + k];
    __syncthreads();
    if (i >= 1 && i < planes - 1 && k >= 1 && k < n - 1 && threadIdx.x >= 1 && threadIdx.x < 17)
      out[i * n + k] = prev + next + tile[threadIdx.x - 1] + tile[threadIdx.x + 1];
    __syncthreads();
    prev = curr;
    curr = next;
    tile[threadIdx.x] = next;
#ifdef WRONG
    if (k >= -1 && k < n - 1 && threadIdx.x < 17)
      out[i * n + k + 1] = prev * 2;
#endif
  }
}
"""
MARCH = """#include <stdio.h>
__global__ void march(const float *in, float *out, int n, int planes) {
  __shared__ float prev[18], curr[18], next[18];
  int k = blockIdx.x * 16 + (int)threadIdx.x - 1;
  if (k >= 0 && k < n) curr[threadIdx.x] = in[k];
  for (int i = 0; i < planes; ++i) {
    if (i + 1 < planes && k >= 0 && k < n) next[threadIdx.x] = in[(i + 1) * n + k];
    __syncthreads();
    if (i >= 1 && i < planes - 1 && k >= 1 && k < n - 1 && threadIdx.x >= 1 && threadIdx.x < 17)
      out[i * n + k] = prev[threadIdx.x] + next[threadIdx.x] + curr[threadIdx.x - 1] + curr[threadIdx.x + 1];
    __syncthreads();
    prev[threadIdx.x] = curr[threadIdx.x];
    curr[threadIdx.x] = next[threadIdx.x];
#ifdef WRONG
    if (k >= -1 && k < n - 1 && threadIdx.x < 17)
      out[i * n + k + 1] = prev[threadIdx.x] * 2;
#endif
  }
}
"""


@pytest.mark.parametrize(
    ("first", "second", "line", "other"), [(BARRIER, BARRIER, 0, 0), ("", BARRIER, 8, 6), (BARRIER, "", 8, 6)]
)
def test_a_missing_barrier_in_a_kernel_with_pointers_to_pointers(tmp_path, first, second, line, other):
    path = tmp_path / "program.cu"
    path.write_text(ROWS.replace("FIRST", first).replace("SECOND", second))
    report = run_program(path, [], Options(), capture=True)
    assert report.ended == "exit"
    found = [(f.kind.value, f.place.line, f.other_place.line) for f in report.faults if f.place and f.other_place]
    assert [(kind, {at, before}) for kind, at, before in found] == ([("race", {line, other})] if line else [])
    assert len(report.faults) == len(found)
    if not line:
        assert report.output == "9 2\n"


GLOBAL = """#include <cstdio>
union Bits { float f; unsigned u; };  // which the interpreting machine does not take
__global__ void shift(unsigned* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  Bits b; b.f = (float)i;
  STEP
}
int main() {
  unsigned h[128] = {0}, *d; cudaMalloc(&d, sizeof h); cudaMemset(d, 0, sizeof h);
  shift<<<2, 64>>>(d, 128); cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  printf("%u\\n", h[1]); cudaFree(d);
}
"""


@pytest.mark.parametrize(
    ("step", "between"),
    [
        ("x[i] = b.u;", None),
        ("x[i] = b.u; __syncthreads(); if (i % 64 < 63) x[i] += x[i + 1];", ""),
        ("x[i] = b.u; __syncthreads(); unsigned v = x[i ^ 1]; __syncthreads(); x[i] = v;", None),
        ("x[i] = b.u; __syncthreads(); x[i] = x[127 - i];", "another block"),
        ("x[0] = 7; atomicAdd(&x[1], b.u);", None),
        ("x[i % 64] = b.u;", "another block"),
    ],
)
def test_races_in_global_memory_are_found_in_compiled_kernels(tmp_path, step, between):
    path = tmp_path / "program.cu"
    path.write_text(GLOBAL.replace("STEP", step))
    report = run_program(path, [], Options(), capture=True)
    assert (report.ended, report.notes) == ("exit", [])
    assert [(f.kind.value, f.line) for f in report.faults] == ([("race", 6)] if between is not None else [])
    assert all(between in f.message for f in report.faults)


def test_an_uninitialised_cell_may_be_copied_but_not_computed_with(tmp_path):
    """A stencil that marches through a volume: edge threads load nothing, and copy values that are not used."""
    path = tmp_path / "program.cu"
    path.write_text(MARCH + HANDED_ON)
    report = run_program(path, capture=True)
    assert (report.output, report.findings) == ("0\n", []), report.message
    faults = run_program(path, [], Options(defines={"WRONG": "1"}), capture=True).faults
    assert ("uninitialised-read", 16) in [(f.kind.value, f.place.line) for f in faults if f.place]


@pytest.mark.parametrize("apart", ["", " int z = 0; again: if (z++ < 0) goto again;"], ids=["lanes", "one by one"])
def test_an_uninitialised_variable_may_be_copied(tmp_path, apart):
    path = tmp_path / "program.cu"
    path.write_text(REGISTERS.replace("float prev, curr, next;", "float prev, curr, next;" + apart) + HANDED_ON)
    report = run_program(path, [], Options(interpret=0.0), capture=True)
    assert (report.output, report.findings) == ("0\n", []), report.message
    faults = run_program(path, [], Options(interpret=0.0, defines={"WRONG": "1"}), capture=True).faults
    found = {(f.kind.value, f.place.line) for f in faults if f.place}  # also neighbours that store to one cell
    assert found - {("race", 11)} == {("uninitialised-read", 18)}


IN_PLACE = """#include <cstdio>
__global__ void blurred(float** rows, float* out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  float left = out[x > 0 ? x - 1 : 0];
  out[x] = rows[0][x] + left;
}
int main() {
  float *row, **rows, *out, h[64] = {1};
  cudaMalloc(&rows, sizeof row); cudaMalloc(&out, sizeof h); cudaMalloc(&row, sizeof h);
  cudaMemcpy(row, h, sizeof h, cudaMemcpyHostToDevice); cudaMemcpy(out, h, sizeof h, cudaMemcpyHostToDevice);
  cudaMemcpy(rows, &row, sizeof row, cudaMemcpyHostToDevice);
  blurred<<<BLOCKS, 64 / BLOCKS>>>(rows, out, 64);
  cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost); printf("%g\\n", h[1]);
  cudaFree(row); cudaFree(rows); cudaFree(out);
}
"""


@pytest.mark.parametrize(("blocks", "advice"), [("2", "store to a second array"), ("1", "put __syncthreads() between")])
def test_a_barrier_is_not_advised_for_several_blocks_in_place(tmp_path, blocks, advice):
    (tmp_path / "p.cu").write_text(IN_PLACE.replace("BLOCKS", blocks))
    race = next(f for f in run_program(tmp_path / "p.cu", capture=True).faults if str(f.kind) == "race")
    assert (race.line in (4, 5), race.array) == (True, "out")
    assert advice in race.hint


GROUP = """#include <cooperative_groups.h>
#include <cstdio>
using namespace cooperative_groups;
__device__ int sum(thread_group g, int* temp, int value) {
  int lane = g.thread_rank();
  for (int i = g.size() / 2; i > 0; i /= 2) {
    temp[lane] = value;
    BETWEEN
    if (lane < i) value += temp[lane + i];
    g.sync();
  }
  return value;
}
__global__ void k(int* out) { SHARED int s = sum(this_thread_block(), temp, threadIdx.x); if (threadIdx.x == 0) *out = s; }
int main() { int *d, h; cudaMalloc(&d, 4); k<<<1, 64 BYTES>>>(d); cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost); printf("%d", h); cudaFree(d); }
"""


@pytest.mark.parametrize(
    ("shared", "bytes_"), [("__shared__ int temp[64];", ""), ("extern __shared__ int temp[];", ", 256")]
)
def test_races_in_a_kernel_that_may_synchronise_warps(tmp_path, shared, bytes_):
    """thread_group::sync is of a block or of a warp; extern __shared__ memory has the name that the kernel gives it."""
    text = GROUP.replace("SHARED", shared).replace(" BYTES", bytes_)
    (tmp_path / "p.cu").write_text(text.replace("BETWEEN", "g.sync();"))
    right = run_program(tmp_path / "p.cu", capture=True)
    assert (right.output, right.findings) == ("2016", [])
    (tmp_path / "p.cu").write_text(text.replace("BETWEEN", ""))
    found = [f for f in run_program(tmp_path / "p.cu", capture=True).findings if f.kind == "race"]
    assert [(f.line, f.array) for f in found] == [(7, "temp")]
    assert "between line 7 and line 9" in found[0].hint


def test_an_update_that_overtakes_another_lines_read_wants_a_barrier(tmp_path):
    """The updated cell is read on that line, too, by its own thread: that is not the read it races with."""
    (tmp_path / "p.cu").write_text("""#include <cstdio>
__global__ void scan(int* out) {
  __shared__ int s[64]; int t = threadIdx.x; s[t] = 1; __syncthreads();
  for (int step = 1; step < 64; step *= 2) {
    int left = 0;
    if (t >= step) left = s[t - step];

    s[t] += left;
    __syncthreads();
  }
  out[t] = s[t];
}
int main() { int *d, h[64]; cudaMalloc(&d, 256); scan<<<1, 64>>>(d); cudaMemcpy(h, d, 256, cudaMemcpyDeviceToHost); printf("%d", h[63]); cudaFree(d); }
""")
    (race,) = (f for f in run_program(tmp_path / "p.cu", capture=True).findings if f.kind == "race")
    assert race.other_place is not None
    assert (race.line, race.other_place.line) == (8, 6)
    assert "__syncthreads()" in race.hint
    assert "atomic" not in race.hint


LATE = """#include <cstdio>
__global__ void sum(const float* x, float* out, int n) {
  __shared__ float s[64]; int t = threadIdx.x;
  s[t] = t < n ? x[t] : 0;
  for (int i = 32; i > 0; i /= 2) {
    BARRIER
    if (t < i) s[t] += s[t + i];
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
int main() {
  float h[64], *x, *o;
  for (int i = 0; i < 64; i++) h[i] = i;
  cudaMalloc(&x, sizeof h); cudaMalloc(&o, sizeof h); cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice);
  for (int again = 0; again < 3; again++) sum<<<BLOCKS, 64>>>(x, o, 64 - again);
  cudaMemcpy(h, o, 4, cudaMemcpyDeviceToHost);
  printf("%g", h[0]); cudaFree(x); cudaFree(o);
}
"""


@pytest.mark.parametrize("blocks", [1, 3])
def test_a_small_kernel_that_there_is_no_time_to_interpret_is_checked_for_races(tmp_path, blocks):
    """A program's last kernels, behind large ones that used up the interpreter's seconds."""
    path = tmp_path / "p.cu"
    text = LATE.replace("BLOCKS", str(blocks))
    path.write_text(text.replace("BARRIER", "__syncthreads();"))
    right = run_program(path, [], Options(interpret=0.0), capture=True)
    assert (right.output, right.findings) == ("1891", [])
    path.write_text(text.replace("BARRIER", ""))
    found = run_program(path, [], Options(interpret=0.0), capture=True).faults
    assert {(f.kind.value, f.array) for f in found} == {("race", "s")}
