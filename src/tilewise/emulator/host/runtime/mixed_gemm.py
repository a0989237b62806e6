"""cublasGemmEx: mixed-precision GEMM."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.emulator.host.runtime.cuda_libraries import gemm_done, gemm_operands
from tilewise.emulator.host.runtime.session import Session, runtime
from tilewise.emulator.machine.findings import Kind

NOT_SUPPORTED = 15
# cudaDataType's numbers
DTYPES = {
    0: ("CUDA_R_32F", "float32"),
    1: ("CUDA_R_64F", "float64"),
    2: ("CUDA_R_16F", "float16"),
    3: ("CUDA_R_8I", "int8"),
    10: ("CUDA_R_32I", "int32"),
    14: ("CUDA_R_16BF", "bfloat16"),
}
# cublasComputeType_t's numbers, and the types of A and B, and of C, that each supports
HALF, SINGLE, FAST, DOUBLE, INTEGER = (64, 65), (68, 69), (74, 75, 77), (70, 71), (72, 73)
PAIRS: dict[tuple[int, ...], tuple[tuple[int, int], ...]] = {
    HALF: ((2, 2),),
    SINGLE: ((14, 14), (2, 2), (3, 0), (14, 0), (2, 0), (0, 0)),
    FAST: ((0, 0),),
    DOUBLE: ((1, 1),),
    INTEGER: ((3, 10),),
}
SUPPORTED = {compute: pairs for computes, pairs in PAIRS.items() for compute in computes}
INT8_STEP = 4  # bytes: alignment of int8 operands


@runtime("__cublas_gemm_ex", needs="ml_dtypes")
def gemm_ex(
    s: Session, ta: int, tb: int, m: int, n: int, k: int, alpha: float, a: int, atype: int, lda: int, b: int,
    btype: int, ldb: int, beta: float, c: int, ctype: int, ldc: int, compute: int,
) -> int:  # fmt: skip
    if atype != btype or (atype, ctype) not in SUPPORTED.get(compute, ()):
        names = [DTYPES[t][0] if t in DTYPES else f"type {t}" for t in (atype, btype, ctype)]
        text = f"cuBLAS has no product of {names[0]} and {names[1]} into {names[2]} by this compute type"
        return _refused(s, text, "take types that cublasGemmEx's table lists together")
    if atype == 3 and (lda | ldb | a | b) % INT8_STEP:
        text = f"int8 operands with leading dimensions {lda} and {ldb} are not read by words of {INT8_STEP} bytes"
        return _refused(s, text, f"make leading dimensions and addresses multiples of {INT8_STEP}")
    dtypes = (_dtype(atype), _dtype(btype), _dtype(ctype))
    operands = gemm_operands(s, ta, tb, (m, n, k), (a, b, c), dtypes, (lda, ldb, ldc))
    if isinstance(operands, int):
        return operands
    one, two, out = operands
    if compute in HALF:  # alpha and beta were passed as bits
        alpha, beta = (float(np.uint16(bits).view(np.float16)) for bits in (alpha, beta))
    # doubles represent sums of int8 products exactly; tensor cores accumulate halves in floats
    wide = np.float64 if atype in (1, 3) else np.float32
    with np.errstate(over="ignore", invalid="ignore"):
        product = one.astype(wide) @ two.astype(wide)
        if compute in INTEGER:
            total = int(alpha) * product.astype(np.int64) + (int(beta) * out.astype(np.int64) if beta else 0)
            out[:] = total.astype(np.int32)
        else:
            scale: Any = np.float64 if atype == 1 else np.float32
            total = scale(alpha) * product.astype(scale) + (scale(beta) * out.astype(scale) if beta else 0)
            out[:] = total.astype(out.dtype)
    return gemm_done(s, c, out, k)


def _dtype(number: int) -> Any:
    import ml_dtypes  # lazy: few programs need it

    return getattr(ml_dtypes if number == 14 else np, DTYPES[number][1])


def _refused(s: Session, text: str, hint: str) -> int:
    s.faults.add(Kind.ARGUMENT, s.line, text, hint, access="gemm")
    return NOT_SUPPORTED
