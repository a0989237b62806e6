"""Rows of a closure by search over stored edges: Dijkstra, or Bellman–Ford if a weight improves on the one of mul (is
below 0, for min_plus), which names an improving cycle; and the cost model that compares searches from every node with
blocks.

A search is counted by the edges and nodes that a few sampled nodes reach, blocks by n³ steps. Both are divided among
threads, so their number does not matter.
"""

from __future__ import annotations

import numpy as np

from tilewise.algebra.builtin import SEMIRINGS
from tilewise.algebra.dtypes import DTYPES, Array
from tilewise.algebra.expression import Number, is_plain
from tilewise.algebra.semiring import Algebra
from tilewise.backends.cpu.kernels.search.orders import DONE
from tilewise.backends.cpu.kernels.search.run import search_from
from tilewise.backends.cpu.kernels.search.text import EVERYWHERE
from tilewise.compose.graph.laws import Progress, one_of, sentinel_of
from tilewise.dispatch.sparse.arrays import Rows
from tilewise.errors import CycleError
from tilewise.system.memory import check_room

# Nanoseconds of one core, fitted within 20 % to 113 drawn graphs of 300 to 20,000 nodes (uniform, grids, few large
# degrees, integer weights): per edge read; per edge and node of the graph (cache misses on the lengths); per improved
# length; per level of the heap when a node is popped
EDGE, FARTHER, BETTER, LEVEL = 1.5, 6e-5, 17.0, 2.9
# Nanoseconds of blocks: per step by itemsize, with vectors of 64 bytes; per cell before and after
STEP, CELL = {4: 0.036, 8: 0.075}, 15.0
STEP_OF = ("float32", "float64")
LEAST = 256  # nodes; with fewer, blocks are never slower
SAMPLES = 8
SMALL = 4 * 1024 * 1024  # bytes; for more, free memory is checked first, which takes 0.2 ms


def search(
    rows: Rows, algebra: Algebra, tracks: bool, sources: Array | None = None, progress: Progress | None = None
) -> tuple[Array, Array | None]:
    """Rows of the closure, of all nodes or of `sources`, and their predecessors if `tracks`. Floats are added in
    float64."""
    n = rows.shape[0]
    chosen = np.arange(n) if sources is None else sources
    if (needs := len(chosen) * n * (8 + 8 * tracks)) > SMALL:
        check_room(needs, f"a closure of {n:,} nodes from {len(chosen):,} of them")
    sentinel_of(rows.data, n, algebra)  # raises if sums of weights could overflow
    work, one = _wide(algebra), one_of(algebra)
    ordered = allows_dijkstra(rows, algebra, one)
    cells = rows.cells
    D, predecessors, ends = search_from(cells, chosen, work, one, tracks=tracks, ordered=ordered, progress=progress)
    for row in np.flatnonzero(ends != DONE)[:1]:
        assert predecessors is not None
        raise cycle_error(_cycle_from(predecessors[row], -2 - int(ends[row])))
    return D, predecessors if tracks else None


def find_cycle(rows: Rows, algebra: Algebra) -> tuple[int, ...]:
    """The nodes of one improving cycle, in walking order from the lowest; empty where there is none."""
    cells, everywhere = rows.cells, np.array([EVERYWHERE])
    found = search_from(cells, everywhere, _wide(algebra), one_of(algebra), tracks=True, ordered=False)
    _, table, ends = found
    return () if table is None or not ends.size or ends[0] == DONE else _cycle_from(table[0], -2 - int(ends[0]))


def cycle_error(nodes: tuple[int, ...], otherwise: str = "its nodes could not be named") -> CycleError:
    """`otherwise`: the text where no nodes are known."""
    named = " → ".join(map(str, (*nodes, nodes[0]))) if nodes else otherwise
    return CycleError(f"no best paths exist: a cycle gets better every time it is walked: {named}", nodes)


def _cycle_from(predecessors: Array, node: int) -> tuple[int, ...]:
    """The cycle of predecessors that contains `node`, in walking order from its lowest node."""
    walk = [node]
    while (last := int(predecessors[walk[-1]])) != node:
        walk.append(last)
    walk.reverse()
    lowest = walk.index(min(walk))
    return tuple(walk[lowest:] + walk[:lowest])


def _wide(algebra: Algebra) -> Algebra:
    return algebra.semiring.over(DTYPES["float64"]) if algebra.partial.kind == "f" else algebra


def allows_dijkstra(rows: Rows, algebra: Algebra, one: Number) -> bool:
    """Whether add is min or max and no edge improves on the path it extends, so that Dijkstra's search is right."""
    add, mul = algebra.semiring.add, algebra.semiring.mul
    if not (is_plain(add, "min") or is_plain(add, "max")) or rows.data.dtype.kind == "b":
        return False
    if is_plain(mul, "mul"):  # a weight below 0 reverses the order
        if not (rows.data >= 0).all():
            return False
    elif not any(is_plain(mul, op) for op in ("add", "min", "max")):
        return False
    improves = np.less if is_plain(add, "min") else np.greater
    return not improves(rows.data, one).any()


def search_is_faster(rows: Rows, algebra: Algebra) -> bool:
    """Whether searches from all nodes are expected to be faster than blocks."""
    n = rows.shape[0]
    if n < LEAST or algebra.result.name not in STEP_OF or not allows_dijkstra(rows, algebra, one_of(algebra)):
        return False
    return search_cost(rows) < row_cost(n, algebra)


def row_cost(n: int, algebra: Algebra) -> float:
    """Nanoseconds of a row of the closure by blocks, on one core with this machine's vector width."""
    from tilewise.backends.cpu.runtime.target import host_target

    step = STEP[algebra.partial.itemsize] * 64 / host_target().vector_bytes
    return n * n * step + n * CELL


def sparse_enough_to_search(W: Array, algebra: Algebra) -> Rows | None:
    """The edges of a dense matrix by rows if searching them is expected to be faster than blocks, else None."""
    n = len(W)
    if n < LEAST or algebra.result.name not in STEP_OF:
        return None
    if np.count_nonzero(algebra.zero != W) * EDGE > row_cost(n, algebra):
        return None  # reading the edges alone would take longer than blocks
    rows = Rows.of_dense(W, algebra.zero, nan=False)
    return rows if search_is_faster(rows, algebra) else None


def search_cost(rows: Rows) -> float:
    """Nanoseconds of a search from one source: the mean over a few evenly spread ones, by the nodes and edges they
    reach. The length of a node of degree d improves about 1 + ln d times, as in random order."""
    n, reach = rows.shape[0], SEMIRINGS["lor_land"].over(DTYPES["bool"])
    sources = np.unique(np.linspace(0, n - 1, SAMPLES).astype(int))
    cells = (rows.starts, rows.indices, np.ones(rows.count, bool))
    seen, _, _ = search_from(cells, sources, reach, True, tracks=False, ordered=False)
    counts, edges = seen.sum(1), seen @ np.diff(rows.starts).astype(float)
    better = counts * (1 + np.log(np.maximum(1.0, edges / counts)))
    return float(((EDGE + FARTHER * n) * edges + BETTER * better + LEVEL * counts * np.log2(counts + 1)).mean())
