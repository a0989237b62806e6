"""The launches of `swept`: one for all members of a stack that lie evenly."""

from __future__ import annotations

import ctypes
import math

from tilewise.core.plan import Plan
from tilewise.core.recipe import Launch, Scratch
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.shared.stacked import Runs
from tilewise.kernels.swept.model import KERNEL, SweptConfig, threads
from tilewise.kernels.swept.text import render_swept


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M, N and P have any strides."""
    p, config, matrices, made = plan.problem, plan.config, (given.M, given.N, given.P), []
    assert isinstance(config, SweptConfig)
    source = render_swept.named(p.algebra, config.few, p.accumulate)
    runs = Runs(p.stack, [x.layout.stack for x in matrices])
    for first, count in runs.starts():
        arguments = (
            *(x.member(first) for x in matrices),
            *(ctypes.c_int(extent) for extent in (p.m, p.k, p.n)),
            *(ctypes.c_longlong(s) for x in matrices for s in (x.layout.row, x.layout.col)),
            ctypes.c_int(config.across),
            *(ctypes.c_longlong(step) for step in runs.steps),
        )
        grid, block = (math.ceil(p.n / config.across), count), (threads(config),)
        made.append(Launch.of(source, KERNEL, grid, block, arguments))
    return made
