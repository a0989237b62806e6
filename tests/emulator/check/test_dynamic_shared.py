"""extern __shared__ memory has the size given by the third launch argument."""

from __future__ import annotations

import numpy as np
import pytest
from simt_support import KERNELS

from tilewise import check, trace
from tilewise.emulator import launch
from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program

BODIES = {
    "subscript": ("float tile", "tile[i] = P[i]; __syncthreads(); P[i] = 2 * tile[n - 1 - i];"),
    "pointer": ("float tile", "float *p = tile; p[i] = P[i]; __syncthreads(); P[i] = p[n - 1 - i];"),
    "carved": (
        "float tile",
        "float *a = tile, *b = tile + n; a[i] = b[i] = P[i]; __syncthreads(); P[i] = a[0] + b[i];",
    ),
    "bytes": ("char tile", "float *a = (float *)tile; a[i] = P[i]; __syncthreads(); P[i] = a[n - 1 - i];"),
    "one": ("float tile", "if (i == 0) tile[0] = P[i]; __syncthreads(); P[i] = 2 * tile[0];"),
    "star": ("float tile", "if (i == 0) *tile = P[i]; __syncthreads(); P[i] = *tile;"),
    "atomic": ("int tile", "if (i == 0) tile[0] = 0; __syncthreads(); atomicAdd(&tile[0], 1); P[i] = 1;"),
    "vector": ("float4 tile", "tile[i] = make_float4(P[i], 0, 0, 0); __syncthreads(); P[i] = tile[n - 1 - i].x;"),
}
THIRD = "third launch argument, <<<grid, block, bytes>>>"


def program(body: str, third: str, blocks: int = 1) -> str:
    declared, work = BODIES[body]
    return f"""#include <stdio.h>
__global__ void work(float *P, int n) {{
    extern __shared__ {declared}[];
    int i = threadIdx.x;
    {work}
}}
int main() {{
    float h[8] = {{0, 1, 2, 3, 4, 5, 6, 7}}, *d;
    cudaMalloc(&d, sizeof h);
    cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice);
    work<<<{blocks}, 8{third}>>>(d, 8);
    cudaDeviceSynchronize();
    cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
    printf("%g\\n", h[0]);
    cudaFree(d);
}}
"""


@pytest.mark.parametrize("body", BODIES)
def test_check_finds_a_launch_without_bytes(body):
    report = check(program(body, ", 0" if body == "star" else ""))
    assert not report.clean
    assert any(f.kind == "out-of-bounds" and f.array == "tile" and THIRD in f.hint for f in report.seen)
    assert all("has 0 bytes" in f.hint for f in report.seen if f.kind == "out-of-bounds")


@pytest.mark.drawn(2)  # each program is compiled in a process, 0.2 to 2 s
@pytest.mark.parametrize(
    ("body", "interpret"), [*((body, 4.0) for body in BODIES), ("subscript", 0.0), ("bytes", 0.0), ("vector", 0.0)]
)
def test_run_finds_a_launch_without_bytes(tmp_path, body, interpret):
    path = tmp_path / "program.cu"
    path.write_text(program(body, ""))
    report = run_program(path, [], Options(interpret=interpret), capture=True)
    assert report.ended == "exit", report.message
    found = [f for f in report.findings if f.kind == "out-of-bounds"]
    assert found
    assert all(THIRD in f.hint for f in found)
    assert not any("a store -" in f.message or "a load -" in f.message for f in found)  # no −233,468 bytes past


@pytest.mark.drawn(3)  # each program is compiled in a process, 0.2 to 2 s
@pytest.mark.parametrize("body", BODIES)
def test_enough_bytes_are_no_fault(tmp_path, body):
    text = program(body, ", 32 * sizeof(float)")
    assert check(text).clean
    path = tmp_path / "program.cu"
    path.write_text(text)
    assert run_program(path, capture=True).findings == []


def test_a_vector_that_ends_outside_is_a_fault(tmp_path):
    """8 bytes for vectors of 16."""
    path = tmp_path / "program.cu"
    path.write_text(program("vector", ", 8"))
    report = run_program(path, capture=True)
    assert report.ended == "exit", report.message
    assert {str(f.kind) for f in report.findings} == {"out-of-bounds"}
    assert all("has 8 bytes" in f.hint for f in report.findings)


def test_several_blocks_without_bytes(tmp_path):
    path = tmp_path / "program.cu"
    path.write_text(program("subscript", "", blocks=5))
    report = run_program(path, capture=True)
    assert report.ended == "exit", report.message
    assert any(THIRD in f.hint for f in report.findings)


KERNEL = """__global__ void product(const float *M, const float *N, float *P, int m, int k, int n) {
    extern __shared__ float tile[];
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int t = 0; t < k; ++t) {
        if (threadIdx.x == 0 && row < m) tile[threadIdx.y] = M[row * k + t];
        __syncthreads();
        if (row < m && col < n) sum += tile[threadIdx.y] * N[t * n + col];
        __syncthreads();
    }
    if (row < m && col < n) P[row * n + col] = sum;
}
"""
HOST = """void multiply(const float *M, const float *N, float *P, int m, int k, int n, int bytes) {
    dim3 block(16, 16), grid((n + 15) / 16, (m + 15) / 16);
    product<<<grid, block THIRD>>>(M, N, P, m, k, n);
}
"""


def test_bytes_are_supplied_only_without_a_known_launch():
    alone = check(KERNEL)
    assert alone.clean
    assert check(KERNEL + HOST.replace("THIRD", ", 16 * sizeof(float)")).clean
    assert check(KERNEL + HOST.replace("THIRD", ", bytes")).clean  # a parameter of the host function
    without = check(KERNEL + HOST.replace(" THIRD", ""))
    assert any(f.kind == "out-of-bounds" and THIRD in f.hint for f in without.seen)


def test_launch_takes_the_bytes_as_an_argument():
    text = program("subscript", "")
    P = np.arange(8, dtype=np.float32)
    assert launch(text, "work", (1,), (8,), (P, 8), checks=True, shared=32).findings == ()
    np.testing.assert_array_equal(P, 2 * np.arange(8)[::-1])
    assert any(THIRD in f.hint for f in launch(text, "work", (1,), (8,), (P, 8), checks=True).findings)


@pytest.mark.parametrize("name", ["dynamic_tiles", "loads_by_a_function"])
def test_tiles_behind_pointers_have_phases_and_fills(name):
    """Which memory a pointer leads to shows when it is stored through."""
    run = trace(str(KERNELS / "right" / f"{name}.cu"), shape=(5, 6, 7), blocks="all").run
    wanted = {"loads": 5 * 6 * 2 + 6 * 7 * 2, "fills": 4 * 2 * 2 * 16 - 144, "stores": 35, "phases": 2}
    assert {counter: run.counters[counter] for counter in wanted} == wanted
    assert not run.faults


def test_the_side_of_a_tile_that_is_a_parameter_is_no_size_of_the_matrices():
    assert check(str(KERNELS / "right" / "loads_by_a_function.cu"), shape=(5, 6, 7)).clean
