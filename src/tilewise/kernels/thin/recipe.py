"""The launches of `thin`: one for all members of a stack that lie evenly."""

from __future__ import annotations

import ctypes

from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.shared.stacked import Runs
from tilewise.kernels.thin.model import (
    KERNEL,
    ThinWay,
    by_columns,
    cells_for,
    long_side,
    piece,
    shared_bytes,
    short_side,
    tiles_of,
)
from tilewise.kernels.thin.text import render_thin
from tilewise.plans import Plan
from tilewise.recipe import Launch, Scratch


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M, N and P have any strides."""
    p, way, made = plan.problem, plan.way, []
    assert isinstance(way, ThinWay)
    M, N, P = (x.layout for x in (given.M, given.N, given.P))
    of_m, of_n = (M.row, M.col), (N.col, N.row)  # from line to line, along k
    if by_columns(p):
        matrices, strides = (given.M, given.N, given.P), (*of_m, *of_n, P.row, P.col)
    else:
        matrices, strides = (given.N, given.M, given.P), (*of_n, *of_m, P.col, P.row)
    runs = Runs(p.stack, [x.layout.stack for x in matrices])
    for first, count in runs.starts():
        arguments = (
            *(x.member(first) for x in matrices),
            *(ctypes.c_int(extent) for extent in (long_side(p), p.k, short_side(p))),
            *(ctypes.c_longlong(stride) for stride in strides),
            ctypes.c_int(piece(p, way)),
            *(ctypes.c_longlong(step) for step in runs.steps),
        )
        grid, shared = (tiles_of(p, way.warps) * way.cluster, count), shared_bytes(p, way.warps)
        source = render_thin(cells_for(p))
        made.append(Launch.of(source, KERNEL, grid, (32 * way.warps,), arguments, shared, cluster=way.cluster))
    return made
