"""The launches of `rank_k`: one for all members of a stack that lie evenly."""

from __future__ import annotations

import ctypes
import math

from tilewise.core.plan import Plan
from tilewise.core.recipe import Launch, Scratch
from tilewise.kernels.rank_k.model import KERNEL, RankKWay, across, shared_bytes, threads
from tilewise.kernels.rank_k.text import render_rank_k
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.shared.stacked import Runs


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M and N have any strides, P too as long as its columns are closer than its rows."""
    p, config, matrices, made = plan.problem, plan.config, (given.M, given.N, given.P), []
    assert isinstance(config, RankKWay)
    source = render_rank_k.named(p.algebra, config.deep, config.columns, p.accumulate)
    strips, wide = across(p, config)
    runs = Runs(p.stack, [x.layout.stack for x in matrices])
    for first, count in runs.starts():
        arguments = (
            *(x.member(first) for x in matrices),
            *(ctypes.c_int(extent) for extent in (p.m, p.k, p.n)),
            *(ctypes.c_longlong(s) for x in matrices for s in (x.layout.row, x.layout.col)),
            *(ctypes.c_int(x) for x in (config.rows, wide, strips)),
            ctypes.c_uint(-(-(2**32) // p.k) % 2**32),
            ctypes.c_int(abs(given.M.layout.col) <= abs(given.M.layout.row)),
            *(ctypes.c_longlong(step) for step in runs.steps),
        )
        grid, block = (math.ceil(p.m / config.rows) * strips, count), (threads(p, config),)
        made.append(Launch.of(source, KERNEL, grid, block, arguments, shared_bytes(config)))
    return made
