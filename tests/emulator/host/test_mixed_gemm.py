"""cublasGemmEx: mixed-precision products, compared with loops in the program."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import pytest

from tilewise.emulator.host.process import run_program

pytestmark = pytest.mark.drawn(1)  # each program is compiled in a process, 0.2 to 2 s

PROGRAM = r"""
#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cstdio>
#include <vector>
const int M = 8, N = 12, K = 20;
template <class T, class R, class S, class C> void product(const char* name, cudaDataType in, cudaDataType out, C compute, cublasOperation_t ta, cublasGemmAlgo_t algo) {
  std::vector<T> a(M * K), b(K * N); std::vector<R> c(M * N);
  for (int i = 0; i < M * K; i++) a[i] = (T)(float)(i % 7 - 3); for (int i = 0; i < K * N; i++) b[i] = (T)(float)(i % 5 - 1); for (int i = 0; i < M * N; i++) c[i] = (R)(float)(i % 3);
  T *da, *db; R* dc; cudaMalloc(&da, a.size() * sizeof(T)); cudaMalloc(&db, b.size() * sizeof(T)); cudaMalloc(&dc, c.size() * sizeof(R));
  cudaMemcpy(da, a.data(), a.size() * sizeof(T), cudaMemcpyHostToDevice); cudaMemcpy(db, b.data(), b.size() * sizeof(T), cudaMemcpyHostToDevice); cudaMemcpy(dc, c.data(), c.size() * sizeof(R), cudaMemcpyHostToDevice);
  cublasHandle_t h; cublasCreate(&h); S alpha = (S)2.0f, beta = (S)3.0f;
  cublasStatus_t s = cublasGemmEx(h, ta, CUBLAS_OP_N, M, N, K, &alpha, da, in, ta == CUBLAS_OP_N ? M : K, db, in, K, &beta, dc, out, M, compute, algo);
  std::vector<R> d(M * N); cudaMemcpy(d.data(), dc, d.size() * sizeof(R), cudaMemcpyDeviceToHost); int bad = 0;
  for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) { float t = 0; for (int k = 0; k < K; k++) t += (float)(ta == CUBLAS_OP_N ? a[i + k * M] : a[k + i * K]) * (float)b[k + j * K]; bad += (float)d[i + j * M] != (float)(R)(2 * t + 3 * (float)c[i + j * M]); }
  printf("%s %d %d\n", name, s, bad); cublasDestroy(h); cudaFree(da); cudaFree(db); cudaFree(dc);
}
int main() {
  CALL
}
"""
CALLS = {  # types of operands, result and scalars, and their names in the call
    "half to float": ("<half, float, float>", "CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F"),
    "half to float, the older name": ("<half, float, float>", "CUDA_R_16F, CUDA_R_32F, CUDA_R_32F"),
    "half by halves": ("<half, half, half>", "CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F"),
    "half by halves, the older name": ("<half, half, half>", "CUDA_R_16F, CUDA_R_16F, CUDA_R_16F"),
    "bfloat16": ("<__nv_bfloat16, __nv_bfloat16, float>", "CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F"),
    "bfloat16 to float": ("<__nv_bfloat16, float, float>", "CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F"),
    "float": ("<float, float, float>", "CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32"),
    "double": ("<double, double, double>", "CUDA_R_64F, CUDA_R_64F, CUDA_R_64F"),
    "int8": ("<signed char, int, int>", "CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I"),
    "int8, the older name": ("<signed char, int, int>", "CUDA_R_8I, CUDA_R_32I, CUDA_R_32I"),
    "int8 to float": ("<signed char, float, float>", "CUDA_R_8I, CUDA_R_32F, CUBLAS_COMPUTE_32F"),
}


def ran(tmp_path, *lines, text=PROGRAM):
    (tmp_path / "p.cu").write_text(text.replace("CALL", "\n  ".join(lines)))
    return run_program(tmp_path / "p.cu", capture=True)


def test_every_type_agrees_with_plain_loops(tmp_path):
    lines = [
        f'product{types}("{name} {op}", {kinds}, CUBLAS_OP_{op}, CUBLAS_GEMM_DEFAULT{algo});'
        for name, (types, kinds) in CALLS.items()
        for op, algo in (("N", ""), ("T", "_TENSOR_OP"))
    ]
    report = ran(tmp_path, *lines)
    assert report.ended == "exit", report.message
    assert report.output == "".join(f"{name} {op} 0 0\n" for name in CALLS for op in "NT")
    assert not report.faults


@pytest.mark.parametrize(
    ("types", "kinds", "text", "says"),
    [
        ("<half, half, float>", "CUDA_R_16F, CUDA_R_64F, CUBLAS_COMPUTE_32F", PROGRAM, "no product of CUDA_R_16F"),
        ("<float, half, float>", "CUDA_R_32F, CUDA_R_16F, CUBLAS_COMPUTE_32F", PROGRAM, "no product of CUDA_R_32F"),
        ("<signed char, int, int>", "CUDA_R_8I, CUDA_R_32I, CUDA_R_32I", PROGRAM.replace("M = 8", "M = 9"), "int8"),
    ],
)
def test_unsupported_types_are_reported_and_refused(types, kinds, text, says, tmp_path):
    line = f'product{types}("x", {kinds}, CUBLAS_OP_N, CUBLAS_GEMM_DEFAULT);'
    report = ran(tmp_path, line, text=text)
    assert report.output.startswith("x 15 ")
    assert [f.kind.value for f in report.faults] == ["argument"]
    assert says in report.faults[0].message


def test_a_scalar_of_the_wrong_type_is_reported(tmp_path):
    """A half instead of a float for alpha compiles, but gives a wrong product."""
    line = (
        'product<half, float, half>("x", CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUBLAS_OP_N, CUBLAS_GEMM_DEFAULT);'
    )
    assert "out-of-bounds" in [f.kind.value for f in ran(tmp_path, line).faults]
