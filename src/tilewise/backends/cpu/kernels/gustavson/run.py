"""Products of sparse matrices by all threads: cells of P are counted, then filled; a small product is filled in one
pass. And products of a sparse matrix with a dense one."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.algebra.semiring import Algebra
from tilewise.arrays.address import address
from tilewise.backends.cpu.kernels.gustavson.dense_text import dense_module
from tilewise.backends.cpu.kernels.gustavson.text import gustavson_module
from tilewise.backends.cpu.kernels.shared.arithmetic import arithmetic
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.pool import num_threads, run_job
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.system.builtin_call import builtin
from tilewise.system.memory import check_room

Cells = tuple[Array, Array, Array]  # starts, columns, values
LINE = 64
PAIRS = 1 << 16  # pairs of stored cells, the least work of a task; a product of fewer is one pass of one thread
STEPS = 1 << 18  # multiply-add steps with a dense matrix, the least work of a task
MANY = 1 << 22  # from this many cells on free memory is checked first
AT_ONCE = 256  # tasks between two checks for Ctrl-C
READ, LONG = 8, 1 << 28  # steps to read a stored cell; steps between two checks for Ctrl-C


@lru_cache(maxsize=256)
def _compiled(algebra: Algebra, two_levels: bool) -> dict[str, int]:
    return compile.load(gustavson_module(algebra, two_levels), host_target())


@lru_cache(maxsize=256)
def _compiled_dense(algebra: Algebra, scatter: bool, single: bool, start: str, direct: bool = False) -> int:
    a = arithmetic(algebra, algebra.partial, algebra.partial, host_target())
    return compile.load(dense_module(a, scatter, single, start, direct), a.target)["multiply"]


class SmallProduct:
    """A sparse S (CSR of P's rows, or with `scatter` of N's) times a vector (`single`) or, without `scatter`, a matrix:
    by the calling thread, in one native call. `index`: the dtype of starts and columns."""

    def __init__(self, algebra: Algebra, scatter: bool, single: bool, index: np.dtype[Any]) -> None:
        self.kind, self.scatter = algebra.partial.numpy, scatter
        multiply = _compiled_dense(algebra, scatter, single, f"i{8 * index.itemsize}", True)
        self._run = builtin(multiply, "ooooo" + "ww", returns=False, keeps_gil=True)

    def __call__(self, starts: Array, columns: Array, data: Array, N: Array, shape: tuple[int, ...]) -> Array:
        """P of this shape."""
        P = np.empty(shape, self.kind)
        self._run(starts, columns, data, N, P, starts.size - 1, shape[0] if self.scatter else shape[-1])
        return P


def product_with_dense(S: Cells, N: Array, rows: int, algebra: Algebra, scatter: bool) -> Array:
    """P of this many rows from a sparse S and a dense N, a matrix or a vector. S's stored rows are those of P, or with
    `scatter` those of N; they are divided over threads by their cells. Values are of the algebra's partial dtype."""
    kind, stored = algebra.partial.numpy, len(S[0]) - 1
    columns = N.shape[1] if N.ndim == 2 else 1
    start, wide = ("i32", np.int32) if S[0].dtype == np.int32 else ("i64", np.int64)
    starts, held = np.ascontiguousarray(S[0], wide), np.ascontiguousarray(S[1], np.int32)
    data, N = np.ascontiguousarray(S[2], kind), np.ascontiguousarray(N, kind)
    threads = num_threads()
    tasks = min(1 if threads == 1 else threads if scatter else 4 * threads, 1 + held.size * columns // STEPS)
    count = tasks * (1 + held.size * (columns + READ) // LONG)
    bands = np.array([0, stored])
    if count > 1:
        bands = starts.searchsorted(np.arange(count + 1) * (held.size // count))
        bands[0], bands[-1] = 0, stored
    shape = (tasks, rows, *N.shape[1:]) if scatter else (rows, *N.shape[1:])
    P = np.full(shape, algebra.zero, kind) if scatter else np.empty(shape, kind)
    for first in range(0, count if P.size else 0, tasks):
        run_job(
            _compiled_dense(algebra, scatter, N.ndim == 1, start), tasks, threads, M=address(starts),
            row_m=address(held), col_m=address(data), N=address(N), P=address(P), n=columns,
            at_m=address(bands[first:]), row_p=rows * columns if scatter else 0,
        )  # fmt: skip
    if not scatter:
        return P
    with np.errstate(all="ignore"):
        for other in P[1:]:
            algebra.add(P[0], other, out=P[0])
    return np.asarray(P[0])


def product_of_rows(M: Cells, N: Cells, columns: int, pairs: int, algebra: Algebra) -> Cells:
    """P in CSR form, columns in order. `pairs`: the number of multiplications; values are of the algebra's partial
    dtype."""
    m, kind = len(M[0]) - 1, algebra.partial.numpy
    starts = np.zeros(m + 1, np.int64)
    if not pairs:
        return starts, np.zeros(0, np.int32), np.zeros(0, kind)
    functions = _compiled(algebra, columns / 32 > pairs / m)
    words = -(-columns // 64)
    deep_at = -(-8 * words // LINE) * LINE
    sums_at = deep_at + -(-8 * -(-words // 64) // LINE) * LINE
    room = -(-(sums_at + columns * kind.itemsize) // LINE) * LINE
    threads = num_threads() if pairs > PAIRS else 1
    spaces = np.zeros((threads, room), np.uint8)
    spaces[:, sums_at : sums_at + columns * kind.itemsize].view(kind)[...] = algebra.zero
    rows = max(1, min(-(-m // (4 * threads)), PAIRS * m // pairs))
    dtypes: list[Any] = [np.int64, np.int32, kind] * 2
    operands = [np.ascontiguousarray(x, dtype) for x, dtype in zip((*M, *N), dtypes, strict=True)]
    names = ("M", "row_m", "col_m", "N", "row_n", "col_n")
    values = {name: x.ctypes.data for name, x in zip(names, operands, strict=True)} | {
        "P": starts.ctypes.data, "m": m, "n": columns, "task_m": rows, "workspace": spaces.ctypes.data,
        "workspace_bytes": room, "strip": deep_at, "sums_at": sums_at,
    }  # fmt: skip
    if pairs <= PAIRS:
        made, data = np.empty(pairs, np.int32), np.empty(pairs, kind)
        values |= {"row_p": made.ctypes.data, "col_p": data.ctypes.data, "task_m": m}
        _run(functions["once"], values, 1, 1)
        return starts, made[: starts[-1]], data[: starts[-1]]
    _run(functions["count"], values, -(-m // rows), threads)
    np.cumsum(starts, out=starts)
    cells = int(starts[-1])
    if cells > MANY:
        check_room(cells * (4 + kind.itemsize), f"a sparse product of {cells:,} cells")
    made, data = np.empty(cells, np.int32), np.empty(cells, kind)
    values |= {"row_p": made.ctypes.data, "col_p": data.ctypes.data}
    _run(functions["fill"], values, -(-m // rows), threads)
    return starts, made, data


def _run(function: int, values: dict[str, int], tasks: int, threads: int) -> None:
    for first in range(0, tasks, AT_ONCE):
        run_job(function, min(AT_ONCE, tasks - first), threads, **values, tasks_m=first)
