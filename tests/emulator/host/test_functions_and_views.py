"""Pointers to device functions, on the host and between kernels; and memory accessed as other types."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(2)  # each program is compiled in a process, 0.2 to 2 s

FUNCTIONS = r"""
#include <cstdio>
struct V { float x, y; };
typedef float (*op_t)(float, float);
typedef V (*make_t)(const V&, bool);
__host__ __device__ float sub(float a, float b) { return a - b; }
__device__ float addOp(float a, float b) { return a + b; }
template <typename T> __device__ T mulOp(T a, T b) { return a * b; }
__device__ V flip(const V& v, bool twice) { V r; r.x = twice ? v.x : v.y; r.y = twice ? v.y : v.x; return r; }
__device__ op_t table[3] = {addOp, mulOp<float>, sub};
__constant__ op_t chosen;
__device__ make_t maker = flip;
__device__ op_t kept;
struct Holder { op_t f; };
__device__ float twice(op_t f, float a) { return f(a, f(a, a)); }
__global__ void all(float* o, int k) {
  int i = threadIdx.x; op_t local = i & 1 ? addOp : table[k];
  o[i] = local(i, 2) + twice(table[2], i);
  V v = {1, 2}; V w = maker(v, i == 0); o[i] += 100 * w.x;
  if (i == 0) kept = mulOp<float>;
}
__global__ void later(float* o, Holder h) { o[threadIdx.x] = kept(threadIdx.x, 10) + chosen(1, 2) + h.f(3, 4); __syncthreads(); }
int main() {
  float *d, r[4]; op_t host = sub, one; cudaMalloc(&d, 16);
  printf("%g\n", host(5, 3));
  all<<<1, 4>>>(d, 1); cudaMemcpy(r, d, 16, cudaMemcpyDeviceToHost); printf("%g %g %g %g\n", r[0], r[1], r[2], r[3]);
  cudaMemcpyFromSymbol(&one, table, sizeof one, 2 * sizeof one); cudaMemcpyToSymbol(chosen, &one, sizeof one);
  Holder h = {one};
  later<<<1, 4>>>(d, h); cudaMemcpy(r, d, 16, cudaMemcpyDeviceToHost); printf("%g %g %g %g\n", r[0], r[1], r[2], r[3]);
#ifdef WRONG_ONE
  h.f = host; later<<<1, 4>>>(d, h); cudaDeviceSynchronize();
#endif
  cudaFree(d);
}
"""
PITCHED = r"""
#include <cstdio>
__global__ void k(float* a, size_t pitch, int width, int height) {
  int x = threadIdx.x, y = threadIdx.y;
  if (x < width && y < height) { float* row = (float*)((char*)a + y * pitch); row[x] = 10 * y + x; }
}
int main() {
  float *d, h[12][10]; size_t pitch; cudaMallocPitch((void**)&d, &pitch, 40, 12);
  k<<<1, dim3(16, 16)>>>(d, pitch, WIDTH, 12);
  cudaMemcpy2D(h, 40, d, pitch, 40, 12, cudaMemcpyDeviceToHost); printf("%g %g\n", h[0][9], h[11][9]); cudaFree(d);
}
"""
PARTS = r"""
#include <cstdio>
__global__ void k(float* a, int* s) { int i = threadIdx.x; a[i] += 1; unsigned char* b = (unsigned char*)a; s[i] = b[4 * i + 3] + ((short*)a)[2 * i]; }
int main() {
  float* d; int *s, r[4]; cudaMalloc(&d, 16); cudaMemset(d, 0, 16); cudaMalloc(&s, 16); k<<<1, 4>>>(d, s);
  cudaMemcpy(r, s, 16, cudaMemcpyDeviceToHost); printf("%d %d\n", r[0], r[3]); cudaFree(d); cudaFree(s);
}
"""
FLAG = r"""
#include <cstdio>
__global__ void k(const int* in, int* changed, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int r = 0; r < n; ++r) if (in[i] == r) *changed = VALUE;
}
int main() {
  int h[64], *in, *changed, r; for (int i = 0; i < 64; ++i) h[i] = i % 5;
  cudaMalloc(&in, sizeof h); cudaMalloc(&changed, 4); cudaMemcpy(in, h, sizeof h, cudaMemcpyHostToDevice); cudaMemset(changed, 0, 4);
  k<<<2, 32>>>(in, changed, 5); cudaMemcpy(&r, changed, 4, cudaMemcpyDeviceToHost); printf("%d\n", r > 0); cudaFree(in); cudaFree(changed);
}
"""


@pytest.fixture
def run(tmp_path):
    def go(text, **options):
        path = tmp_path / "program.cu"
        path.write_text(text)
        return run_program(path, [], Options(**options), capture=True)

    return go


def test_device_functions_are_values(run):
    report = run(FUNCTIONS)
    assert (report.output, report.faults) == ("2\n100 204 206 208\n-2 8 18 28\n", []), report.message


def test_a_host_function_is_not_a_device_function(run):
    report = run("#define WRONG_ONE\n" + FUNCTIONS)
    assert (report.ended, [f.kind.value for f in report.faults]) == ("crash", ["out-of-bounds"])
    assert "no function of its type" in report.faults[0].message


@pytest.mark.parametrize("interpret", [0.0, 1e6])
def test_rows_of_pitched_memory_are_addressed_in_bytes(run, interpret):
    report = run(PITCHED.replace("WIDTH", "10"), interpret=interpret)
    assert (report.output, report.faults, report.notes) == ("9 119\n", [], []), report.message
    beyond = run(PITCHED.replace("WIDTH", "16").replace("(char*)a", "(char*)(a + 120)"), interpret=interpret)
    assert "out-of-bounds" in {f.kind.value for f in beyond.faults}


def test_parts_of_larger_values_are_read_by_the_compiled_kernel(run):
    report = run(PARTS, interpret=1e6)
    assert (report.output, report.faults) == ("63 63\n", []), report.message
    assert all(launch["compiled_blocks"] for launch in report.launches)


def test_storing_the_same_value_from_many_threads_is_no_race(run):
    assert run(FLAG.replace("VALUE", "1"), interpret=1e6).faults == []
    told = run(FLAG.replace("VALUE", "r + 1"), interpret=1e6).faults
    assert {f.kind.value for f in told} == {"race"}


def test_remove_of_a_file_and_the_algorithm_coexist(run):
    report = run('#include <algorithm>\n#include <cstdio>\nint main() { printf("%d\\n", std::remove("none.txt")); }\n')
    assert report.output == "-1\n", report.message


def test_addresses_of_functions_are_numbers_and_truth_values(run):
    report = run(r"""
#include <cstdio>
#include <cstdint>
void told() { printf("told\n"); }
__global__ void k(int* p) { *p = 1; }
int main() {
  long a = (long)told, b = (long)&told; uintptr_t c = reinterpret_cast<uintptr_t>(told);
  bool there = (bool)told && told;
  printf("%d %d %d %d\n", a == b, b == (long)c, (long)k != 0, there);
  ((void (*)())a)();
}
""")
    assert (report.output, report.faults) == ("1 1 1 1\ntold\n", []), report.message
