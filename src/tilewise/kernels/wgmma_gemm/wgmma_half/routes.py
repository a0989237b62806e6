"""How operands reach the tensor-core kernel, and what that costs them.

The copy engine wants rows that start on 16-byte boundaries. An operand whose rows do not is realigned into a workspace
first (`transforms/realign.cu`); M can often be taken by classes of rows instead (`wgmma_half.cu`). One with holes
between its elements, or of another dtype, is packed.
"""

from __future__ import annotations

from itertools import product

from tilewise.algebra.dtypes import DType
from tilewise.core.problem import Layout, Problem
from tilewise.kernels.shared.layouts import (
    CLASSED,
    LONGEST_LINE,
    NO_ROUTE,
    PACKS,
    REALIGNS,
    ROUTES,
    STAYS,
    along_columns,
    has_lines,
    lead_of,
)
from tilewise.kernels.transforms.realign import realigned_bytes
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import CLASSES, DEPTH


def first_route(layout: Layout, rows: int, cols: int, converted: bool) -> int:
    """How an operand reaches the kernel if nothing better is known."""
    by_columns = along_columns(layout, rows, cols)
    if converted or not has_lines(layout, rows, cols) or (rows if by_columns else cols) > LONGEST_LINE:
        return PACKS
    lead = lead_of(layout, rows, cols)
    whole = ((cols if by_columns else rows) <= 1 or lead % 8 == 0 <= lead) and layout.alignment >= 16
    return STAYS if whole and layout.step % 8 == 0 and not layout.backward else REALIGNS


def second_route(layout: Layout, rows: int, cols: int, first: int, may_be_classed: bool) -> int:
    """How it can reach it, too: lines that straddle 128 bytes cost the copy engine twice."""
    count = cols if along_columns(layout, rows, cols) else rows
    if first == STAYS and count > 1 and lead_of(layout, rows, cols) % DEPTH:
        return REALIGNS
    return CLASSED if first == REALIGNS and may_be_classed else NO_ROUTE


def may_be_classed(p: Problem) -> bool:
    """Whether rows of M may come by alignment classes."""
    by_rows = not along_columns(p.layout_m, p.m, p.k) and not along_columns(p.layout_n, p.k, p.n)
    return by_rows and p.axes == 0 and p.m >= CLASSES and not p.unrounded


def route(layout: Layout, rows: int, cols: int, dtype: DType, wanted: DType) -> str:
    """`first_route` by its name."""
    return ROUTES[first_route(layout, rows, cols, dtype != wanted)]


def routes_of(p: Problem, pair: int) -> tuple[str, str]:
    """A pair of `options` by its number, of which the first needs no second routes."""
    if pair:
        return [*product(*options(p))][pair]
    m = first_route(p.layout_m, p.m, p.k, p.dtype_m != p.dtype)
    return ROUTES[m], ROUTES[first_route(p.layout_n, p.k, p.n, p.dtype_n != p.dtype)]


def options(p: Problem) -> tuple[list[str], list[str]]:
    """How M and how N can reach the kernel."""
    m = first_route(p.layout_m, p.m, p.k, p.dtype_m != p.dtype)
    n = first_route(p.layout_n, p.k, p.n, p.dtype_n != p.dtype)
    of_m = m, second_route(p.layout_m, p.m, p.k, m, may_be_classed(p))
    of_n = n, second_route(p.layout_n, p.k, p.n, n, False)
    for_m, for_n = ([ROUTES[how] for how in routes if how != NO_ROUTE] for routes in (of_m, of_n))
    return for_m, for_n


def moved_bytes(how: int, layout: Layout, rows: int, cols: int, members: int) -> int:
    """What a copy of an operand on boundaries reads and writes, if its route needs one."""
    if how < REALIGNS:
        return 0
    of_columns = along_columns(layout, rows, cols) and has_lines(layout, rows, cols)
    lines, length = cols if of_columns else rows, rows if of_columns else cols
    return members * (2 * rows * cols + lines * realigned_bytes(2 * length))


def lines_touched(how: int, layout: Layout, rows: int, cols: int) -> int:
    """128-byte lines of memory that a tile's row of 128 bytes lies in."""
    if how != STAYS:
        return 1
    lead = lead_of(layout, rows, cols)
    return 2 if lead % DEPTH and DEPTH % lead else 1
