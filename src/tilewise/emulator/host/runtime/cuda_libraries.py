"""cuBLAS and the host API of cuRAND, computed by NumPy on the card's memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.emulator.host.runtime.c_memory import writable
from tilewise.emulator.host.runtime.memory import describe
from tilewise.emulator.host.runtime.session import Session, runtime
from tilewise.emulator.machine.findings import Kind

INVALID, FAILED, NO_LAUNCH = 7, 13, 201


def array(s: Session, address: int, dtype: Any, count: int, name: str) -> np.ndarray | None:
    """`count` elements of the card's memory; None, with a finding, if the block is too small or not the card's."""
    if count < 0:
        _bad_argument(s, f"{name} would have {count} elements", name)
        return None
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


def _bad_argument(s: Session, text: str, name: str) -> None:
    s.faults.add(Kind.ARGUMENT, s.line, text, "check the sizes and leading dimensions", access=name)


def _matrix(s: Session, address: int, dtype: Any, rows: int, cols: int, ld: int, name: str) -> np.ndarray | None:
    if rows < 0 or cols < 0 or ld < rows:
        _bad_argument(s, f"{name} would be {rows} x {cols} with columns {ld} apart", name)
        return None
    flat = array(s, address, dtype, ld * (cols - 1) + rows if cols else 0, name)
    if flat is None:
        return None
    step = np.dtype(dtype).itemsize
    return np.lib.stride_tricks.as_strided(flat, (rows, cols), (step, ld * step))


@runtime("__cublas_gemm")
def gemm(
    s: Session, double: int, ta: int, tb: int, m: int, n: int, k: int, alpha: float, a: int, lda: int, b: int, ldb: int,
    beta: float, c: int, ldc: int,
) -> int:  # fmt: skip
    dtype = np.float64 if double else np.float32
    operands = gemm_operands(s, ta, tb, (m, n, k), (a, b, c), (dtype,) * 3, (lda, ldb, ldc))
    if isinstance(operands, int):
        return operands
    one, two, out = operands
    out[:] = alpha * (one @ two) + (beta * out if beta else 0)
    return gemm_done(s, c, out, k)


def gemm_operands(
    s: Session, ta: int, tb: int, sizes: tuple[int, int, int], addresses: tuple[int, int, int],
    dtypes: tuple[Any, Any, Any], leading: tuple[int, int, int],
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | int:  # fmt: skip
    """op(A), op(B) and C; or a cuBLAS status, with a finding."""
    (m, n, k), (a, b, c), (lda, ldb, ldc) = sizes, addresses, leading
    rows_a, rows_b = (k if ta else m), (n if tb else k)
    if lda < max(1, rows_a) or ldb < max(1, rows_b) or ldc < max(1, m):
        message = f"leading dimensions {lda}, {ldb}, {ldc} are below the rows {rows_a}, {rows_b}, {m}"
        hint = "cuBLAS counts column by column: the leading dimension is the number of rows"
        s.faults.add(Kind.ARGUMENT, s.line, message, hint, access="gemm")
        return INVALID
    one = _matrix(s, a, dtypes[0], rows_a, m if ta else k, lda, "A")
    two = _matrix(s, b, dtypes[1], rows_b, k if tb else n, ldb, "B")
    out = _matrix(s, c, dtypes[2], m, n, ldc, "C")
    if one is None or two is None or out is None:
        return FAILED
    return (one.T if ta else one), (two.T if tb else two), out


def gemm_done(s: Session, c: int, out: np.ndarray, k: int) -> int:
    """Mark C as written, and advance the card's clock."""
    m, n = out.shape
    block = s.memory.find(c)
    assert block is not None
    s.memory.change(c, out.strides[1] * (n - 1) + m * out.itemsize, give=2)
    block.written, block.stored = True, s.line
    s.cuda.computed(2 * m * n * k / (2 * s.cuda.machine.step_rates[""]))
    return 0


def _vector(
    s: Session, address: int, dtype: Any, n: int, step: int, name: str, spread: bool = False
) -> np.ndarray | None:  # fmt: skip
    """n elements with stride `step`; a negative stride starts at the end, as in BLAS. `spread`: allow a stride of 0."""
    if n <= 0:
        return np.zeros(0, dtype)
    if step == 0 and not spread:
        text = f"the elements of {name} are 0 apart, so all {n} are one"
        s.faults.add(Kind.ARGUMENT, s.line, text, "elements side by side have a step of 1", access=name)
        return None
    flat = array(s, address, dtype, (n - 1) * abs(step) + 1, name)
    if flat is None or step == 0:
        return flat if flat is None else np.broadcast_to(flat, n)
    return flat[:: abs(step)][:: 1 if step > 0 else -1]


