"""Which matrices of a compiled product should start their rows on 128-byte lines, where Inductor can still say so.

A matrix that the graph itself makes is laid out so for nothing; one that comes from outside (a weight) is copied. Rows
that start on lines spare the kernel a pass over its operand, and let the copy engine store P.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from tilewise.core.machine import Machine
from tilewise.core.problem import Layout, Problem
from tilewise.interop.torch.vendor import COPY_SHARE, START_SECONDS
from tilewise.planning.choose import make_plan

LINE_BYTES = 128
SHORTEST = 4  # lines of a row that is worth it: no more than a quarter is then spent on room


class Laid(NamedTuple):
    """A problem as its matrices are to lie, and the seconds it takes so, copies included."""

    problem: Problem
    seconds: float
    moved: tuple[bool, bool]  # whether M and N lie otherwise than they were given

    @property
    def layouts(self) -> tuple[Layout, Layout]:
        return self.problem.layout_m, self.problem.layout_n


def lead_on_lines(length: int, itemsize: int) -> int:
    """Elements from row to row, for rows of `length`."""
    return -(-length * itemsize // LINE_BYTES) * LINE_BYTES // itemsize


def on_lines(layout: Layout, rows: int, cols: int, itemsize: int) -> Layout | None:
    """The matrix in the same order with its lines on boundaries; None where it is so already, is thin, or has holes."""
    if layout.stack or (layout.row != 1 and layout.col != 1):
        return None
    length, count, lead = (cols, rows, layout.row) if layout.col == 1 else (rows, cols, layout.col)
    starts = lead * itemsize % 16 == 0 and layout.alignment == 16
    if starts or count <= 1 or lead < length or length * itemsize < SHORTEST * LINE_BYTES:
        return None
    wide = lead_on_lines(length, itemsize)
    return Layout(wide, 1) if layout.col == 1 else Layout(1, wide)


@lru_cache(maxsize=4096)
def best_laid(problem: Problem, machine: Machine, made_here: tuple[bool, bool], room_for_p: bool) -> Laid:
    """`made_here`: whether M and N are made in the graph; `room_for_p`: whether P may have room between its rows."""
    p, size = problem, problem.dtype.itemsize
    if room_for_p:
        wide = on_lines(p.layout_p, p.m, p.n, size)
        if wide is not None:  # 16 bytes are all that stores want, and reductions over such rows are quicker
            p = replace(p, layout_p=Layout(-(-p.n * size // 16) * 16 // size, 1, spare=True))
    sides = (p.layout_m, p.m, p.k), (p.layout_n, p.k, p.n)
    options = [(None, on_lines(*side, size)) for side in sides]
    found: list[Laid] = []
    for pair in product(*((a, b) if b is not None else (a,) for a, b in options)):
        moved = pair[0] is not None, pair[1] is not None
        tried = replace(p, layout_m=pair[0] or p.layout_m, layout_n=pair[1] or p.layout_n)
        copied = [
            rows * cols for (_, rows, cols), gone, free in zip(sides, moved, made_here, strict=True) if gone > free
        ]
        copies = sum(START_SECONDS + 2 * cells * size / (machine.bandwidth * COPY_SHARE) for cells in copied)
        found.append(Laid(tried, make_plan(tried, machine).predicted + copies, moved))
    return min(found, key=lambda laid: laid.seconds)
