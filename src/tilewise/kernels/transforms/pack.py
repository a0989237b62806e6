"""Copies from any strides and dtype to any other, cell by cell (`pack.cu`), for kernels that need rows side by side."""

from __future__ import annotations

import ctypes
import math
from dataclasses import replace
from functools import lru_cache

from tilewise.algebra.dtypes import DType
from tilewise.core.plan import packed_lead
from tilewise.core.problem import Layout
from tilewise.core.recipe import Address, Launch, Recipe, Scratch, Step
from tilewise.kernels.shared.placed import Placed, broadcast, own_stack, workspace
from tilewise.kernels.shared.stacked import GRID_LIMIT, Runs
from tilewise.kernels.shared.text import render_pack

SIDE = 32  # of the cells that a block copies, as the kernel has it


def packed(source: Placed, stack: tuple[int, ...], dtype: DType, scratch: Scratch) -> Placed:
    """A place for a copy with rows side by side and of the kernel's dtype; broadcast axes stay broadcast."""
    own = own_stack(source, stack)
    made = workspace(source.rows, source.cols, own, dtype, packed_lead(source.cols), scratch)
    return replace(made, layout=made.layout._replace(stack=broadcast(own, made.layout.stack)))


def copies(source: Placed, target: Placed, stack: tuple[int, ...]) -> list[Step]:
    """Cell by cell from any strides and dtype to any other."""
    if not (source.rows and source.cols):
        return []
    source, target, stack = _merged(source, target, stack)
    if source.by_columns:
        source, target = source.transposed, target.transposed
    text = render_pack.key(source.dtype, target.dtype, target.by_columns)
    sizes = ctypes.c_int(source.rows), ctypes.c_int(source.cols)
    strides = source.layout.row, source.layout.col, target.layout.row, target.layout.col
    runs = Runs(stack, [source.layout.stack, target.layout.stack])
    apart = [ctypes.c_longlong(stride) for stride in (*strides, *runs.steps)]
    grid = math.ceil(source.cols / SIDE), min(math.ceil(source.rows / SIDE), GRID_LIMIT)
    return [
        Launch.of(text, "pack", (*grid, count), (32, 8), (source.on(at[0]), target.on(at[1]), *sizes, *apart))
        for at, count in runs.starts()
    ]


def _merged(source: Placed, target: Placed, stack: tuple[int, ...]) -> tuple[Placed, Placed, tuple[int, ...]]:
    """Members that go on where the last one's rows end are rows of one taller matrix: one launch copies them all."""
    while stack and all(x.layout.stack[-1] == x.rows * x.layout.row for x in (source, target)):
        rows = source.rows * stack[-1]
        source, target = (
            replace(x, rows=rows, layout=x.layout._replace(stack=x.layout.stack[:-1])) for x in (source, target)
        )
        stack = stack[:-1]
    return source, target, stack


@lru_cache(maxsize=1024)
def copy_recipe(
    rows: int, cols: int, stack: tuple[int, ...], source: DType, layout: Layout, target: DType, layout_to: Layout
) -> Recipe:
    """A copy from the address called M to the one called P."""
    placed = (
        Placed(Address("M", 0, layout.misalignment), source, rows, cols, layout),
        Placed(Address("P", 0, layout_to.misalignment), target, rows, cols, layout_to),
    )
    return Recipe(tuple(copies(*placed, stack)))
