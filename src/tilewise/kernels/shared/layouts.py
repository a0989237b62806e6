"""Layouts of operands. A line is a contiguous row of a row-major matrix, or a contiguous column of a column-major one;
`lead` is the leading dimension, in elements. Every family asks for the same operands: results are cached."""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from tilewise.core.problem import Layout, Problem

AS_IT_IS, BY_CLASSES, REALIGNED, PACKED = "as it is", "by classes", "realigned", "packed"  # routes of an operand
ROUTES = AS_IT_IS, BY_CLASSES, REALIGNED, PACKED
STAYS, CLASSED, REALIGNS, PACKS = range(4)  # the same by numbers
NO_ROUTE = -1
DEINTERLEAVED = "deinterleaved"  # of M where N is taken by classes
LONGEST_LINE = 2**26 - 1024  # elements: the limit of the realigning grid


@lru_cache(maxsize=256)
def contiguous_lines(layout: Layout, rows: int, cols: int) -> tuple[int, int, int] | None:
    """(number of lines, their length, lead) of a row-major or column-major matrix, else None."""
    lines = long_lines(layout, rows, cols)
    return lines and ((cols, rows, lines[1]) if lines[0] else (rows, cols, lines[1]))


def along_columns(layout: Layout, rows: int, cols: int) -> bool:
    """Whether the lines are columns."""
    return not ((layout.col == 1 or cols <= 1) and (layout.row >= cols or rows <= 1))


def has_lines(layout: Layout, rows: int, cols: int) -> bool:
    """Whether a matrix is row-major or column-major."""
    if not along_columns(layout, rows, cols):
        return True
    return (layout.row == 1 or rows <= 1) and (layout.col >= rows or cols <= 1)


def lead_of(layout: Layout, rows: int, cols: int) -> int:
    """The leading dimension of a matrix that has lines."""
    if along_columns(layout, rows, cols):
        return layout.col if cols > 1 else rows
    return layout.row if rows > 1 else cols


@lru_cache(maxsize=256)
def long_lines(layout: Layout, rows: int, cols: int) -> tuple[bool, int] | None:
    """(whether lines are columns, lead) of a row-major or column-major matrix, else None."""
    if not has_lines(layout, rows, cols):
        return None
    return along_columns(layout, rows, cols), lead_of(layout, rows, cols)


def along_k(layout: Layout, rows: int, cols: int, side: str) -> bool:
    """Whether an operand is contiguous along k."""
    return along_columns(layout, rows, cols) == (side == "N")


def line_alignment(layout: Layout, rows: int, cols: int, itemsize: int) -> int:
    """The alignment in bytes of every line's start, up to 16."""
    lead = lead_of(layout, rows, cols) if has_lines(layout, rows, cols) else 1
    return gcd(layout.misalignment, gcd(lead, layout.step) * itemsize, 16)


def lines_of_long(p: Problem, swapped: bool) -> tuple[bool, int] | None:
    """`long_lines` of the longer operand; None where operands must be converted first."""
    if p.dtype_m != p.dtype or p.dtype_n != p.dtype:
        return None
    return long_lines(p.layout_m, p.m, p.k) if swapped else long_lines(p.layout_n, p.k, p.n)
