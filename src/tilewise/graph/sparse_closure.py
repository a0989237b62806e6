"""Closures of sparse graphs: a search from every node where that is sooner done than tiles, by counts alone.

What Dijkstra of SciPy costs is counted beforehand: edges and nodes that a few nodes reach. What tiles cost is n³ steps.
Both are of weights that are not below 0 over min_plus; every other question goes by tiles.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewise.algebra.builtin import SEMIRINGS
from tilewise.algebra.semiring import Algebra
from tilewise.sparse.arrays import Array, Rows
from tilewise.system.memory import check_room

EDGE = 28.0  # nanoseconds an edge or a node of a search takes (docs/how/sparse.md has the command)
STEP = {4: 0.09, 8: 0.2}  # nanoseconds a step of the tiles takes, by itemsize
STEP_OF = ("float32", "float64")
LEAST = 256  # nodes; below, tiles are never slower
SAMPLES = 8


def searchable(rows: Rows, algebra: Algebra) -> bool:
    """Whether Dijkstra of SciPy answers this question: min_plus over floats that are not below 0."""
    plain, ring = SEMIRINGS["min_plus"], algebra.semiring
    same = (ring.add, ring.mul, ring.zero) == (plain.add, plain.mul, plain.zero)
    return same and algebra.result.name in ("float32", "float64") and _scipy() and bool((rows.data >= 0).all())


def by_search(rows: Rows, algebra: Algebra) -> bool:
    """Whether searches from all nodes are expected to be done before tiles, of a graph that is searchable."""
    n = rows.shape[0]
    tiles = n**3 * STEP[algebra.partial.itemsize]
    return n >= LEAST and n * reached_by_a_few(rows) * EDGE < tiles


def rows_worth_searching(W: Array, algebra: Algebra) -> Rows | None:
    """The edges of a dense matrix by rows, where that many are sooner searched."""
    n = len(W)
    if n < LEAST or algebra.result.name not in STEP_OF:
        return None
    if np.count_nonzero(algebra.zero != W) * EDGE > 20 * n * n * STEP[algebra.partial.itemsize]:
        return None  # more than a few edges a node: no search can be sooner
    rows = rows_of_dense(W, algebra.zero)
    return rows if searchable(rows, algebra) and by_search(rows, algebra) else None


def reached_by_a_few(rows: Rows) -> float:
    """Edges looked at and nodes taken off the heap, for one source, as a few evenly spread ones have it."""
    n = rows.shape[0]
    degree = np.diff(rows.starts)
    total = 0.0
    sources = np.unique(np.linspace(0, n - 1, SAMPLES).astype(int))
    for source in sources:
        seen = np.zeros(n, bool)
        seen[source] = True
        front = np.array([source])
        while front.size:
            cells = _cells(rows.starts, front, degree)
            nodes = np.unique(rows.indices[cells])
            front = nodes[~seen[nodes]]
            seen[front] = True
        count = int(seen.sum())
        total += float(degree[seen].sum()) + count * math.log2(count + 1)
    return total / len(sources)


def _cells(starts: Array, nodes: Array, degree: Array) -> Array:
    """The places of all stored cells of these rows."""
    count = degree[nodes]
    ends = np.cumsum(count)
    if not ends.size or not ends[-1]:
        return np.zeros(0, np.int64)
    return np.asarray(np.arange(int(ends[-1])) + np.repeat(starts[nodes] - (ends - count), count))


def search(rows: Rows, tracks: bool, sources: Array | None = None) -> tuple[Array, Array | None]:
    """Lengths (and the node before each target, −1 for none) by Dijkstra of SciPy."""
    lines = rows.shape[0] if sources is None else len(sources)
    check_room(
        lines * rows.shape[0] * (8 + 12 * tracks), f"a closure of {rows.shape[0]:,} nodes from {lines:,} of them"
    )
    import scipy.sparse
    from scipy.sparse.csgraph import dijkstra

    graph = scipy.sparse.csr_array(
        (rows.data.astype(np.float64), rows.indices.astype(np.int32), rows.starts.astype(np.int32)), shape=rows.shape
    )
    made = dijkstra(graph, indices=sources, return_predecessors=tracks)
    if not tracks:
        return made, None
    lengths, before = made
    return lengths, np.where(before < 0, -1, before).astype(np.int64)


def rows_of_dense(W: Array, zero: Any) -> Rows:
    """The edges of a dense matrix of weights, by rows; NaN is no edge."""
    held = (zero != W) & (W == W)
    starts = np.concatenate(([0], np.cumsum(held.sum(1))))
    return Rows((W.shape[0], W.shape[1]), starts, np.nonzero(held)[1], W[held])


def _scipy() -> bool:
    from importlib.util import find_spec

    return find_spec("scipy") is not None
