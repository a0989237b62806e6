"""Predecessors without cycles: those that ties close (weight 0, equal bottlenecks) are repaired.

A predecessor is recorded whenever a path gets strictly better. Around a cycle of weight 0 two nodes can become each
other's predecessor. Such rows are rare; they are found by pointer doubling and replaced by those of a search, which
keeps the first of equal paths, so that its predecessors never form a cycle.
"""

from __future__ import annotations

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.algebra.semiring import Algebra
from tilewise.compose.graph.paths import NONE
from tilewise.compose.graph.search import search
from tilewise.dispatch.sparse.arrays import Rows


def repair(predecessors: Array, edges: Array, algebra: Algebra) -> None:
    """Make every row of `predecessors` lead back to its source, in place. `edges`: the weights."""
    rows = lost_rows(predecessors)
    if rows.size:
        predecessors[rows] = search_predecessors(rows, edges, algebra)


def search_predecessors(rows: Array, edges: Array, algebra: Algebra) -> Array:
    """The predecessors of these sources from a search."""
    found = search(Rows.of_dense(edges, algebra.zero), algebra, True, rows)[1]
    assert found is not None
    return found


def lost_rows(predecessors: Array) -> Array:
    """The sources to which some of their targets' predecessors do not lead back."""
    n = len(predecessors)
    nodes = np.arange(n)
    ahead = np.where(predecessors == NONE, nodes[None], predecessors)  # a node without a predecessor stays where it is
    for _ in range(max(1, n - 1).bit_length()):
        ahead = np.take_along_axis(ahead, ahead, 1)
    home = (ahead == nodes[:, None]) | (predecessors == NONE)
    return np.flatnonzero(~home.all(1))
