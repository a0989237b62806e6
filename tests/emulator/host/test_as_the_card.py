"""Operations in which GPU and host differ: kernels, compiled or interpreted, do what PTX specifies."""

# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import numpy as np
import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(2)  # each program is compiled in a process, 0.2 to 2 s

KERNEL = """
__device__ double given@[] = {GIVEN};
__global__ void k@(RESULT* out, int m) {
  int i = threadIdx.x; double d = given@[i]; float f = (float)d; int n = (int)d;
  for (int r = 0; r < m; ++r) out[i] = EXPRESSION;
}
void run@() {
  RESULT *p, h[16]; cudaMalloc(&p, sizeof h); cudaMemset(p, 0, sizeof h);
  k@<<<1, THREADS>>>(p, 1); cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost);
  for (int i = 0; i < COUNT; ++i) printf("FORMAT ", h[i]);
  printf("\\n"); cudaFree(p);
}
"""
ODD = "-3.7, 300.5, 3e9, 1e20, -1e20, 65537.9, -129.0, -0.5, NAN"
SHIFTS = "0, 1, 31, 32, 33, 64, -1"
CASES = {  # result, expression, values, results on a GPU
    "int of double": ("int", "(int)d", ODD, "-3 300 2147483647 2147483647 -2147483648 65537 -129 0 -2147483648"),
    "int of float": ("int", "(int)f", ODD, "-3 300 2147483647 2147483647 -2147483648 65537 -129 0 0"),
    "unsigned of float": ("unsigned", "(unsigned)f", ODD, "0 300 3000000000 4294967295 0 65537 0 0 0"),
    "bytes of float": ("unsigned char", "(unsigned char)f", ODD, "0 44 0 255 0 1 0 0 0"),
    "signed bytes of float": ("signed char", "f", ODD, "-3 44 -1 -1 0 1 127 0 0"),
    "unsigned short of double": ("unsigned short", "d", ODD, "0 300 24064 65535 0 1 0 0 0"),
    "long of float": ("long", "(long)f", "-3.7, 1e20, -1e20, NAN", f"-3 {2**63 - 1} {-(2**63)} {-(2**63)}"),
    "unsigned long of double": ("unsigned long", "d", "-3.7, 1e19, 1e20, NAN", f"0 {10**19} {2**64 - 1} {2**63}"),
    "rounded to int": ("int", "__float2int_rn(f)", "2.5, 3.5, 3e9, NAN", f"2 4 {2**31 - 1} 0"),
    "rounded away": ("float", "roundf(f)", "0.49999997, 8388609, -2.5, 2.5", "0 8388609 -3 3"),
    "left": ("int", "1 << n", SHIFTS, "1 2 -2147483648 0 0 0 0"),
    "right, of a negative": ("int", "-8 >> n", SHIFTS, "-8 -4 -1 -1 -1 -1 -1"),
    "right, unsigned": ("unsigned", "0x80000000u >> n", SHIFTS, "2147483648 1073741824 1 0 0 0 0"),
    "left, long": ("long", "1L << n", SHIFTS, f"1 2 {2**31} {2**32} {2**33} 0 0"),
    "upper half": ("int", "__mulhi(n, n * 3)", "65536, -65536, 100000", "3 3 6"),
    "bits reversed": ("unsigned", "__brev((unsigned)n)", "1, 6, -1", f"{2**31} {3 << 29} {2**32 - 1}"),
    "the first bit": ("int", "__ffs(n)", "0, 1, 40, -2147483648.0", "0 1 4 32"),
}
FORMATS = {"int": "%d", "unsigned": "%u", "long": "%ld", "unsigned long": "%lu", "float": "%.9g"}


def kernel(number, case, threads):
    kind, expression, values, _ = case
    if threads == "one by one":  # a conditional on the thread prevents folding
        expression = f"0; switch (m) {{ default: out[i] = {expression}; }}"
    count = len(values.split(","))
    if threads == "as lanes":
        values += ", 0" * (16 - count)
    given = {
        "@": str(number), "GIVEN": values, "EXPRESSION": expression, "RESULT": kind, "COUNT": str(count),
        "THREADS": str(len(values.split(","))), "FORMAT": FORMATS.get(kind, "%d"),
    }  # fmt: skip
    text = KERNEL
    for name, value in given.items():
        text = text.replace(name, value)
    return text


@pytest.mark.drawn(2)
@pytest.mark.parametrize("threads", ["one by one", "as lanes", "interpreted"])
def test_kernels_convert_and_shift_like_a_gpu(threads, tmp_path):
    kernels = [kernel(i, case, threads) for i, case in enumerate(CASES.values())]
    calls = "".join(f"run{i}(); " for i in range(len(CASES)))
    path = tmp_path / "program.cu"
    path.write_text("\n".join(["#include <cstdio>", "#include <cmath>", *kernels, f"int main() {{ {calls}}}", ""]))
    report = run_program(path, [], Options(interpret=1e6 if threads == "interpreted" else 0.0), capture=True)
    assert report.ended == "exit", report.message
    printed = dict(zip(CASES, report.output.splitlines(), strict=True))
    assert {n: line.strip() for n, line in printed.items()} == {n: case[3] for n, case in CASES.items()}
    if threads == "interpreted":
        assert not report.notes, report.notes
    else:
        assert {launch["lanes"] for launch in report.launches} == {16 if threads == "as lanes" else 1}


