"""Predecessors that lead back to the source: circles by ties (cycles of weight 0, equal bottlenecks) are repaired.

A predecessor is recorded whenever a path gets strictly better. Around a cycle of weight 0 two nodes can become each
other's predecessor. Such rows are rare, found by pointer doubling, and searched again: a search keeps the first of
equal paths, so its predecessors never form a circle.
"""

from __future__ import annotations

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.algebra.semiring import Algebra
from tilewise.compose.graph.paths import NONE
from tilewise.compose.graph.search import search
from tilewise.dispatch.sparse.arrays import Rows


def repair(before: Array, edges: Array, algebra: Algebra) -> None:
    """Make every row of `before` lead back to its source, in place. `edges` are weights, the zero where none is."""
    rows = lost_rows(before)
    if rows.size:
        before[rows] = found_anew(rows, edges, algebra)


def found_anew(rows: Array, edges: Array, algebra: Algebra) -> Array:
    """The predecessors of these sources, by a search."""
    found = search(Rows.of_dense(edges, algebra.zero), algebra, True, rows)[1]
    assert found is not None
    return found


def lost_rows(before: Array) -> Array:
    """The sources some of whose targets do not lead back to them."""
    n = len(before)
    nodes = np.arange(n)
    ahead = np.where(before == NONE, nodes[None], before)  # a node without a predecessor stays where it is
    for _ in range(max(1, n - 1).bit_length()):
        ahead = np.take_along_axis(ahead, ahead, 1)
    home = (ahead == nodes[:, None]) | (before == NONE)
    return np.flatnonzero(~home.all(1))
