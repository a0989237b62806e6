"""A product of structured values, by its kernel: fields packed into panels, tiles, and back to where P lies."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.structured import StructuredAlgebra
from tilewise.engines.cpu.kernels.shared.job import WORDS
from tilewise.engines.cpu.kernels.structured.text import Cells, entries, structured_module
from tilewise.engines.cpu.runtime import compile
from tilewise.engines.cpu.runtime.pool import num_threads, run_tasks
from tilewise.engines.cpu.runtime.target import host_target

Array = np.ndarray[Any, np.dtype[Any]]
ROUNDS = 20_000


@lru_cache(maxsize=128)
def _compiled(c: Cells) -> dict[str, int]:
    return compile.load(structured_module(c), c.target, entries(c))


def cells_of(algebra: StructuredAlgebra) -> Cells:
    return Cells(algebra, host_target())


def multiply(algebra: StructuredAlgebra, M: Sequence[Array], N: Sequence[Array], P: Sequence[Array]) -> None:
    """P = M ⊗ N, matrices field by field, of the algebra's dtypes and any strides."""
    c = cells_of(algebra)
    m, k = M[0].shape
    n = N[0].shape[1]
    if not m or not n:
        return
    if not k:
        for field, zero in zip(P, algebra.zero, strict=True):
            field[...] = zero
        return
    functions, threads = _compiled(c), num_threads()
    rows, panels = -(-m // c.MR), -(-n // c.NR)
    left = [_packed(functions, x, rows, c.MR, 0, threads) for x in M]
    right = [_packed(functions, x, panels, c.NR, 1, threads) for x in N]
    made = [np.empty(rows * panels * c.MR * c.NR, dtype.numpy) for dtype in c.dtypes]
    tables = {name: _addresses(arrays) for name, arrays in (("M", left), ("N", right), ("P", made))}
    each = max(1, min(-(-rows // (4 * threads)), 64))
    where = {name: ctypes.addressof(table) for name, table in tables.items()}
    _tasks(functions["run"], -(-rows // each), threads, **where, m=rows, k=k, n=panels, task_m=each)
    for source, target in zip(made, P, strict=True):
        _tasks(
            functions[f"unpack{target.itemsize}"], rows, threads, M=source.ctypes.data, P=target.ctypes.data, m=m, n=n,
            k=panels, task_m=c.MR, task_n=c.NR, row_p=target.strides[0], col_p=target.strides[1],
        )  # fmt: skip


def _packed(functions: dict[str, int], x: Array, panels: int, width: int, axis: int, threads: int) -> Array:
    """Panels of `width` lanes along an axis, k by k."""
    lanes, k = x.shape[axis], x.shape[1 - axis]
    made = np.empty(panels * width * k, x.dtype)
    _tasks(
        functions[f"pack{x.itemsize}"], panels, threads, M=x.ctypes.data, P=made.ctypes.data, m=lanes, k=k, n=width,
        row_m=x.strides[axis], col_m=x.strides[1 - axis],
    )  # fmt: skip
    return made


def _addresses(arrays: Sequence[Array]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays))


def _tasks(function: int, count: int, threads: int, **words: int) -> None:
    job = (ctypes.c_int64 * len(WORDS))()
    for name, value in words.items():
        job[WORDS.index(name)] = value
    run_tasks(function, ctypes.addressof(job), count, min(threads, count))


def limit(algebra: StructuredAlgebra, threads: int | None = None) -> float:
    """Steps a second of all threads when nothing is loaded, stored or waited for: the issue limit, measured here."""
    c, threads = cells_of(algebra), threads or num_threads()
    function, memory = _compiled(c)["limit"], (ctypes.c_char * 512)()
    job = (ctypes.c_int64 * len(WORDS))()
    job[WORDS.index("M")], job[WORDS.index("k")] = ctypes.addressof(memory), ROUNDS
    best = float("inf")
    for _ in range(8):
        start = time.perf_counter()
        run_tasks(function, ctypes.addressof(job), threads, threads)
        best = min(best, time.perf_counter() - start)
    return threads * ROUNDS * c.tile[0] * c.tile[1] * c.lanes / best
