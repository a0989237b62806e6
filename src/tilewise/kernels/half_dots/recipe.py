"""The launch of `half_dots`: one, k cut over the blocks of a cluster."""

from __future__ import annotations

import ctypes
import math

from tilewise.kernels.half_dots.model import KERNEL, LINES, THREADS, DotsWay
from tilewise.kernels.half_dots.text import render_half_dots
from tilewise.kernels.shared.placed import Operands, Placed
from tilewise.kernels.shared.realign import lines_of
from tilewise.kernels.shared.split_k import epilogue_argument
from tilewise.plans import Plan
from tilewise.recipe import Launch, Scratch


def launches(plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
    p, way = plan.problem, plan.way
    assert isinstance(way, DotsWay)
    few, long = (given.N, given.M) if way.swapped else (given.M, given.N)
    rows, length = (p.n, p.m) if way.swapped else (p.m, p.n)
    by_few, by_length = _strides(given.P, way.swapped)
    arguments = (
        few.pointer,
        long.pointer,
        given.P.pointer,
        epilogue_argument(p.epilogue, "float32", given.bias),
        *(ctypes.c_int(extent) for extent in (rows, p.k, length)),
        *(ctypes.c_longlong(x) for x in (*_strides(few, way.swapped), lines_of(long)[2], by_few, by_length)),
        ctypes.c_int(way.swapped),
    )
    source = render_half_dots(p.dtype, way.tile, p.accumulate, p.epilogue)
    grid = (math.ceil(length / LINES) * way.cluster,)
    return [Launch.of(source, KERNEL, grid, (THREADS,), arguments, way.tile.shared_bytes, cluster=way.cluster)]


def _strides(x: Placed, swapped: bool) -> tuple[int, int]:
    return (x.layout.col, x.layout.row) if swapped else (x.layout.row, x.layout.col)
