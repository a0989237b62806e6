"""Layouts of operands. A line is a contiguous row of a row-major matrix, or a contiguous column of a column-major one;
`lead` is the leading dimension, in elements. Every family asks for the same operands: results are cached."""

from __future__ import annotations

import math
from functools import lru_cache

from tilewise.core.problem import Layout, Problem

AS_IT_IS, BY_CLASSES, REALIGNED, PACKED = "as it is", "by classes", "realigned", "packed"  # routes of an operand
DEINTERLEAVED = "deinterleaved"  # of M where N is taken by classes
LONGEST_LINE = 2**26 - 1024  # elements: the limit of the realigning grid


@lru_cache(maxsize=256)
def contiguous_lines(layout: Layout, rows: int, cols: int) -> tuple[int, int, int] | None:
    """(number of lines, their length, lead) of a row-major or column-major matrix, else None."""
    lines = long_lines(layout, rows, cols)
    return lines and ((cols, rows, lines[1]) if lines[0] else (rows, cols, lines[1]))


@lru_cache(maxsize=256)
def along_columns(layout: Layout, rows: int, cols: int) -> bool:
    """Whether the lines are columns."""
    return not ((layout.col == 1 or cols <= 1) and (layout.row >= cols or rows <= 1))


@lru_cache(maxsize=256)
def long_lines(layout: Layout, rows: int, cols: int) -> tuple[bool, int] | None:
    """(whether lines are columns, lead) of a row-major or column-major matrix, else None."""
    if (layout.col == 1 or cols <= 1) and (layout.row >= cols or rows <= 1):
        return False, layout.row if rows > 1 else cols
    if (layout.row == 1 or rows <= 1) and (layout.col >= rows or cols <= 1):
        return True, layout.col if cols > 1 else rows
    return None


def along_k(layout: Layout, rows: int, cols: int, side: str) -> bool:
    """Whether an operand is contiguous along k."""
    return along_columns(layout, rows, cols) == (side == "N")


@lru_cache(maxsize=256)
def line_alignment(layout: Layout, rows: int, cols: int, itemsize: int) -> int:
    """The alignment in bytes of every line's start, up to 16."""
    lines = long_lines(layout, rows, cols)
    step = math.gcd(lines[1] if lines else 1, *layout.stack)
    return math.gcd(layout.misalignment, step * itemsize, 16)


def lines_of_long(p: Problem, swapped: bool) -> tuple[bool, int] | None:
    """`long_lines` of the longer operand; None where operands must be converted first."""
    if p.dtype_m != p.dtype or p.dtype_n != p.dtype:
        return None
    return long_lines(p.layout_m, p.m, p.k) if swapped else long_lines(p.layout_n, p.k, p.n)
