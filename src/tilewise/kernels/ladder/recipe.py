"""The launches of a rung: one a member of the stack; a grid taller than CUDA allows comes in bands of rows."""

from __future__ import annotations

import ctypes
import math

from tilewise.core.plan import GRID_Y_LIMIT, Plan
from tilewise.core.recipe import Launch, Scratch
from tilewise.kernels.ladder.text import render
from tilewise.kernels.shared.placed import Operands, members


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M, N and P have rows side by side."""
    p, g = plan.problem, plan.geometry
    source = render(plan)
    index = ctypes.c_int if plan.index == "int" else ctypes.c_longlong
    matrices = (given.M, given.N, given.P)
    leads = [x.lead for x in matrices]
    band = GRID_Y_LIMIT * g.rows
    made = []
    for member in members(p.stack):
        for top in range(0, p.m, band):
            rows = min(band, p.m - top)
            shifts = (top * leads[0], 0, top * leads[2])
            arguments = (
                *(x.member(member) + s * x.dtype.itemsize for x, s in zip(matrices, shifts, strict=True)),
                *(ctypes.c_int(extent) for extent in (rows, p.k, p.n)),
                *(index(lead) for lead in leads),
            )
            grid = (plan.grid[1], math.ceil(rows / g.rows))
            made.append(Launch.of(source, plan.kernel, grid, g.block, arguments))
    return made