def test_the_host_computes_what_x86_64_computes(tmp_path):
    """The same on every machine: a NEON host would saturate, too."""
    path = tmp_path / "program.cu"
    path.write_text("""
#include <cstdio>
#include <climits>
int main() {
  volatile double d = 3e9, less = -3.7; volatile int n = 33; volatile char c = (char)200;
  printf("%d %u %d %d %d %d\\n", (int)d, (unsigned)less, (unsigned char)less, 1 << n, c, CHAR_MIN);
}
""")
    expected = [np.iinfo(np.int32).min, 2**32 - 3, 253, 2, -56, -128]
    assert run_program(path, [], capture=True).output.split() == [str(v) for v in expected]


ATTRIBUTES = r"""
#include <stdio.h>
template <int N> __global__ void t(float *p) { __shared__ double d[N]; d[threadIdx.x] = p[threadIdx.x]; __syncthreads(); p[threadIdx.x] = d[0]; }
__global__ void plain(float *p) { p[threadIdx.x] = 1; }
__global__ void tiles(float *p) { __shared__ float a[16][17]; __shared__ int n; extern __shared__ float more[]; a[0][threadIdx.x] = 1; n = 1; more[threadIdx.x] = 2; p[threadIdx.x] = a[0][threadIdx.x] + n + more[threadIdx.x]; }
int main() { cudaFuncAttributes a; cudaFuncGetAttributes(&a, plain); printf("%zu ", a.sharedSizeBytes); cudaFuncGetAttributes(&a, tiles); printf("%zu ", a.sharedSizeBytes);
  cudaFuncGetAttributes(&a, t<64>); printf("%zu ", a.sharedSizeBytes); cudaFuncGetAttributes(&a, (const void *)t<32>); printf("%zu\n", a.sharedSizeBytes);
  int n; cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, t<2048>, 64, 0); printf("%d ", n); cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, plain, 64, 0); printf("%d\n", n); }
"""


def test_the_static_shared_memory_of_a_kernel_is_an_attribute(tmp_path):
    path = tmp_path / "program.cu"
    path.write_text(ATTRIBUTES)
    report = run_program(path, capture=True)
    assert (report.output, report.findings) == ("0 1092 512 256\n4 16\n", []), report.message
    path.write_text("int main() { cudaFuncAttributes a; return cudaFuncGetAttributes(&a, (const void*)0); }\n")
    assert run_program(path, capture=True).ended == "exit"


DRIVER_NAMES = r"""
#include <cuda.h>
#include <stdio.h>
#define BOTH(driver, runtime) { int a = -1, b = -2; cuDeviceGetAttribute(&a, CU_DEVICE_ATTRIBUTE_##driver, device); cudaDeviceGetAttribute(&b, cudaDevAttr##runtime, 0); printf("%d %d\n", a, b); }
int main() {
  CUdevice device; cuInit(0); cuDeviceGet(&device, 0);
  BOTH(UNIFIED_ADDRESSING, UnifiedAddressing) BOTH(MANAGED_MEMORY, ManagedMemory) BOTH(MAX_GRID_DIM_X, MaxGridDimX) BOTH(MAX_BLOCK_DIM_Z, MaxBlockDimZ)
  BOTH(MAX_REGISTERS_PER_BLOCK, MaxRegistersPerBlock) BOTH(L2_CACHE_SIZE, L2CacheSize) BOTH(GLOBAL_MEMORY_BUS_WIDTH, GlobalMemoryBusWidth)
  BOTH(MAX_THREADS_PER_MULTIPROCESSOR, MaxThreadsPerMultiProcessor) BOTH(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, MaxSharedMemoryPerBlockOptin) BOTH(COMPUTE_CAPABILITY_MAJOR, ComputeCapabilityMajor)
}
"""


def test_driver_attributes_equal_the_runtimes(tmp_path):
    path = tmp_path / "program.cu"
    path.write_text(DRIVER_NAMES)
    report = run_program(path, capture=True)
    lines = [line.split() for line in report.output.splitlines()]
    assert [a for a, _ in lines[:4]] == ["1", "1", "2147483647", "64"], report.message
    assert len(lines) == 10
    assert all(a == b for a, b in lines)
    path.write_text(
        "#include <cuda.h>\nint main() { int n; cudaDeviceGetAttribute(&n, (cudaDeviceAttr)CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0); return n; }\n"
    )
    assert run_program(path, capture=True).status == 32
