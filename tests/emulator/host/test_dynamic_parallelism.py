"""Kernels launched by kernels run after the launching grid, each with the arguments of its launch."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import pytest

from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(1)  # each program is compiled in a process, 0.2 to 2 s

PROGRAM = r"""
#include <cstdio>
__global__ void leaf(int* x, int at, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[at + i] += 1; }
__global__ void halves(int* x, int first, int last, int depth) {
  if (last - first <= 4 || depth == 0) { leaf<<<1, last - first>>>(x, first, last - first); return; }
  int mid = (first + last) / 2;
  cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  halves<<<1, 1, 0, s>>>(x, first, mid, depth - 1); halves<<<1, 1>>>(x, mid, last, depth - 1);
  cudaStreamDestroy(s);
}
__global__ void parent(int* x, int n) { __shared__ int base; if (threadIdx.x == 0) base = 10; __syncthreads(); x[threadIdx.x] = base; __syncthreads(); if (threadIdx.x == 0) { dim3 g((n + 3) / 4), b(4); leaf<<<g, b>>>(x, 0, n); } }
int main() {
  const int n = 37; int *d, h[n]; cudaMalloc(&d, n * 4);
  parent<<<1, n>>>(d, n); halves<<<1, 1>>>(d, 0, n, 10); cudaDeviceSynchronize();
  cudaMemcpy(h, d, n * 4, cudaMemcpyDeviceToHost); int bad = 0; for (int v : h) bad += v != 12; printf("%d wrong, %d\n", bad, h[n - 1]); cudaFree(d); return 0;
}
"""


def test_children_and_their_children_run(tmp_path):
    (tmp_path / "p.cu").write_text(PROGRAM)
    report = run_program(tmp_path / "p.cu", capture=True)
    assert report.output == "0 wrong, 12\n", report.message
    assert report.faults == []


def test_a_child_out_of_bounds_is_reported_at_its_line(tmp_path):
    (tmp_path / "p.cu").write_text(PROGRAM.replace("if (i < n) x", "x"))
    report = run_program(tmp_path / "p.cu", capture=True)
    assert {(f.kind.value, f.place.line) for f in report.faults} == {("out-of-bounds", 3)}


def test_a_kernel_that_waits_for_its_children_is_refused(tmp_path):
    (tmp_path / "p.cu").write_text(
        PROGRAM.replace("leaf<<<g, b>>>(x, 0, n);", "leaf<<<g, b>>>(x, 0, n); cudaDeviceSynchronize();")
    )
    report = run_program(tmp_path / "p.cu", capture=True)
    assert report.ended == "refused"
    assert "waits for kernels that it launched" in report.message
