"""Vectorised kernels give the results and reports of single threads."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from seeds import next_seed

sys.path.insert(0, str(Path(__file__).parent))

import generated_kernels

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

ASTRAY = """
#include <cstdio>
__global__ void k(float* a, const float* in, int n) {
  __shared__ float room[32];
  int i = threadIdx.x + blockIdx.x * blockDim.x; float v; int own[2];
  if (threadIdx.x != 5) { v = in[i]; own[0] = i; }
  if (threadIdx.x == 3) a[5000] = 1;
  if (threadIdx.x == 9) a[n] = 1;
  room[threadIdx.x + (threadIdx.x == 7 ? 40 : 0)] = i;
  if (threadIdx.x < 6) a[i] = v;
  if (threadIdx.x >= 4 && threadIdx.x < 6) a[i] = own[0];
}
int main() {
  float *a, *in; cudaMalloc(&a, 400); cudaMalloc(&in, 400); cudaMemset(in, 0, 400);
  k<<<1, 32>>>(a, in, -9); cudaDeviceSynchronize(); cudaFree(a); cudaFree(in);
}
"""
TAKEN = {
    "one row": (
        "16, 4",
        "int row = blockIdx.y * 4 + threadIdx.y, col = threadIdx.x; p[row * 16 + col] = row - col;",
        16,
    ),
    "parts of rows": ("5, 4", "p[threadIdx.y * 5 + threadIdx.x] = threadIdx.y;", 8),
    "unsigned steps back": ("32", "unsigned i = threadIdx.x - 1; if (i < 31u) p[i] = i;", 16),
    "a walk by pointers": ("32", "float* q = p + threadIdx.x; for (int k = 0; k < 3; k++, q += 32) *q = k;", 16),
    "printing": ("8", 'if (threadIdx.x > 5) printf("%d %s\\n", (int)threadIdx.x, "me"); p[threadIdx.x] = 1;', 8),
    "pointers apart, or null": ("8", "float* q = p + threadIdx.x; if (q != NULL) *q = q - p;", 8),
    "a value that is not used": ("8", "int i = threadIdx.x; (void)i; p[i] = 1;", 8),
    "members of members": (
        "8",
        "struct A { float x, y; }; struct B { float n; A a; }; B* q = (B*)p; q[threadIdx.x].a.y = 3;",
        8,
    ),
    "blocks of four by four": ("4, 4", "p[threadIdx.y * 4 + threadIdx.x] = threadIdx.y;", 4),
    "the size of a variable": ("8", "int v = threadIdx.x; float own[2]; p[v] = sizeof(own) / sizeof v;", 1),
    "a choice of cases": ("8", "switch (threadIdx.x) { case 2: p[2] = 3; break; default: p[threadIdx.x] = 1; }", 1),
}


def both_ways(path):
    """The reports of a compiled and of an interpreted run."""
    return [run_program(path, [], Options(interpret=most), capture=True) for most in (0.0, 1e6)]


def agree(tmp_path, seed, kernels):
    path = tmp_path / f"kernels{seed}.cu"
    path.write_text(generated_kernels.program(seed, kernels))
    compiled, interpreted = both_ways(path)
    assert compiled.ended == interpreted.ended == "exit", (seed, compiled.message, interpreted.message)
    assert compiled.output == interpreted.output, seed
    assert not compiled.faults, (seed, compiled.faults)
    assert all(launch["lanes"] > 1 for launch in compiled.launches), seed


def test_random_kernels_agree_with_the_interpreter(tmp_path):
    agree(tmp_path, next_seed() % (1 << 30), 3)


@pytest.mark.slow
def test_many_random_kernels_agree_with_the_interpreter(tmp_path):
    start = next_seed() % (1 << 30)
    for seed in range(start, start + 40):
        agree(tmp_path, seed, 12)


def test_which_kernels_are_vectorised_and_their_lanes(tmp_path):
    texts, calls = [], []
    for i, (block, body, _) in enumerate(TAKEN.values()):
        texts.append(f"__global__ void k{i}(float* p) {{ {body} }}\n")
        calls.append(f"  k{i}<<<1, dim3({block})>>>(p); show(p);\n")
    path = tmp_path / "program.cu"
    path.write_text(
        "#include <cstdio>\nvoid show(float* p) { float h[128]; cudaMemcpy(h, p, 512, cudaMemcpyDeviceToHost);"
        ' for (int i = 0; i < 128; i++) printf("%g ", h[i]); puts(""); cudaMemset(p, 0, 512); }\n'
        f"{''.join(texts)}int main() {{ float* p; cudaMalloc(&p, 512); cudaMemset(p, 0, 512);\n"
        f"{''.join(calls)}  cudaFree(p); }}\n"
    )
    compiled, interpreted = both_ways(path)
    assert compiled.output == interpreted.output
    assert not compiled.faults
    assert {n: launch["lanes"] for n, launch in zip(TAKEN, compiled.launches, strict=True)} == {
        n: lanes for n, (_, _, lanes) in TAKEN.items()
    }


def test_functions_of_the_program_with_names_of_the_library(tmp_path):
    """They may depend on the thread, or have side effects, even if their arguments are uniform."""
    path = tmp_path / "program.cu"
    path.write_text("""
