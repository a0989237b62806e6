"""The launches of `cells`: one for all members of a stack that lie evenly."""

from __future__ import annotations

import ctypes
import math

from tilewise.core.plan import Plan
from tilewise.core.recipe import Launch, Scratch
from tilewise.kernels.cells.model import KERNEL, THREADS, along_columns, cut, threads_of_a_member
from tilewise.kernels.cells.text import render_cells
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.shared.stacked import Runs

MOST_BLOCKS = 2**31 - 1


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M, N and P have any strides."""
    p, matrices, made = plan.problem, (given.M, given.N, given.P), []
    source = render_cells.named(p.algebra, cut(p), p.accumulate)
    runs = Runs(p.stack, [x.layout.stack for x in matrices], MOST_BLOCKS)
    each = threads_of_a_member(p)
    for first, count in runs.starts():
        threads = count * each
        arguments = (
            *(x.member(first) for x in matrices),
            *(ctypes.c_int(extent) for extent in (p.m, p.k, p.n)),
            *(ctypes.c_longlong(s) for x in matrices for s in (x.layout.row, x.layout.col)),
            *(ctypes.c_longlong(step) for step in runs.steps),
            ctypes.c_longlong(threads),
            ctypes.c_int(along_columns(p)),
        )
        made.append(Launch.of(source, KERNEL, (math.ceil(threads / THREADS),), (THREADS,), arguments))
    return made
