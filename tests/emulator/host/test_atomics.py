"""Atomic operations in whole programs: results, and which other accesses race with them."""

from __future__ import annotations

import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

HEAD = "#include <cstdio>\n"
MAIN = """
int main() {
  float h[100], r = -1e30f, *d, *dr; for (int i = 0; i < 100; ++i) h[i] = (i * 37) % 83;
  cudaMalloc(&d, sizeof(h)); cudaMalloc(&dr, 4);
  cudaMemcpy(d, h, sizeof(h), cudaMemcpyHostToDevice); cudaMemcpy(dr, &r, 4, cudaMemcpyHostToDevice);
  k<<<4, 32>>>(d, dr, 100);
  cudaMemcpy(&r, dr, 4, cudaMemcpyDeviceToHost); cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost);
  printf("%g %g\\n", r, h[3]); cudaFree(d); cudaFree(dr); return 0; }
"""
LARGEST = """
__device__ void largest(float* address, float value) {
  int* bits = (int*)address; int old = *bits, assumed;
  do { assumed = old; old = atomicCAS(bits, assumed, __float_as_int(fmaxf(value, __int_as_float(assumed)))); }
  while (assumed != old);
}
__global__ void k(float* d, float* r, int n) { int i = blockIdx.x * 32 + threadIdx.x; if (i < n) largest(r, d[i]); }
"""
OWN = """
__global__ void k(float* d, float* r, int n) {
  int i = blockIdx.x * 32 + threadIdx.x;
  if (i < n) { float old = atomicExch(&d[i], 5.0f); d[i] = old + 5.0f; }
}
"""
BEHIND_A_BARRIER = """
__global__ void k(float* d, float* r, int n) {
  if (blockIdx.x > 0) return;
  atomicExch(&d[3], 0.0f); __syncthreads(); atomicAdd(&d[3], 1.0f); __syncthreads();
  if (threadIdx.x == 0) *r = d[3];
}
"""
BESIDE = """
__global__ void k(float* d, float* r, int n) {
  int i = blockIdx.x * 32 + threadIdx.x; atomicAdd(r, 1.0f);
  if (i < n) d[i] = *r;
}
"""

COMPILED = " int z = 0; again: if (z++ < 0) goto again;"  # no goto is interpreted
EXECUTORS = pytest.mark.parametrize("before", ["", COMPILED], ids=["interpreted", "compiled"])


def run(folder, kernel, before="", block=32):
    path = folder / "program.cu"
    program = HEAD + kernel.replace("int n) {", "int n) {" + before) + MAIN
    path.write_text(program.replace("<<<4, 32>>>", f"<<<4, {block}>>>"))
    return run_program(path, [], Options(), capture=True)


@pytest.mark.drawn(2)
@EXECUTORS
@pytest.mark.parametrize(("kernel", "printed"), [(LARGEST, "82 28"), (OWN, "-1e+30 33"), (BEHIND_A_BARRIER, "32 32")])
def test_no_race(tmp_path, kernel, printed, before):
    """A plain read before atomicCAS, a thread's own cell after atomicExch, a barrier between: none is a race."""
    report = run(tmp_path, kernel, before)
    assert (report.output or "").strip() == printed
    assert report.faults == []


@EXECUTORS
def test_a_plain_read_beside_atomic_additions_is_a_race(tmp_path, before):
    found = [f for f in run(tmp_path, BESIDE, before).faults if f.kind.value == "race"]
    assert {f.array for f in found} == {"r"}


@EXECUTORS
def test_counting_in_uninitialised_memory_is_reported(tmp_path, before):
    head = "__global__ void k(float* d, float* r, int n) { __shared__ float s[8];"
    kernel = head + " SET atomicAdd(&s[threadIdx.x % 8], d[0]); }"
    told = run(tmp_path, kernel.replace("SET", ""), before)
    assert [(f.kind.value, f.place.line) for f in told.faults] == [("uninitialised-read", 2)]
    for given in (
        "s[threadIdx.x % 8] = 0; __syncthreads();",
        "atomicExch(&s[threadIdx.x % 8], 0.0f); __syncthreads();",
    ):
        assert run(tmp_path, kernel.replace("SET", given), before).faults == []


FILL = "__global__ void k(float* d, float* r, int n) { __shared__ int s[8]; int t = threadIdx.x; if (t < 8) s[t] = 0;\n"
COUNT = "FIRST\natomicAdd(&s[(t + 3) % 8], 1);\nSECOND\nif (t < 8) d[t] = s[t];\n}"


@EXECUTORS
@pytest.mark.parametrize("block", [32, 96])
def test_a_histogram_in_shared_memory_needs_both_barriers(tmp_path, before, block):
    """One before the counting, since the cells are cleared by other threads, and one behind it."""
    kernel = FILL + COUNT
    for first, second, lines, hint in (
        ("__syncthreads();", "__syncthreads();", (), ""),
        ("", "__syncthreads();", (2, 4), "put __syncthreads() between line 2 and line 4"),
        ("__syncthreads();", "", (4, 6), "put __syncthreads()"),
    ):
        faults = run(tmp_path, kernel.replace("FIRST", first).replace("SECOND", second), before, block).faults
        assert [f.kind.value for f in faults] == ["race"] * bool(lines)
        for fault in faults:
            assert fault.place.line in lines
            assert before or hint in fault.hint
