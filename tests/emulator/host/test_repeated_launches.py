"""A repeated launch on equal memory is not run again; one on other memory, or that prints or fails, is."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(1)  # each program is compiled in a process, 0.2 to 2 s

PROGRAM = """
#include <cstdio>
__device__ int calls;
__global__ void k(const float* a, float* b, int n) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) {{ {body} }} }}
int main() {{ const int n = 64; float h[64], *a, *b; for (int i = 0; i < n; i++) h[i] = i;
  cudaMalloc(&a, sizeof h); cudaMalloc(&b, sizeof h); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); cudaMemset(b, 0, sizeof h);
  for (int t = 0; t < 6; t++) {{ {between} k<<<2, 32>>>(a, b, n); cudaDeviceSynchronize(); }}
  cudaMemcpy(h, b, sizeof h, cudaMemcpyDeviceToHost); int c; cudaMemcpyFromSymbol(&c, calls, 4); printf("%g %d\\n", h[63], c);
  cudaFree(a); cudaFree(b); return 0; }}
"""
CASES = {  # the first launch of each is run with every check, so that the third may find other states than the second
    "the same again": ("b[i] = 2 * a[i];", "", "126 0\n", 3),
    "adds up": ("b[i] += a[i];", "", "378 0\n", 0),
    "counts its calls": ("b[i] = a[i]; if (i == 0) atomicAdd(&calls, 1);", "", "63 6\n", 0),
    "cleared between": ("b[i] = 2 * a[i];", "cudaMemset(b, 0, sizeof h);", "126 0\n", 3),
    "cleared, then added": ("b[i] += a[i];", "cudaMemset(b, 0, sizeof h);", "63 0\n", 3),
    "two in turn": ("b[i] += a[i];", "k<<<1, 32>>>(b, b, 7); cudaMemset(b, 0, sizeof h);", "63 0\n", 8),
    "changed once": ("b[i] = 2 * a[i];", "if (t == 4) cudaMemset(a, 0, sizeof h);", "0 0\n", 1),
    "prints": ('b[i] = a[i]; if (i == 5) printf("%d,", i);', "", "5,5,5,5,5,5,63 0\n", 0),
}


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", CASES)
def test_which_launches_are_skipped_and_their_results(tmp_path, name):
    body, between, printed, left_out = CASES[name]
    path = tmp_path / "program.cu"
    path.write_text(PROGRAM.format(body=body, between=between))
    report = run_program(path, [], Options(interpret=0.0), capture=True)
    assert (report.output, report.faults) == (printed, [])
    assert sum(bool(launch.get("repeated")) for launch in report.launches) == left_out


LARGE = """
#include <cstdio>
__global__ void k(float* a, float* b, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) b[i] BODY 2 * a[i]; }
int main() { const int n = 12 << 20; float *h = new float[n], *a, *b; for (int i = 0; i < n; i++) h[i] = i % 8; cudaEvent_t e; cudaEventCreate(&e);
  cudaMalloc(&a, n * 4); cudaMalloc(&b, n * 4); cudaMemcpy(a, h, n * 4, cudaMemcpyHostToDevice); cudaMemset(b, 0, n * 4);
  for (int t = 0; t < 8; t++) { BETWEEN k<<<n / 256, 256>>>(a, b, n); cudaEventRecord(e); }
  cudaMemcpy(h, b, n * 4, cudaMemcpyDeviceToHost); printf("%g\\n", h[n - 1]); cudaFree(a); cudaFree(b); delete[] h; cudaEventDestroy(e); return 0; }
"""
FOLLOWING = {
    "sets": ("=", "", "14\n", 6),
    "adds up": ("+=", "", "112\n", 0),
    "another between": ("=", "if (t == 5) cudaMemset(a, 0, n * 4);", "0\n", 3 + 1),
}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", FOLLOWING)
def test_large_memory_is_compared_once_if_a_launch_follows_itself(tmp_path, name):
    body, between, printed, left_out = FOLLOWING[name]
    path = tmp_path / "program.cu"
    path.write_text(LARGE.replace("BODY", body).replace("BETWEEN", between))
    report = run_program(path, [], Options(interpret=0.0), capture=True)
    assert (report.output, report.faults) == (printed, [])
    assert sum(bool(launch.get("repeated")) for launch in report.launches) == left_out
