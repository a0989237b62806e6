"""Evaluation of the file's launch for the requested sizes, and the roles of parameters."""

from __future__ import annotations

import numpy as np
import pytest
from simt_support import KERNELS, course

from tilewise.emulator.budget import Exhausted
from tilewise.errors import UsageError
from tilewise.teaching.trace import check, checking, trace

KERNEL = """
#define TILE 16
__global__ void mm(const float* A, const float* B, float* C, int m, int k, int n) {
    int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < m && c < n) { float s = 0; for (int i = 0; i < k; ++i) s += A[r * k + i] * B[i * n + c]; C[r * n + c] = s; }
}
"""


def geometry(host, shape=(20, 30, 50), kernel=KERNEL, **options):
    run = check(kernel + host, shape=shape, **options).runs[0]
    return run.grid, run.block


def test_sizes_called_m_n_k_are_those_of_a_transposed_operand():
    transposed = KERNEL.replace("A[r * k + i]", "A[i * m + r]")
    assert check(transposed).clean
    slip = check(KERNEL.replace("A[r * k + i]", "A[r * m + i]"))
    assert "silent-overrun" in {f.kind.value for f in slip.at_other_sizes}


def test_a_function_that_launches_and_cannot_be_read_is_named():
    report = check(KERNEL + "void go(float* A, B, int n) { mm<<<dim3(1, 1), dim3(TILE, TILE)>>>(A, A, A, n, n, n); }")
    assert "B" in report.not_judged["go"]


@pytest.mark.parametrize(
    ("body", "grid"),
    [
        ("dim3 b(TILE, TILE); dim3 g((n + TILE - 1) / TILE, (m + TILE - 1) / TILE); mm<<<g, b>>>(ARGS);", (4, 2, 1)),
        ("dim3 b(TILE, TILE), g(ceil(n / 16), ceil(m / 16)); mm<<<g, b>>>(ARGS);", (3, 1, 1)),
        ("dim3 b(TILE, TILE), g(ceil(n / 16.0), ceil(m / 16.0)); mm<<<g, b>>>(ARGS);", (4, 2, 1)),
        ("dim3 b(TILE, TILE), g; g.x = ceil((float)n / b.x); g.y = (m - 1) / b.y + 1; mm<<<g, b>>>(ARGS);", (4, 2, 1)),
        ("unsigned w = n / TILE; if (n % TILE) w++; mm<<<dim3(4, 2), dim3(TILE, TILE)>>>(ARGS);", (4, 2, 1)),
        ("mm<<<{4, 2}, dim3{TILE, TILE, 1}>>>(A, B, C, m, k, n);", (4, 2, 1)),
        ("int bs = 8 << 1; dim3 b = dim3(bs, bs); mm<<<dim3(up(n, bs), up(m, bs)), b>>>(ARGS);", (4, 2, 1)),
    ],
)  # fmt: skip
def test_grids(body, grid):
    host = "int up(int a, int b) { return (a + b - 1) / b; }\n"
    host += (
        "void run(float* A, float* B, float* C, int m, int k, int n) { "
        + body.replace("ARGS", "A, B, C, m, k, n")
        + " }"
    )
    assert geometry(host) == (grid, (16, 16, 1))


def test_the_shape_replaces_sizes_fixed_in_main():
    host = "#define N 1024\nint main() { int m = 512; const int k = 256; float *a, *b, *c; dim3 t(16, 16);"
    host += "mm<<<dim3((N + 15) / 16, (m + 15) / 16), t>>>(a, b, c, m, k, N); return 0; }"
    assert geometry(host) == ((4, 2, 1), (16, 16, 1))


def test_a_launch_that_cannot_be_evaluated_is_reported():
    host = "void run(float* A, float* B, float* C, int m, int k, int n) {"
    host += "int g = ask(); mm<<<g, 256>>>(A, B, C, m, k, n); }"
    run = check(KERNEL + host, shape=(4, 4, 4)).runs[0]
    assert any("could not be evaluated" in s and "g" in s for s in run.supplied)


def test_template_arguments_come_from_the_launch():
    run = check(KERNELS / "block_tiled.cu", shape=(64, 16, 64)).runs[0]
    assert run.block == (64, 1, 1)
    assert run.grid == (1, 1, 1)
    assert not run.faults
    run = check(KERNELS / "sdk_template.cu", shape=(32, 16, 48)).runs[0]
    assert run.grid == (3, 2, 1)
    assert not run.faults


def test_m_n_k_by_how_they_are_used():
    blas = KERNEL.replace("int m, int k, int n", "int M, int N, int K").replace("< m", "< M").replace("< n", "< N")
    blas = blas.replace("< k", "< K").replace("* k", "* K").replace("* n", "* N")
    text = (
        KERNEL.replace("int m, int k, int n", "int m, int n, int k").replace("c < n", "c < @").replace("i < k", "i < n")
    )
    text = (
        text.replace("c < @", "c < k")
        .replace("r * k", "r * n")
        .replace("i * n + c", "i * k + c")
        .replace("r * n + c", "r * k + c")
    )
    for kernel in (blas, text):
        run = check(kernel, shape=(5, 9, 7)).runs[0]
        assert not run.faults, (run.binding, [str(f) for f in run.faults])
    assert "n: k = 9" in run.binding


