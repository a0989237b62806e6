"""The launches of `buffered`: one for all members of a stack that lie evenly."""

from __future__ import annotations

import ctypes

from tilewise.core.plan import Plan
from tilewise.core.recipe import Launch, Scratch
from tilewise.kernels.buffered.model import KERNEL, BufferedConfig, lines_of, piece, tiles_of
from tilewise.kernels.buffered.text import render_buffered
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.shared.stacked import Runs


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M and N have lines of elements side by side, P any strides."""
    p, config, matrices, made = plan.problem, plan.config, (given.M, given.N, given.P), []
    assert isinstance(config, BufferedConfig)
    of_m = lines_of(given.M.layout, p.m, p.k)
    of_n = lines_of(given.N.layout, p.n, p.k, transposed=True)
    assert of_m is not None
    assert of_n is not None
    source = render_buffered.named(p.algebra, config.tile, (of_m[0], of_n[0]), p.accumulate)
    row, col = given.P.layout.row, given.P.layout.col
    down, across = tiles_of(p, config.tile)
    runs = Runs(p.stack, [x.layout.stack for x in matrices])
    for first, count in runs.starts():
        arguments = (
            *(x.member(first) for x in matrices),
            *(ctypes.c_int(extent) for extent in (p.m, p.k, p.n)),
            *(ctypes.c_longlong(s) for s in (of_m[1], of_n[1], row, col)),
            ctypes.c_int(abs(row) < abs(col)),
            ctypes.c_int(across),
            ctypes.c_int(piece(p, config)),
            *(ctypes.c_longlong(step) for step in runs.steps),
        )
        grid, block, shared = (down * across * config.cluster, count), (config.tile.threads,), config.tile.shared_bytes
        made.append(Launch.of(source, KERNEL, grid, block, arguments, shared, cluster=config.cluster))
    return made
