"""Inlining of functions of one expression in lanes gives the results of calls."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(2)  # each program is compiled in a process, 0.2 to 2 s

PROGRAM = """
#include <cstdio>
struct M {{ int w, h; float* e; }};
int n0 = 3;
__device__ int scale = 10;
__device__ float get(const M a, int r, int c) {{ return a.e[r * a.w + c]; }}
__device__ void set(M* a, int r, int c, float v) {{ a->e[r * a->w + c] = v; }}
__device__ int cut(int x) {{ return x; }}
__device__ float half_of(int x) {{ return x / 2; }}
__device__ float twice(float x) {{ return x + x; }}
__device__ int scaled(int x) {{ return x * scale; }}
__device__ int up(int& x) {{ return x += 1; }}
__device__ float pick(bool yes, float v) {{ return yes ? v : -1.0f; }}
__device__ float both(float x) {{ return twice(twice(x)); }}
__device__ float2 pair(float x) {{ float2 p; p.x = x; p.y = 2 * x; return p; }}
__device__ float sum_of(float2 p) {{ return p.x + p.y; }}
__device__ float through(float x) {{ return sum_of(pair(x)); }}
__device__ int own(int x) {{ return x + (int)threadIdx.x; }}
__global__ void k(M a, M* b, float* out, int n) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; float v = 0;
  {body}
  out[i] = v; }}
int main() {{ const int n = 64; float h[64], *d, *o; M a, *b; for (int i = 0; i < n; i++) h[i] = i; cudaMalloc(&d, sizeof h); cudaMalloc(&o, sizeof h); cudaMalloc(&b, sizeof(M));
  cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice); a.w = 8; a.h = 8; a.e = d; cudaMemcpy(b, &a, sizeof a, cudaMemcpyHostToDevice);
  k<<<2, 32>>>(a, b, o, n); cudaMemcpy(h, o, sizeof h, cudaMemcpyDeviceToHost); double s = 0; for (int i = 0; i < n; i++) s += h[i] * (i % 5 + 1); printf("%g %g %g\\n", h[0], h[63], s);
  cudaFree(d); cudaFree(o); cudaFree(b); return 0; }}
"""
# with the last thread's value and the sum over all threads
CASES = {
    "a member of a struct": ("v = get(a, i / 8, i % 8);", lambda i: i),
    "through a pointer to it": ("set(b, i / 8, i % 8, 3.0f); v = a.e[i];", lambda i: 3),
    "cut to an int": ("v = cut(i + 0.75f);", lambda i: i),
    "an int's half": ("v = half_of(i);", lambda i: i // 2),
    "functions in functions": ("v = both(i);", lambda i: 4 * i),
    "a variable of the card": ("v = scaled(i);", lambda i: 10 * i),
    "where the kernel has that name": ("int scale = 7; v = scaled(i) + scale;", lambda i: 10 * i + 7),
    "a reference that is changed": ("int x = i; up(x); v = up(x) + x;", lambda i: 2 * i + 4),
    "objects on the way": ("v = through(i);", lambda i: 3 * i),
    "threadIdx inside": ("v = own(1000);", lambda i: 1000 + i % 32),
    "an argument that changes something": ("int x = i; v = twice(x++) + x;", lambda i: 3 * i + 1),
    "in a loop that lanes leave apart": ("for (int j = 0; j < i % 4; j++) v += twice(get(a, 0, j));", lambda i: [0, 0, 2, 6][i % 4]),
}  # fmt: skip


def run(tmp_path, body):
    path = tmp_path / "program.cu"
    path.write_text(PROGRAM.format(body=body))
    return run_program(path, [], Options(interpret=0.0), capture=True)


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", CASES)
def test_inlined_functions_give_the_same_results(tmp_path, name):
    body, value = CASES[name]
    report = run(tmp_path, body)
    values = [float(value(i)) for i in range(64)]
    total = sum(v * (i % 5 + 1) for i, v in enumerate(values))
    assert report.faults == []
    assert report.launches[0]["lanes"] == 16 or "reference" in name
    assert report.output == f"{values[0]:g} {values[63]:g} {total:g}\n"


def test_an_argument_is_read_though_the_function_does_not_use_it(tmp_path):
    report = run(tmp_path, "v = pick(false, a.e[i + 1]);")
    assert [(f.kind.value, f.place.line) for f in report.faults] == [("out-of-bounds", 20)]


def test_a_fault_inside_is_reported_at_the_functions_line(tmp_path):
    report = run(tmp_path, "v = get(a, i / 8, i % 8 + 1);")
    assert [(f.kind.value, f.place.line) for f in report.faults] == [("out-of-bounds", 6)]
