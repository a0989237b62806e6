"""The launches of `direct_half`: one for all members of a stack that lie evenly."""

from __future__ import annotations

import ctypes

from tilewise.kernels.direct_half.model import KERNEL, HalfTile, tiles_of
from tilewise.kernels.direct_half.text import render_direct_half
from tilewise.kernels.shared.layouts import along_k
from tilewise.kernels.shared.placed import Operands, Placed
from tilewise.kernels.shared.realign import lines_of
from tilewise.kernels.shared.split_k import epilogue_argument
from tilewise.kernels.shared.stacked import Runs
from tilewise.plans import Plan
from tilewise.recipe import Argument, Launch, Scratch, structure

MOST_BLOCKS = 2**31 - 1


class Reach(ctypes.Structure):
    """The kernel's `Reach`."""

    _fields_ = (("low", ctypes.c_longlong), ("high", ctypes.c_longlong))


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    """M and N have lines of elements side by side, P rows; all of them start anywhere."""
    p, tile, made = plan.problem, plan.way, []
    assert isinstance(tile, HalfTile)
    M, N, P = given.M, given.N, given.P
    lying = along_k(M.layout, M.rows, M.cols, "M"), along_k(N.layout, N.rows, N.cols, "N")
    source = render_direct_half(p.dtype, tile, lying, p.accumulate, p.epilogue)
    down, across = tiles_of(p, tile)
    runs = Runs(p.stack, [x.layout.stack for x in (M, N, P)], MOST_BLOCKS // (down * across))
    for first, count in runs.starts():
        arguments = (
            *(x.member(first) for x in (M, N, P)),
            epilogue_argument(p.epilogue, "float32", given.bias),
            *(ctypes.c_int(extent) for extent in (p.m, p.k, p.n)),
            *(ctypes.c_longlong(x) for x in (lines_of(M)[2], lines_of(N)[2], P.lead)),
            *(_reach(x, step, count) for x, step in zip((M, N), runs.steps, strict=False)),
            *(ctypes.c_int(x) for x in (down * across, across)),
            *(ctypes.c_longlong(step) for step in runs.steps),
        )
        grid = (down * across * count,)
        made.append(Launch.of(source, KERNEL, grid, (tile.threads,), arguments, tile.shared_bytes))
    return made


def _reach(x: Placed, step: int, members: int) -> Argument:
    lines, length, lead = lines_of(x)
    last = (members - 1) * step
    return structure(Reach, min(0, last), max(0, last) + (lines - 1) * lead + length)
