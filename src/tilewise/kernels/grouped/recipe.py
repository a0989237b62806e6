"""The launches of `grouped`: tiles of the groups are found, then all of them made."""

from __future__ import annotations

import ctypes
import math

from tilewise.core.plan import Plan
from tilewise.core.recipe import Launch, Scratch
from tilewise.kernels.grouped.model import KERNEL, SIDE, THREADS
from tilewise.kernels.grouped.text import grouped_text
from tilewise.kernels.shared.groups import OFFSETS, most_tiles, walk_launch
from tilewise.kernels.shared.placed import Operands


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M, N and P have any strides."""
    p, matrices = plan.problem, (given.M, given.N, given.P)
    assert p.groups is not None
    by_k = p.groups.along == "k"
    k_along = abs(given.M.layout.col) <= abs(given.M.layout.row), abs(given.N.layout.row) < abs(given.N.layout.col)
    source = grouped_text(p.algebra, p.groups, k_along, p.accumulate)
    made, groups, down = [], OFFSETS, math.ceil(p.m / SIDE)
    if not by_k:
        walk, groups = walk_launch(p, SIDE, scratch)
        made, down = [walk], most_tiles(p, SIDE)
    arguments = (
        *(x.pointer for x in matrices),
        groups,
        *(ctypes.c_int(extent) for extent in (p.m, p.k, p.n)),
        *(ctypes.c_longlong(s) for x in matrices for s in (x.layout.row, x.layout.col)),
        ctypes.c_longlong(0 if by_k else given.N.layout.stack[0]),
        ctypes.c_longlong(given.P.layout.stack[0] if by_k else 0),
    )
    grid = (down * math.ceil(p.n / SIDE), p.groups.count if by_k else 1)
    return [*made, Launch.of(source, KERNEL, grid, (THREADS,), arguments)]
