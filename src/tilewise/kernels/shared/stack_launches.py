"""Launches of kernels with blockIdx.y as the member of a stack: one for all members at a constant stride."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence

from tilewise.core.problem import Problem
from tilewise.core.recipe import Launch, Value
from tilewise.kernels.shared.placed import Operands, Placed
from tilewise.kernels.shared.stacked import GRID_LIMIT, Runs


def stack_launches(
    p: Problem,
    matrices: Sequence[Placed],
    source: str,
    kernel: str,
    blocks: int,
    threads: int,
    own: Iterable[Value],
    shared: int = 0,
    cluster: int = 1,
    extents: Sequence[int] = (),
) -> list[Launch]:
    """`own`: the kernel's arguments between the extents (default: m, k, n) and the members' strides."""
    runs = Runs(p.stack, [x.layout.stack for x in matrices], GRID_LIMIT)
    own, steps = tuple(own), [ctypes.c_longlong(step) for step in runs.steps]
    sizes = [ctypes.c_int(extent) for extent in extents or (p.m, p.k, p.n)]
    return [
        Launch.of(
            source, kernel, (blocks, count), (threads,), (*map(Placed.on, matrices, at), *sizes, *own, *steps), shared,
            cluster=cluster,
        )
        for at, count in runs.starts()
    ]  # fmt: skip


def along_k(given: Operands) -> tuple[bool, bool]:
    """Whether the nearest elements of M, and of N, are neighbours along k."""
    m, n = given.M.layout, given.N.layout
    return abs(m.col) <= abs(m.row), abs(n.row) < abs(n.col)


def strides(given: Operands) -> list[ctypes.c_longlong]:
    """Of rows and columns of M, N and P."""
    return [ctypes.c_longlong(s) for x in (given.M, given.N, given.P) for s in (x.layout.row, x.layout.col)]
