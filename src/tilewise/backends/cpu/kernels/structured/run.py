"""A product of structured values: fields packed into panels, tiles, and unpacked to P."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache

from tilewise.algebra.dtypes import Array
from tilewise.algebra.structured import StructuredAlgebra
from tilewise.backends.cpu.kernels.shared.job import job_of
from tilewise.backends.cpu.kernels.structured.text import StructuredArithmetic, structured_module
from tilewise.backends.cpu.runtime import compile, workspace
from tilewise.backends.cpu.runtime.pool import num_threads, run_job, run_tasks
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.system.timing import least_seconds

BETWEEN = 1 << 27  # instructions of a thread between two checks for Ctrl-C
ROUNDS = 200_000  # 3 ms to 7 ms


@lru_cache(maxsize=128)
def _compiled(c: StructuredArithmetic) -> dict[str, int]:
    return compile.load(structured_module(c), c.target)


def cells_of(algebra: StructuredAlgebra) -> StructuredArithmetic:
    return StructuredArithmetic(algebra, host_target())


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
    counts = (rows * c.MR * k, panels * c.NR * k, rows * c.MR * panels * c.NR)  # of M, N and P, packed
    sizes = [-(-count * dtype.itemsize // 64) * 64 for count in counts for dtype in c.dtypes]
    space = workspace.borrow(sum(sizes))
    try:
        places = [space[1] + sum(sizes[:i]) for i in range(len(sizes))]
        left, right, made = (places[i * len(M) : (i + 1) * len(M)] for i in range(3))
        for x, place in zip(M, left, strict=True):
            _pack(functions, x, rows, c.MR, 0, place, threads)
        for y, place in zip(N, right, strict=True):
            _pack(functions, y, panels, c.NR, 1, place, threads)
        tables = [(ctypes.c_void_p * len(side))(*side) for side in (left, right, made)]
        work = c.MR * c.tile[1] * panels * k * c.step.operations  # per panel of rows
        each = max(1, min(-(-rows // (4 * threads)), 64, BETWEEN // work))
        tasks, some = -(-rows // each), threads * max(1, BETWEEN // (each * work))
        where = {name: ctypes.addressof(table) for name, table in zip("MNP", tables, strict=True)}
        where |= {"m": rows, "k": k, "n": panels, "task_m": each}
        for first in range(0, tasks, some):
            run_job(functions["run"], min(some, tasks - first), threads, **where, tasks_m=first)
        for place, target in zip(made, P, strict=True):
            run_job(
                functions[f"unpack{target.itemsize}"], rows, threads, M=place, P=target.ctypes.data, m=m, n=n,
                k=panels, task_m=c.MR, task_n=c.NR, row_p=target.strides[0], col_p=target.strides[1],
            )  # fmt: skip
    finally:
        workspace.give_back(space)


def _pack(functions: dict[str, int], x: Array, panels: int, width: int, axis: int, to: int, threads: int) -> None:
    """Panels of `width` lanes along an axis, k by k."""
    run_job(
        functions[f"pack{x.itemsize}"], panels, threads, M=x.ctypes.data, P=to, m=x.shape[axis], k=x.shape[1 - axis],
        n=width, row_m=x.strides[axis], col_m=x.strides[1 - axis],
    )  # fmt: skip


def limit(algebra: StructuredAlgebra) -> float:
    """The issue limit, measured: steps a second of all threads with no loads or stores and no step waiting for
    another."""
    c, threads = cells_of(algebra), num_threads()
    function, memory = _compiled(c)["limit"], (ctypes.c_char * 512)()
    job = job_of(M=ctypes.addressof(memory), k=ROUNDS)
    best = least_seconds(lambda: run_tasks(function, ctypes.addressof(job), threads, threads), 8)
    return threads * ROUNDS * c.tile[0] * c.tile[1] * c.lanes / best
