"""Predecessors that lead back to the source: circles by ties (cycles of weight 0, equal bottlenecks) are repaired.

A predecessor is recorded whenever a path gets strictly better. Around a cycle of weight 0 two nodes can become each
other's predecessor. Such rows are rare, found by pointer doubling, and computed again by Bellman–Ford, whose
predecessors never form a circle.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.algebra.expression import Number
from tilewise.algebra.semiring import Algebra
from tilewise.compose.graph.paths import NONE
from tilewise.dispatch.product import matmul

Array = np.ndarray[Any, np.dtype[Any]]


def repair(before: Array, edges: Array, algebra: Algebra, one: Number, absent: Number) -> None:
    """Make every row of `before` lead back to its source, in place. `edges` are weights, `absent` where none is."""
    rows = lost_rows(before)
    if rows.size:
        before[rows] = found_anew(rows, edges, algebra, one, absent)


def found_anew(rows: Array, edges: Array, algebra: Algebra, one: Number, absent: Number) -> Array:
    """The predecessors of these sources, by Bellman–Ford."""
    found = reached_from(rows, edges, algebra, one, absent, tracks=True)[1]
    assert found is not None
    return found


def reached_from(
    rows: Array, edges: Array, algebra: Algebra, one: Number, absent: Number, tracks: bool
) -> tuple[Array | None, Array | None]:
    """The best paths from these sources, None where they improve without end; and with `tracks`, which needs an add
    that picks a winner, the node before each target."""
    best = np.full((rows.size, len(edges)), absent, edges.dtype)
    best[np.arange(rows.size), rows] = one
    found = np.full(best.shape, NONE) if tracks else None
    ends = False
    for _ in range(len(edges) + 1):
        product = matmul(best, edges, semiring=algebra.semiring, return_arg=tracks)
        made = product[0] if tracks else product
        with np.errstate(all="ignore"):
            total = algebra.add(best, made)
        changed = total != best
        ends = not changed.any()
        if ends:
            break
        if found is not None:
            found[changed] = product[1][changed]
        best = total
    if found is not None:
        found[np.arange(rows.size), rows] = NONE
    return best if ends else None, found


def lost_rows(before: Array) -> Array:
    """The sources some of whose targets do not lead back to them."""
    n = len(before)
    nodes = np.arange(n)
    ahead = np.where(before == NONE, nodes[None], before)  # a node without a predecessor stays where it is
    for _ in range(max(1, n - 1).bit_length()):
        ahead = np.take_along_axis(ahead, ahead, 1)
    home = (ahead == nodes[:, None]) | (before == NONE)
    return np.flatnonzero(~home.all(1))
