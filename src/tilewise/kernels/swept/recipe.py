"""The launches of `swept`: one for all members of a stack that lie evenly."""

from __future__ import annotations

import ctypes
import math

from tilewise.core.plan import Plan
from tilewise.core.recipe import Launch, Scratch
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.shared.stacked import Runs
from tilewise.kernels.swept.model import KERNEL, SweptWay, threads
from tilewise.kernels.swept.text import render_swept


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M, N and P have any strides."""
    p, way, matrices, made = plan.problem, plan.way, (given.M, given.N, given.P), []
    assert isinstance(way, SweptWay)
    source = render_swept.named(p.algebra, way.few, p.accumulate)
    runs = Runs(p.stack, [x.layout.stack for x in matrices])
    for first, count in runs.starts():
        arguments = (
            *(x.member(first) for x in matrices),
            *(ctypes.c_int(extent) for extent in (p.m, p.k, p.n)),
            *(ctypes.c_longlong(s) for x in matrices for s in (x.layout.row, x.layout.col)),
            ctypes.c_int(way.across),
            *(ctypes.c_longlong(step) for step in runs.steps),
        )
        grid, block = (math.ceil(p.n / way.across), count), (threads(way),)
        made.append(Launch.of(source, KERNEL, grid, block, arguments))
    return made
