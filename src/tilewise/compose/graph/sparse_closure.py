"""Closures of sparse graphs: a search from every node where that is sooner done than tiles, by counts alone.

What a search costs is counted beforehand: edges and nodes that a few nodes reach. What tiles cost is n³ steps. Both
are shared among threads alike, so how many there are does not matter.
Both are of weights that are not below 0 over min_plus; every other question goes by tiles.
"""

from __future__ import annotations

import math

import numpy as np

from tilewise.algebra.builtin import SEMIRINGS
from tilewise.algebra.semiring import Algebra
from tilewise.dispatch.sparse.arrays import Array, Rows, has_compiler
from tilewise.system.memory import check_room

# nanoseconds of one core, fitted to 113 drawn graphs of 300 to 20,000 nodes (uniform, grids, few large degrees, whole
# weights) within 20 %: an edge that is looked at, the same for each node whose length lies farther from the core, a
# length that gets better, a level of the heap for a node that leaves it
EDGE, FARTHER, BETTER, LEVEL = 1.5, 6e-5, 17.0, 2.9
# the same of tiles: a step by itemsize, with vectors of 64 bytes, and what each cell costs before and after
STEP, CELL = {4: 0.036, 8: 0.075}, 15.0
STEP_OF = ("float32", "float64")
LEAST = 256  # nodes; below, tiles are never slower
SAMPLES = 8


def searchable(rows: Rows, algebra: Algebra) -> bool:
    """Whether Dijkstra answers this question: min_plus over floats that are not below 0."""
    plain, ring = SEMIRINGS["min_plus"], algebra.semiring
    same = (ring.add, ring.mul, ring.zero) == (plain.add, plain.mul, plain.zero)
    return same and algebra.result.name in ("float32", "float64") and has_compiler() and bool((rows.data >= 0).all())


def by_search(rows: Rows, algebra: Algebra) -> bool:
    """Whether searches from all nodes are expected to be done before tiles, of a graph that is searchable."""
    n = rows.shape[0]
    tiles = row_cost(n, algebra)
    return n >= LEAST and search_cost(rows, tiles) < tiles


def row_cost(n: int, algebra: Algebra) -> float:
    """Nanoseconds that tiles take for a row of the closure, one core, by how wide its vectors are."""
    from tilewise.backends.cpu.runtime.target import host_target

    step = STEP[algebra.partial.itemsize] * 64 / host_target().vector_bytes
    return n * n * step + n * CELL


def rows_worth_searching(W: Array, algebra: Algebra) -> Rows | None:
    """The edges of a dense matrix by rows, where that many are sooner searched."""
    n = len(W)
    if n < LEAST or algebra.result.name not in STEP_OF:
        return None
    if not has_compiler() or np.count_nonzero(algebra.zero != W) * EDGE > row_cost(n, algebra):
        return None  # so many edges that looking at them takes longer than tiles
    rows = Rows.of_dense(W, algebra.zero, nan=False)
    return rows if searchable(rows, algebra) and by_search(rows, algebra) else None


def search_cost(rows: Rows, enough: float = math.inf) -> float:
    """Nanoseconds of a search from one source, as a few evenly spread ones have it; where the first of them show that
    it is above `enough`, the others are not counted. A node of degree d gets a better length about 1 + ln d times: so
    often a random edge is the shortest so far."""
    n = rows.shape[0]
    degree = np.diff(rows.starts)
    total = 0.0
    sources = np.unique(np.linspace(0, n - 1, SAMPLES).astype(int))
    for source in sources:
        seen = np.zeros(n, bool)
        seen[source] = True
        front = np.array([source])
        while front.size and not seen.all():
            cells = rows.cells_of(front)
            met = np.zeros(n, bool)
            met[rows.indices[cells]] = True
            front = np.flatnonzero(met & ~seen)
            seen |= met
        count, edges = int(seen.sum()), float(degree[seen].sum())
        better = count * (1 + math.log(max(1.0, edges / count)))
        total += (EDGE + FARTHER * n) * edges + BETTER * better + LEVEL * count * math.log2(count + 1)
        if total > enough * len(sources):
            break
    return total / len(sources)


def search(rows: Rows, tracks: bool, sources: Array | None = None) -> tuple[Array, Array | None]:
    """Lengths (and the node before each target, −1 for none) by Dijkstra, from all nodes or from `sources`."""
    count = rows.shape[0] if sources is None else len(sources)
    check_room(count * rows.shape[0] * (8 + 8 * tracks), f"a closure of {rows.shape[0]:,} nodes from {count:,} of them")
    from tilewise.backends.cpu.kernels.search.run import search_from

    chosen = np.arange(rows.shape[0]) if sources is None else np.atleast_1d(sources)
    return search_from(rows.starts, rows.indices, rows.data, chosen, tracks)
