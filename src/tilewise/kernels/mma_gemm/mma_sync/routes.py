"""How operands reach the mma.sync kernel, by numbers as compiled formulas have them; alignment of their lines."""

from __future__ import annotations

from math import gcd

from tilewise.core.problem import Layout
from tilewise.kernels.shared.layouts import (
    LONGEST_LINE,
    NO_ROUTE,
    PACKS,
    REALIGNS,
    STAYS,
    along_columns,
    has_lines,
    lead_of,
)


def line_bytes(layout: Layout, rows: int, cols: int, size: int) -> int:
    """The alignment of an operand's lines in bytes, 16 at most; 0 where it has no lines."""
    if not has_lines(layout, rows, cols):
        return 0
    count = cols if along_columns(layout, rows, cols) else rows
    lead = 0 if count <= 1 else lead_of(layout, rows, cols)
    return gcd(16, layout.misalignment, gcd(lead, layout.step) * size)


def realignable(layout: Layout, rows: int, cols: int, size: int) -> bool:
    """Whether realigning helps the lines of an operand, and they are not too long for it."""
    length = rows if along_columns(layout, rows, cols) else cols
    return line_bytes(layout, rows, cols, size) < 16 and size > 1 and length * size // 2 <= LONGEST_LINE


def first_route(layout: Layout, rows: int, cols: int, converted: bool, size: int) -> int:
    start = line_bytes(layout, rows, cols, size)
    if converted or start == 0 or (size == 1 and start < 4):
        return PACKS
    if start >= 4:
        return STAYS
    return REALIGNS if realignable(layout, rows, cols, size) else PACKS


def second_route(layout: Layout, rows: int, cols: int, first: int, size: int) -> int:
    return REALIGNS if first == STAYS and realignable(layout, rows, cols, size) else NO_ROUTE


def width_of(route: int, layout: Layout, rows: int, cols: int, size: int) -> int:
    """Bytes of a copy of an operand."""
    return line_bytes(layout, rows, cols, size) if route == STAYS else 16