#include <cstdio>
__device__ int calls;
__device__ int abs(float* p) { atomicAdd(&calls, 1); return threadIdx.x; }
__device__ double fabsf(double x) { return x + threadIdx.x; }
__global__ void k(float* p) { float v = abs(p); p[threadIdx.x] = v + fabsf((double)v); }
int main() {
  float *p, h[32]; int n; cudaMalloc(&p, 128); k<<<1, 32>>>(p); cudaMemcpy(h, p, 128, cudaMemcpyDeviceToHost);
  cudaMemcpyFromSymbol(&n, calls, 4); printf("%d %g %g", n, h[3], h[31]); cudaFree(p);
}
""")
    compiled, interpreted = both_ways(path)
    assert (compiled.output, compiled.launches[0]["lanes"]) == ("32 9 93", 16)
    assert interpreted.output == compiled.output


def test_each_lane_is_reported_as_its_thread(tmp_path):
    path = tmp_path / "program.cu"
    path.write_text(ASTRAY)
    report = run_program(path, [], Options(interpret=0.0), capture=True)
    assert report.launches[0]["lanes"] == 16
    told = {(f.kind.value, f.place.line if f.place else 0): f.message for f in report.faults}
    assert "thread (x 3, y 0) of block (x 0, y 0)" in told["out-of-bounds", 7]
    assert "thread (x 9, y 0) of block (x 0, y 0)" in told["out-of-bounds", 8]
    assert "47" in told["out-of-bounds", 9]
    assert ("uninitialised-read", 10) in told
    assert "thread (x 5, y 0) of block (x 0, y 0)" in told["uninitialised-read", 11]
    assert len(told) == 5, told


def test_an_unknown_component_of_an_index_is_refused(tmp_path):
    path = tmp_path / "program.cu"
    path.write_text("__global__ void k(float* p) { p[threadIdx.P] = 1; }\nint main() { k<<<1, 16>>>(0); }\n")
    report = run_program(path, [], Options(interpret=0.0), capture=True)
    assert (report.ended, "has no member P" in report.message) == ("refused", True), report.message


def test_a_call_of_a_variable_is_refused(tmp_path):
    path = tmp_path / "program.cu"
    path.write_text(
        "__global__ void k(float* p) { int v = threadIdx.x; p[0] = v(3); }\nint main() { k<<<1, 16>>>(0); }\n"
    )
    report = run_program(path, [], Options(interpret=0.0), capture=True)
    assert (report.ended, "is not a function" in report.message) == ("refused", True), report.message
