"""Launches of bounded length: a card with a display shows nothing new while a kernel runs.

A product that would take longer than the machine's `launch_seconds` is cut into pieces of P, launched one after
another: of the stack, else of rows, else of columns. k is not cut, so each cell is summed in the order of its kernel.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import BOUNDARY
from tilewise.kernels.choosing import of_members
from tilewise.kernels.registry import family_of
from tilewise.kernels.shared.placed import Operands, Placed

MARGIN = 0.9  # of the bound: the model is a few per cent off, and pieces fill their waves worse than the whole
Range = tuple[int, int]  # first, count


class Piece(NamedTuple):
    """A part of the stack's first axis, of P's rows and of its columns."""

    members: Range
    rows: Range
    cols: Range


def cuts_of(plan: Plan) -> list[Piece]:
    """The pieces of a plan; one where its expected time is within the bound."""
    p, bound, tile = plan.problem, plan.machine.launch_seconds, plan.geometry
    first = p.stack[0] if p.stack else 1
    whole = Piece((0, first), (0, p.m), (0, p.n))
    if not bound or plan.predicted <= bound or p.groups or p.scaled:
        return [whole]
    wanted = math.ceil(plan.predicted / (MARGIN * bound))
    of_stack = _ranges(first, math.ceil(first / wanted))
    of_rows = _ranges(p.m, _whole(p.m, wanted / len(of_stack), tile.rows))
    of_cols = _ranges(p.n, _whole(p.n, wanted / len(of_stack) / len(of_rows), tile.cols))
    return [Piece(a, b, c) for a in of_stack for b in of_rows for c in of_cols]


def _whole(extent: int, pieces: float, side: int) -> int:
    """Rows or columns of a piece: whole tiles, which start as far from a 16-byte boundary as the first."""
    step = math.lcm(side, BOUNDARY)
    return max(step, int(extent / max(1.0, pieces)) // step * step)


def _ranges(extent: int, each: int) -> list[Range]:
    return [(first, min(each, extent - first)) for first in range(0, extent, max(1, each))]


def in_pieces(plan: Plan, given: Operands) -> list[tuple[Plan, Operands]]:
    """The plan of each piece, by the same kernel, and its operands."""
    cuts = cuts_of(plan)
    if len(cuts) == 1:
        return [(plan, given)]
    p, kernel = plan.problem, None if plan.real else plan.kernel
    tile = plan.tile if kernel and family_of(kernel).teaches else None
    unbounded = replace(plan.machine, launch_seconds=0.0)
    made = []
    for cut in cuts:
        parts = _operands(p, given, cut)
        stack = (cut.members[1], *p.stack[1:]) if p.stack else ()
        piece = replace(
            p, m=cut.rows[1], n=cut.cols[1], stack=stack, layout_m=parts.M.layout, layout_n=parts.N.layout,
            layout_p=parts.P.layout, symmetric=False,
        )  # fmt: skip
        made.append((of_members(piece, unbounded, kernel, tile), parts))
    return made


def _operands(p: Problem, given: Operands, cut: Piece) -> Operands:
    rows, cols, every = cut.rows, cut.cols, (0, p.k)
    arg, bias = given.arg, given.bias
    if bias is not None and p.epilogue.bias is not None:
        bias += cols[0] * p.epilogue.bias.itemsize
    return replace(
        given,
        M=_part(given.M, cut.members, rows, every),
        N=_part(given.N, cut.members, every, cols),
        P=_part(given.P, cut.members, rows, cols),
        arg=None if arg is None else _part(arg, cut.members, rows, cols),
        bias=bias,
    )


def _part(x: Placed, members: Range, rows: Range, cols: Range) -> Placed:
    part, layout = x.part(*rows, *cols), x.layout
    offset = members[0] * layout.stack[0] * x.dtype.itemsize if layout.stack else 0
    pointer = part.pointer + offset
    return replace(part, pointer=pointer, layout=layout._replace(misalignment=pointer % BOUNDARY, spare=False))
