"""Chooses which matrices of a compiled product get rows on multiples of 128 bytes.

A matrix that the graph computes gets that layout at no cost; an input of the graph (a weight) is copied. With aligned
rows the kernel needs no realigning pass over its operand, and TMA can store P.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from tilewise.core.machine import Machine
from tilewise.core.problem import Layout, Problem
from tilewise.planning.choose import make_plan
from tilewise.torch.vendor import copy_seconds

ALIGNMENT = 128  # bytes
SHORTEST = 4 * ALIGNMENT  # bytes of a row; shorter ones are not aligned, so that padding is at most a quarter


class Arrangement(NamedTuple):
    """A problem with the layouts of its matrices, and its expected seconds, copies included."""

    problem: Problem
    seconds: float
    moved: tuple[bool, bool]  # whether the layouts of M and N differ from the given ones

    @property
    def layouts(self) -> tuple[Layout, Layout]:
        return self.problem.layout_m, self.problem.layout_n


def aligned_leading_dimension(length: int, itemsize: int) -> int:
    """The smallest aligned leading dimension of rows of `length` elements."""
    return -(-length * itemsize // ALIGNMENT) * ALIGNMENT // itemsize


def aligned_layout(layout: Layout, rows: int, cols: int, itemsize: int) -> Layout | None:
    """The layout with aligned rows, or columns if column-major; None if it is aligned, too short, or strided."""
    if layout.stack or (layout.row != 1 and layout.col != 1):
        return None
    length, count, lead = (cols, rows, layout.row) if layout.col == 1 else (rows, cols, layout.col)
    aligned = lead * itemsize % 16 == 0 and layout.alignment == 16
    if aligned or count <= 1 or lead < length or length * itemsize < SHORTEST:
        return None
    wide = aligned_leading_dimension(length, itemsize)
    return Layout(wide, 1) if layout.col == 1 else Layout(1, wide)


@lru_cache(maxsize=4096)
def best_arrangement(problem: Problem, machine: Machine, computed: tuple[bool, bool], pads_p: bool) -> Arrangement:
    """The fastest layouts. `computed`: whether the graph computes M and N; `pads_p`: whether P's rows may be padded."""
    p, size = problem, problem.dtype.itemsize
    if pads_p and aligned_layout(p.layout_p, p.m, p.n, size) is not None:
        # 16 bytes are all that stores need, and reductions over such rows are faster
        p = replace(p, layout_p=Layout(-(-p.n * size // 16) * 16 // size, 1, spare=True))
    sides = (p.layout_m, p.m, p.k), (p.layout_n, p.k, p.n)
    options = [(None, aligned_layout(*side, size)) for side in sides]
    found: list[Arrangement] = []
    for pair in product(*((a, b) if b is not None else (a,) for a, b in options)):
        moved = pair[0] is not None, pair[1] is not None
        tried = replace(p, layout_m=pair[0] or p.layout_m, layout_n=pair[1] or p.layout_n)
        copied = [
            rows * cols for (_, rows, cols), gone, free in zip(sides, moved, computed, strict=True) if gone > free
        ]
        copies = sum(copy_seconds(2 * cells * size, machine) for cells in copied)
        found.append(Arrangement(tried, make_plan(tried, machine).predicted + copies, moved))
    return min(found, key=lambda arrangement: arrangement.seconds)