def test_unambiguous_names():
    kernel = KERNEL.replace("int m, int k, int n", "int numARows, int numAColumns, int numBRows, int numBColumns")
    kernel = (
        kernel.replace("r < m", "r < numARows").replace("c < n", "c < numBColumns").replace("i < k", "i < numBRows")
    )
    kernel = kernel.replace("* n ", "* numBColumns ").replace("r * k", "r * numAColumns")
    assert check(kernel, shape=(5, 9, 7)).ok


def test_sizes_that_are_macros():
    kernel = KERNEL.replace(", int m, int k, int n", "").replace("#define TILE 16", "#define WIDTH 1024")
    for name in ("< m", "< n", "< k", "* k", "* n"):
        kernel = kernel.replace(name, name[:2] + "WIDTH")
    run = check(kernel, shape=(6, 6, 6), block=(4, 4)).runs[0]
    assert run.grid == (2, 2, 1)
    assert not run.faults
    with pytest.raises(UsageError, match="square"):
        check(kernel, shape=(5, 6, 7))


def test_pitched_structs_and_struct_pointers():
    kernel = """
    typedef struct { int width, height, stride; float* elements; } Matrix;
    __device__ float get(const Matrix A, int r, int c) { return A.elements[r * A.stride + c]; }
    __global__ void mm(Matrix A, Matrix B, Matrix* C) {
        int r = blockIdx.y * 4 + threadIdx.y, c = blockIdx.x * 4 + threadIdx.x;
        if (r >= A.height || c >= B.width) return;
        float s = 0;
        for (int e = 0; e < A.width; ++e) s += get(A, r, e) * get(B, e, c);
        C->elements[r * C->width + c] = s;
    }
    """
    report = check(kernel, shape=(5, 9, 7), block=(4, 4))
    assert report.ok, [str(f) for f in report.faults]


def test_anything_else_by_arguments():
    kernel = "__global__ void scale(float* x, float a, int n) {"
    kernel += "int i = blockIdx.x * 4 + threadIdx.x; if (i < n) x[i] *= a; }"
    x = np.arange(6, dtype=np.float32)
    run = check(kernel, args={"x": x, "a": 2, "n": 6}, grid=(2,), block=(4,)).runs[0]
    assert run.arrays["x"].tolist() == [0, 2, 4, 6, 8, 10]
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    bad = check(kernel, args={"x": x, "a": 2, "n": 7}, grid=(2,), block=(4,)).runs[0]
    assert [str(f.kind) for f in bad.faults][:1] == ["out-of-bounds"]
    with pytest.raises(UsageError, match="needs a value for a"):
        check(kernel, args={"x": x, "n": 6}, grid=(2,), block=(4,))
    with pytest.raises(UsageError, match="no parameter y"):
        check(kernel, args={"y": x}, grid=(2,), block=(4,))


def test_an_output_that_the_host_clears_may_be_added_to():
    kernel = KERNEL.replace("C[r * n + c] = s", "C[r * n + c] += s")
    host = "void run(float* A, float* B, float* C, int m, int k, int n) { cudaMemset(C, 0, 4 * m * n); dim3 b(16, 16);"
    host += "mm<<<dim3((n + 15) / 16, (m + 15) / 16), b>>>(A, B, C, m, k, n); }"
    assert check(kernel + host, shape=(3, 4, 5)).ok
    assert not check(kernel, shape=(3, 4, 5)).ok


def test_usage_errors_are_one_sentence():
    for options in (
        {"shape": (0, 1, 1)},
        {"shape": (2, 2)},
        {"tile": 0},
        {"tile": 64},
        {"entry": "no"},
        {"block": (64, 64)},
    ):
        with pytest.raises(UsageError):
            check(course("tiled_edges"), **options)
    with pytest.raises(UsageError):
        trace(course("tiled_edges"), shape=(3, 3, 3), blocks=[(7, 7)])


def test_three_vectors_are_no_product():
    kernel = "__global__ void add(const float* a, const float* b, float* c, int n) {"
    kernel += "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[i] + b[i]; }"
    report = check(kernel)
    assert report.clean
    assert "not decided" in report.grounds["add"]
    assert report.runs[0].shape is None


def test_missing_template_arguments_are_requested():
    text = course("block_tiled").split("#define CEIL_DIV")[0]
    with pytest.raises(UsageError, match="-D BM"):
        check(text)
    values = {"BM": 16, "BN": 16, "BK": 4, "TM": 4, "TN": 4}
    report = check(text, shape=(32, 8, 16), defines=values, block=(16,), grid=(1, 2))
    assert report.ok, [str(f) for f in report.faults]


