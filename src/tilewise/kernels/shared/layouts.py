"""How an operand lies: lines of elements side by side, along its rows (row-major) or its columns (column-major)."""

from __future__ import annotations

import math

from tilewise.core.problem import Layout, Problem

AS_IT_IS, BY_CLASSES, REALIGNED, PACKED = "as it is", "by classes", "realigned", "packed"  # how an operand is taken
DEINTERLEAVED = "deinterleaved"  # the same, of an M beside an N that is taken by classes
LONGEST_LINE = 2**26 - 1024  # elements; the grid that realigns it has no more blocks along it


def contiguous_lines(layout: Layout, rows: int, cols: int) -> tuple[int, int, int] | None:
    """(lines, length, lead) when the matrix is lines of elements side by side, along its rows or along its columns."""
    lines = long_lines(layout, rows, cols)
    return lines and ((cols, rows, lines[1]) if lines[0] else (rows, cols, lines[1]))


def along_columns(layout: Layout, rows: int, cols: int) -> bool:
    """Whether the lines of `contiguous_lines` are the matrix's columns."""
    return not ((layout.col == 1 or cols <= 1) and (layout.row >= cols or rows <= 1))


def long_lines(layout: Layout, rows: int, cols: int) -> tuple[bool, int] | None:
    """(lines run along columns of the matrix, lead) where it is lines of elements side by side, else None."""
    if (layout.col == 1 or cols <= 1) and (layout.row >= cols or rows <= 1):
        return False, layout.row if rows > 1 else cols
    if (layout.row == 1 or rows <= 1) and (layout.col >= rows or cols <= 1):
        return True, layout.col if cols > 1 else rows
    return None


def along_k(layout: Layout, rows: int, cols: int, side: str) -> bool:
    """Whether an operand's k lies side by side."""
    return along_columns(layout, rows, cols) == (side == "N")


def line_alignment(layout: Layout, rows: int, cols: int, itemsize: int) -> int:
    """What the first bytes of an operand's lines are all multiples of, up to 16."""
    lines = long_lines(layout, rows, cols)
    step = math.gcd(lines[1] if lines else 1, *layout.stack)
    return math.gcd(layout.misalignment, step * itemsize, 16)


def lines_of_long(p: Problem, swapped: bool) -> tuple[bool, int] | None:
    """How the long operand's lines run, as `long_lines` says it; None where operands cannot be read as they lie."""
    if p.dtype_m != p.dtype or p.dtype_n != p.dtype:
        return None
    return long_lines(p.layout_m, p.m, p.k) if swapped else long_lines(p.layout_n, p.k, p.n)
