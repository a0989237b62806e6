"""The best paths from some nodes, over stored edges alone; and whether closures are faster by a search from every node.

Where no weight improves on the one of mul (none is below 0, for min_plus) a heap takes each node once; over other
weights nodes are taken again until none improves, and a cycle that improves without end is named.
What searches from all nodes cost is counted beforehand: edges and nodes that a few nodes reach. What tiles cost is n³
steps. Both are shared among threads alike, so how many there are does not matter.
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
from tilewise.compose.graph.laws import Progress, one_of, stand_in_for_zero
from tilewise.dispatch.sparse.arrays import Rows
from tilewise.errors import CycleError
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
SMALL = 4 * 1024 * 1024  # bytes; above, free memory is checked first, which takes 0.2 ms


def search(
    rows: Rows, algebra: Algebra, tracks: bool, sources: Array | None = None, progress: Progress | None = None
) -> tuple[Array, Array | None]:
    """Rows of the closure of a graph, those of all nodes or of `sources`; and the node before each target, −1 for none.
    Floats are added in float64."""
    n = rows.shape[0]
    chosen = np.arange(n) if sources is None else sources
    if (needs := len(chosen) * n * (8 + 8 * tracks)) > SMALL:
        check_room(needs, f"a closure of {n:,} nodes from {len(chosen):,} of them")
    stand_in_for_zero(rows.data, n, algebra)  # refuses weights whose sums could leave the range of their dtype
    work, one = _wide(algebra), one_of(algebra)
    ordered = has_order(rows, algebra, one)
    cells = rows.cells
    D, before, ends = search_from(cells, chosen, work, one, tracks=tracks, ordered=ordered, progress=progress)
    for row in np.flatnonzero(ends != DONE)[:1]:
        assert before is not None
        raise cycle_error(_circle(before[row], -2 - int(ends[row])))
    return D, before if tracks else None


def find_cycle(rows: Rows, algebra: Algebra) -> tuple[int, ...]:
    """The nodes of one improving cycle, in walking order from the lowest; empty where there is none."""
    cells, everywhere = rows.cells, np.array([EVERYWHERE])
    found = search_from(cells, everywhere, _wide(algebra), one_of(algebra), tracks=True, ordered=False)
    _, before, ends = found
    return () if before is None or not ends.size or ends[0] == DONE else _circle(before[0], -2 - int(ends[0]))


def cycle_error(nodes: tuple[int, ...], otherwise: str = "its nodes could not be named") -> CycleError:
    """`otherwise`: the text where no nodes are known."""
    named = " → ".join(map(str, (*nodes, nodes[0]))) if nodes else otherwise
    return CycleError(f"no best paths exist: a cycle gets better every time it is walked: {named}", nodes)


def _circle(before: Array, node: int) -> tuple[int, ...]:
    """The circle that the predecessors of a node form, as a walk."""
    walk = [node]
    while (last := int(before[walk[-1]])) != node:
        walk.append(last)
    walk.reverse()
    lowest = walk.index(min(walk))
    return tuple(walk[lowest:] + walk[:lowest])


def _wide(algebra: Algebra) -> Algebra:
    return algebra.semiring.over(DTYPES["float64"]) if algebra.partial.kind == "f" else algebra


def has_order(rows: Rows, algebra: Algebra, one: Number) -> bool:
    """Whether add is min or max and no edge improves on the path it continues: then a heap takes each node once."""
    add, mul = algebra.semiring.add, algebra.semiring.mul
    if not (is_plain(add, "min") or is_plain(add, "max")) or rows.data.dtype.kind == "b":
        return False
    if is_plain(mul, "mul"):  # of weights below 0 the order is not kept
        if not (rows.data >= 0).all():
            return False
    elif not any(is_plain(mul, op) for op in ("add", "min", "max")):
        return False
    improves = np.less if is_plain(add, "min") else np.greater
    return not improves(rows.data, one).any()


def by_search(rows: Rows, algebra: Algebra) -> bool:
    """Whether searches from all nodes are expected to be done before tiles."""
    n = rows.shape[0]
    if n < LEAST or algebra.result.name not in STEP_OF or not has_order(rows, algebra, one_of(algebra)):
        return False
    return search_cost(rows) < row_cost(n, algebra)


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
    if np.count_nonzero(algebra.zero != W) * EDGE > row_cost(n, algebra):
        return None  # so many edges that looking at them takes longer than tiles
    rows = Rows.of_dense(W, algebra.zero, nan=False)
    return rows if by_search(rows, algebra) else None


def search_cost(rows: Rows) -> float:
    """Nanoseconds of a search from one source, as a few evenly spread ones have it, by the nodes and edges they reach.
    A node of degree d gets a better length about 1 + ln d times: so often a random edge is the shortest so far."""
    n, reach = rows.shape[0], SEMIRINGS["lor_land"].over(DTYPES["bool"])
    sources = np.unique(np.linspace(0, n - 1, SAMPLES).astype(int))
    cells = (rows.starts, rows.indices, np.ones(rows.count, bool))
    seen, _, _ = search_from(cells, sources, reach, True, tracks=False, ordered=False)
    counts, edges = seen.sum(1), seen @ np.diff(rows.starts).astype(float)
    better = counts * (1 + np.log(np.maximum(1.0, edges / counts)))
    return float(((EDGE + FARTHER * n) * edges + BETTER * better + LEVEL * counts * np.log2(counts + 1)).mean())
