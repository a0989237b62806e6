"""cuBLAS products and cuRAND numbers on the card's memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.engines.simt.host.runtime.host_faults import describe
from tilewise.engines.simt.host.runtime.session import Session, runtime
from tilewise.engines.simt.machine.findings import Kind

INVALID, FAILED, NO_LAUNCH = 7, 13, 201


def array(s: Session, address: int, dtype: Any, count: int, name: str) -> np.ndarray | None:
    """`count` elements of the card's memory; None, with a finding, where they are not there."""
    block = s.memory.find(address)
    size = count * np.dtype(dtype).itemsize
    if block is None or not block.device or block.freed:
        s.faults.add(
            Kind.HOST_POINTER, s.line, f"{name} is not memory of the card", "allocate it with cudaMalloc", access=name
        )
        return None
    if address + size > block.end:
        s.faults.add(
            Kind.OUT_OF_BOUNDS,
            s.line,
            f"{name} needs {size} bytes of {describe(block)}",
            "check the sizes and leading dimensions",
            access=name,
        )
        return None
    found: np.ndarray = s.memory.view(address, size).view(dtype)
    return found


def _matrix(s: Session, address: int, dtype: Any, rows: int, cols: int, ld: int, name: str) -> np.ndarray | None:
    flat = array(s, address, dtype, ld * (cols - 1) + rows if cols else 0, name)
    if flat is None:
        return None
    step = np.dtype(dtype).itemsize
    return np.lib.stride_tricks.as_strided(flat, (rows, cols), (step, ld * step))


@runtime("__cublas_gemm")
def gemm(
    s: Session,
    double: int,
    ta: int,
    tb: int,
    m: int,
    n: int,
    k: int,
    alpha: float,
    a: int,
    lda: int,
    b: int,
    ldb: int,
    beta: float,
    c: int,
    ldc: int,
) -> int:
    dtype = np.float64 if double else np.float32
    rows_a, rows_b = (k if ta else m), (n if tb else k)
    if lda < max(1, rows_a) or ldb < max(1, rows_b) or ldc < max(1, m):
        s.faults.add(
            Kind.ARGUMENT,
            s.line,
            f"leading dimensions {lda}, {ldb}, {ldc} are below the rows {rows_a}, {rows_b}, {m}",
            "cuBLAS counts column by column: the leading dimension is the number of rows",
            access="gemm",
        )
        return INVALID
    one = _matrix(s, a, dtype, rows_a, m if ta else k, lda, "A")
    two = _matrix(s, b, dtype, rows_b, k if tb else n, ldb, "B")
    out = _matrix(s, c, dtype, m, n, ldc, "C")
    if one is None or two is None or out is None:
        return FAILED
    product = alpha * ((one.T if ta else one) @ (two.T if tb else two))
    out[:] = product + (beta * out if beta else 0)
    block = s.memory.find(c)
    assert block is not None
    s.memory.state(c, out.strides[1] * (n - 1) + m * out.itemsize)[:] |= 2
    block.written, block.stored = True, s.line
    s.cuda.computed(2 * m * n * k / (2 * s.cuda.machine.step_rates[""]))
    return 0


@runtime("__curand_seed")
def seed(s: Session, value: int) -> int:
    s.state["curand"] = np.random.default_rng(value & (1 << 64) - 1)
    return 0


@runtime("__curand_fill")
def fill(s: Session, address: int, count: int, kind: int, mean: float, dev: float) -> int:
    rng = s.state.setdefault("curand", np.random.default_rng(0))
    dtype = np.float64 if kind == 1 else np.float32
    out = array(s, address, dtype, count, "the output")
    if out is None:
        return NO_LAUNCH
    out[:] = rng.normal(mean, dev, count) if kind == 2 else 1 - rng.random(count, dtype)
    s.memory.state(address, out.nbytes)[:] |= 2
    return 0