def _mark_written(s: Session, address: int, out: np.ndarray) -> int:
    """Mark the memory from `address` on as written."""
    block = s.memory.find(address)
    if block is not None and out.size:
        s.memory.change(address, abs(out.strides[-1]) * (out.shape[-1] - 1) + out.shape[0] * out.itemsize, give=2)
        block.written, block.stored = True, s.line
    return 0


def _result(s: Session, address: int, value: Any) -> int:
    """Store a scalar result to host memory."""
    data = value.tobytes()
    if not writable(s, address, len(data)):
        return FAILED
    s.memory.put(address, data)
    return 0


@runtime("__cublas_vector")
def vector(
    s: Session, what: int, double: int, n: int, alpha: float, x: int, incx: int, y: int, incy: int, result: int
) -> int:  # fmt: skip
    """axpy, scal, copy, swap, dot, nrm2, asum, amax and amin, by number."""
    dtype = np.float64 if double else np.float32
    one = _vector(s, x, dtype, n, incx, "x", spread=what in (0, 2) and incy != 0)
    two = one if (x, incx) == (y, incy) else _vector(s, y, dtype, n, incy, "y")
    if one is None or two is None:
        return FAILED
    if what < 4:
        return _changed(s, what, dtype(alpha), one, two, x, y)
    if what < 7:
        found = (one @ two, np.sqrt(one @ one), np.abs(one).sum())[what - 4]
        return _result(s, result, np.asarray(found, dtype))
    at = 0 if not one.size else int((np.argmax if what == 7 else np.argmin)(np.abs(one))) + 1
    return _result(s, result, np.asarray(at, np.int32))


def _changed(s: Session, what: int, alpha: Any, one: np.ndarray, two: np.ndarray, x: int, y: int) -> int:
    if what == 3:
        one[:], two[:] = two.copy(), one.copy()
        _mark_written(s, x, one)
    else:
        two[:] = (two + alpha * one, alpha * one, one)[what]
    return _mark_written(s, y, two)


@runtime("__cublas_gemv")
def gemv(
    s: Session, double: int, t: int, m: int, n: int, alpha: float, a: int, lda: int, x: int, incx: int, beta: float,
    y: int, incy: int,
) -> int:  # fmt: skip
    dtype = np.float64 if double else np.float32
    matrix = _matrix(s, a, dtype, m, n, lda, "A")
    given = _vector(s, x, dtype, m if t else n, incx, "x")
    out = _vector(s, y, dtype, n if t else m, incy, "y")
    if lda < max(1, m):
        return INVALID
    if matrix is None or given is None or out is None:
        return FAILED
    out[:] = alpha * ((matrix.T if t else matrix) @ given) + (beta * out if beta else 0)
    return _mark_written(s, y, out)


@runtime("__cublas_geam")
def geam(
    s: Session, double: int, ta: int, tb: int, m: int, n: int, alpha: float, a: int, lda: int, beta: float, b: int,
    ldb: int, c: int, ldc: int,
) -> int:  # fmt: skip
    """C = alpha op(A) + beta op(B): sums and transposes."""
    dtype = np.float64 if double else np.float32
    out = _matrix(s, c, dtype, m, n, ldc, "C")
    if out is None:
        return FAILED
    one = _matrix(s, a, dtype, n if ta else m, m if ta else n, lda, "A") if alpha else np.zeros((m, n), dtype)
    two = _matrix(s, b, dtype, n if tb else m, m if tb else n, ldb, "B") if beta else np.zeros((m, n), dtype)
    if one is None or two is None:
        return FAILED
    out[:] = alpha * (one.T if ta and alpha else one) + beta * (two.T if tb and beta else two)
    return _mark_written(s, c, out)


@runtime("__curand_seed", needs="numpy.random")
def seed(s: Session, value: int) -> int:
    s.state["curand"] = np.random.default_rng(value & (1 << 64) - 1)
    return 0


@runtime("__curand_fill", needs="numpy.random")
def fill(s: Session, address: int, count: int, kind: int, mean: float, dev: float) -> int:
    rng = s.state.setdefault("curand", np.random.default_rng(0))
    dtype = np.float64 if kind == 1 else np.float32
    out = array(s, address, dtype, count, "the output")
    if out is None:
        return NO_LAUNCH
    out[:] = rng.normal(mean, dev, count) if kind == 2 else 1 - rng.random(count, dtype)
    s.memory.change(address, out.nbytes, give=2)
    return 0
