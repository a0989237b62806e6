"""The launches of `direct`: one for all members of a stack that lie evenly."""

from __future__ import annotations

import ctypes

from tilewise.core.plan import Plan
from tilewise.core.recipe import Launch, Scratch
from tilewise.kernels.direct.model import KERNEL, piece, tiles_of
from tilewise.kernels.direct.text import render_direct
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.shared.stacked import Runs


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M, N and P have any strides."""
    p, config, matrices, made = plan.problem, plan.config, (given.M, given.N, given.P), []
    source = render_direct.named(p.algebra, config.tile, config.groups, p.accumulate)
    m, n, P = (x.layout for x in matrices)
    down, across = tiles_of(p, config.tile)
    runs = Runs(p.stack, [x.layout.stack for x in matrices])
    for first, count in runs.starts():
        arguments = (
            *(x.member(first) for x in matrices),
            *(ctypes.c_int(extent) for extent in (p.m, p.k, p.n)),
            *(ctypes.c_longlong(s) for x in matrices for s in (x.layout.row, x.layout.col)),
            ctypes.c_int(abs(m.col) <= abs(m.row)),  # whether neighbours lie along k
            ctypes.c_int(abs(n.row) < abs(n.col)),
            ctypes.c_int(abs(P.row) < abs(P.col)),
            ctypes.c_int(across),
            ctypes.c_int(piece(p, config)),
            *(ctypes.c_longlong(step) for step in runs.steps),
        )
        grid, block = (down * across * config.cluster, count), (config.threads,)
        made.append(Launch.of(source, KERNEL, grid, block, arguments, cluster=config.cluster))
    return made