def test_a_kernel_that_uses_x_alone_gets_a_flat_block():
    text = """template <const int BLOCKSIZE>
    __global__ void mm(int M, int N, int K, const float* A, const float* B, float* C) {
        const int r = blockIdx.y * BLOCKSIZE + threadIdx.x / BLOCKSIZE;
        const int c = blockIdx.x * BLOCKSIZE + threadIdx.x % BLOCKSIZE;
        if (r >= M || c >= N) return;
        float s = 0;
        for (int i = 0; i < K; ++i) s += A[r * K + i] * B[i * N + c];
        C[r * N + c] = s;
    }"""
    run = check(text, shape=(9, 5, 7), tile=4).runs[0]
    assert (run.grid, run.block) == ((2, 3, 1), (16, 1, 1))
    assert not run.faults


def test_functions_in_a_namespace_and_constants_that_are_no_sizes():
    text = """
    constexpr int N = 1 << 10; const int SHMEM = 1 << 4;
    namespace tools { __device__ int at(int r, int c) { return r * N + c; } }
    __global__ void mm(const float* a, const float* b, float* c) {
        __shared__ float s[SHMEM];
        int r = blockIdx.y * 4 + threadIdx.y, k = blockIdx.x * 4 + threadIdx.x;
        s[threadIdx.y * 4 + threadIdx.x] = 0;
        if (r < N && k < N) {
            for (int i = 0; i < N; ++i) s[threadIdx.y * 4 + threadIdx.x] += a[tools::at(r, i)] * b[i * N + k];
            c[r * N + k] = s[threadIdx.y * 4 + threadIdx.x];
        }
    }"""
    report = check(text, shape=(6, 6, 6), block=(4, 4))
    assert report.ok, [str(f) for f in report.faults]


def test_flags_and_tiles_among_the_parameters_are_no_sizes():
    kernel = KERNEL.replace("int m, int k, int n)", "int m, int k, int n, bool flip, int tile_width)")
    run = check(kernel, shape=(5, 9, 7), tile=4).runs[0]
    assert not run.faults
    assert "flip: assumed = 0" in run.binding
    assert "tile_width: tile = 4" in run.binding


MANAGED = """
__global__ void total(const float *x, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(out, x[i]);
}
int main() {
  const int n = 100; float *x, *out;
  cudaMallocManaged(&x, n * sizeof(float)); cudaMallocManaged(&out, sizeof(float));
  for (int i = 0; i < n; i++) x[i] = i;
  FIRST
  total<<<(n + 31) / 32, 32>>>(x, out, n);
  cudaDeviceSynchronize();
  float sum = *out; cudaFree(x); cudaFree(out);
  return sum != 4950;
}
"""


@pytest.mark.parametrize(("first", "faults"), [("*out = 0;", 0), ("", 1)])
def test_what_the_host_stored_to_managed_memory_has_values_in_the_launch_too(first, faults):
    report = check(MANAGED.replace("FIRST", first))
    found = {f.line for run in report.runs for f in run.findings if f.kind.value == "uninitialised-read"}
    assert len(found) == faults, report


def test_where_the_time_is_used_up_at_other_sizes_the_programs_own_launch_is_judged(monkeypatch):
    def stopped(*_):
        raise Exhausted

    monkeypatch.setattr(checking, "_probes", stopped)
    host = """
__global__ void last(float* x) { x[threadIdx.x] = 1; }
int main() {
  float *a, *b, *c; cudaMalloc(&a, 400); cudaMalloc(&b, 400); cudaMalloc(&c, 400);
  cudaMemset(a, 0, 400); cudaMemset(b, 0, 400);
  mm<<<dim3(1, 1), dim3(TILE, TILE)>>>(a, b, c, 10, 10, 10);
  cudaFree(a); cudaFree(b); cudaFree(c);
}
"""
    report = check(KERNEL + host)
    assert [run.entry for run in report.runs][1:] == ["mm"]
    assert {"mm at other sizes", "last"} <= report.not_judged.keys()


def test_what_mains_run_found_is_reported_when_the_budget_ends_before_the_kernels_are_judged(tmp_path, monkeypatch):
    def ends(*_: object) -> None:
        raise Exhausted

    monkeypatch.setattr(checking, "_try", ends)
    path = tmp_path / "leaves.cu"
    path.write_text("""\
__global__ void fill(float *x) { x[threadIdx.x] = 1; }
int main() {
  float *x;
  cudaMalloc(&x, 16);
  fill<<<1, 8>>>(x);
  cudaFree(x);
}
""")
    report = check(path)
    assert [(str(f.kind), f.line) for f in report.faults] == [("out-of-bounds", 1)]


def test_a_program_that_lacks_input_gets_a_hint(tmp_path):
    path = tmp_path / "reads.cu"
    path.write_text("""\
#include <cstdio>
__global__ void fill(float *x) { x[threadIdx.x] = 1; }
int main() {
  int n;
  float *x;
  scanf("%d", &n);
  cudaMalloc(&x, n * 4);
  fill<<<1, n>>>(x);
  cudaFree(x);
}
""")
    reasons = check(path).not_judged
    assert any("FILE < INPUT" in reason for reason in reasons.values()), reasons
