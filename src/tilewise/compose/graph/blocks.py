"""Floyd–Warshall in blocks, on the host.

For each diagonal block K: close it; multiply it into its row and its column of blocks; then relax all other cells
through K: D ⊕= D[:, K] ⊗ D[K, :], a product for each corner that K leaves. No cell is computed twice in a round, and
nearly all of the n³ steps are in those products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NoReturn

import numpy as np

from tilewise.algebra.expression import Number
from tilewise.algebra.semiring import Algebra
from tilewise.backends.cpu.kernels.floyd.run import closer
from tilewise.compose.graph.cycles import find_cycle
from tilewise.compose.graph.keywords import Progress
from tilewise.compose.graph.laws import kept_apart, one_of, stand_in_for_zero
from tilewise.compose.graph.paths import NONE
from tilewise.compose.graph.predecessors import repair
from tilewise.dispatch.product import matmul
from tilewise.errors import CycleError

Array = np.ndarray[Any, np.dtype[Any]]
SIDE = 64  # of a square that one kernel closes
SIDES = (240, 80, SIDE)  # of blocks, whole register tiles of 5, 6 or 8 rows: wide ones read and write D less often
LEAST = 3  # blocks of a square
BAND = 1024  # rows whose predecessors are updated at a time


def close_by_tiles(W: Array, work: Algebra, tracks: bool, progress: Progress | None) -> tuple[Array, Array | None]:
    """The closure of W in blocks, and predecessors."""
    graph = Graph.of(W, work, tracks)
    edges = graph.D.copy() if tracks else None
    _close(graph, 0, len(graph.D), progress)
    if progress is not None and _one_block(len(graph.D)):
        progress(1, 1)
    if graph.before is not None and edges is not None:
        repair(graph.before, edges, graph.algebra, graph.one, graph.absent)
    return graph.finished(), graph.before


def close_block(D: Array, algebra: Algebra, one: Number, first: int = 0) -> None:
    """Close a square of a larger closure in place; its nodes are numbered from `first` there."""
    assert not isinstance(algebra.zero, complex)
    try:
        _close(Graph(D.copy(), D, None, algebra, one, algebra.zero, algebra), 0, len(D))
    except CycleError as error:
        nodes = tuple(node + first for node in error.nodes)
        raise cycle_error(nodes, f"one among nodes {first} to {first + len(D) - 1}") from None


def cycle_error(nodes: tuple[int, ...], otherwise: str) -> CycleError:
    """`otherwise`: the text where no nodes are known."""
    named = " → ".join(map(str, (*nodes, nodes[0]))) if nodes else otherwise
    return CycleError(f"no best paths exist: a cycle gets better every time it is walked: {named}", nodes)


def start_block(D: Array, algebra: Algebra, one: Number, first: int | None) -> None:
    """Weights in place as the closure starts from them: NaN is no edge, and staying at a node costs `one`. `first`: the
    column of the first row's own node, None where no node of these rows is among the columns."""
    with np.errstate(all="ignore"):
        algebra.add(D, np.full(1, algebra.zero, D.dtype), out=D)
        if first is not None:
            rows = np.arange(len(D))
            D[rows, rows + first] = algebra.add(D[rows, rows + first], np.full(1, one, D.dtype))


@dataclass
class Graph:
    """A closure in progress: distances in the accumulator's dtype, and predecessors."""

    W: Array
    D: Array
    before: Array | None
    algebra: Algebra
    one: Number
    absent: bool | int | float  # stands for "no edge", and is the zero of `algebra`
    given: Algebra  # the same with the zero that people write
    close: Callable[[Array], None] = field(init=False)  # a small square, in place

    def __post_init__(self) -> None:
        self.close = closer(self.algebra)

    @classmethod
    def of(cls, W: Array, algebra: Algebra, tracks: bool) -> Graph:
        partial = algebra.partial.numpy
        one, absent = one_of(algebra), stand_in_for_zero(W, algebra)
        D = np.empty(W.shape, partial)
        given = W != 0 if algebra.partial.kind == "b" and W.dtype.kind != "b" else W
        with np.errstate(all="ignore"):
            if given.dtype != partial:
                np.copyto(D, given, casting="unsafe")
                given = D
            algebra.add(given, np.full(1, algebra.zero, partial), out=D)  # NaN is no edge
        if absent != algebra.zero:
            D[algebra.zero == D] = absent
        before: Array | None = None
        if tracks:
            before = np.where(absent == D, NONE, np.arange(len(D))[:, None])
            np.fill_diagonal(before, NONE)
        diagonal = D.ravel()[:: len(D) + 1] if len(D) else D.ravel()
        with np.errstate(all="ignore"):
            diagonal[...] = algebra.add(diagonal, np.full(1, one, partial))
        return cls(W, D, before, kept_apart(algebra, absent), one, absent, algebra)

    def finished(self) -> Array:
        """The closure, with the semiring's zero for "no path"."""
        D, zero = self.D, self.given.zero
        if self.absent != zero:  # half the range stood for it, and negative weights may have reduced it
            far = self.absent // 2 < D if self.absent > 0 else -(-self.absent // 2) > D
            D = np.where(far, np.asarray(zero, D.dtype), D)
        return D

    def check_diagonal(self, start: int, stop: int) -> None:
        """A node that reaches itself better than by staying is on an improving cycle."""
        changed = self.D.diagonal()[start:stop] != self.one
        if not changed.any():
            return
        worse = np.flatnonzero(changed)
        self.raise_cycle(f"one through node {start + int(worse[0])}")

    def raise_cycle(self, otherwise: str = "its nodes could not be named") -> NoReturn:
        raise cycle_error(find_cycle(self.W, self.given, self.one), otherwise)


def _close(graph: Graph, start: int, stop: int, progress: Progress | None = None) -> None:
    """Close the square of nodes start to stop, block by block."""
    n = stop - start
    if _one_block(n):
        _close_small(graph, start, stop)
        return
    side = next((side for side in SIDES if n >= LEAST * side), SIDE)
    count = max(2, round(n / side))  # what is left over is the last block's: a narrow one would be slow
    widest = max(side, n - (count - 1) * side)
    row, column = np.empty((widest, n), graph.D.dtype), np.empty((n, widest), graph.D.dtype)
    for number in range(count):
        k = start + number * side
        K = slice(k, k + side if number < count - 1 else stop)
        _close(graph, K.start, K.stop)
        graph.check_diagonal(K.start, K.stop)
        others = [part for part in (slice(start, K.start), slice(K.stop, stop)) if part.start < part.stop]
        _round(graph, K, others, row[: K.stop - k], column.reshape(-1)[: n * (K.stop - k)].reshape(n, -1))
        if progress is not None:
            progress(number + 1, count)


def _one_block(n: int) -> bool:
    """Whether so many nodes are closed by one kernel, not block by block."""
    return n < SIDE + SIDE // 2


def _close_small(graph: Graph, start: int, stop: int) -> None:
    D = graph.D[start:stop, start:stop]
    if graph.before is None:
        graph.close(D)
    else:
        before = graph.before[start:stop, start:stop]
        with np.errstate(all="ignore"):
            for k in range(stop - start):
                _improve(graph, D, before, graph.algebra.mul(D[:, k, None], D[None, k, :]), before[k][None])
    graph.check_diagonal(start, stop)


def _round(graph: Graph, K: slice, others: list[slice], row: Array, column: Array) -> None:
    """Relax all other cells of a square through K, a closed block; `row` and `column` are workspace for K's panels."""
    if graph.before is not None:
        for part in others:
            _tracked(graph, K, K, part)
            _tracked(graph, part, K, K)
        for rows, cols in product(others, others):
            _tracked(graph, rows, K, cols)
        return
    D, ring, start = graph.D, graph.algebra.semiring, min(K.start, others[0].start)
    shifted = [slice(part.start - start, part.stop - start) for part in others]
    for part, there in zip(others, shifted, strict=True):
        # first along K itself, whose diagonal is the one of mul: what was there is among the terms
        matmul(D[K, K], D[K, part], semiring=ring, out=row[:, there])
        matmul(D[part, K], D[K, K], semiring=ring, out=column[there])
        D[K, part], D[part, K] = row[:, there], column[there]
    for (rows, down), (cols, along) in product(zip(others, shifted, strict=True), repeat=2):
        matmul(column[down], row[:, along], semiring=ring, out=D[rows, cols], accumulate=True)


def _tracked(graph: Graph, rows: slice, K: slice, cols: slice) -> None:
    """D[rows, cols] ⊕= D[rows, K] ⊗ D[K, cols], and predecessors."""
    assert graph.before is not None
    D, before, ring = graph.D, graph.before, graph.algebra.semiring
    left, right, steps = D[rows, K].copy(), D[K, cols].copy(), before[K, cols].copy()
    for top in range(rows.start, rows.stop, BAND):
        band = slice(top, min(top + BAND, rows.stop))
        part = left[top - rows.start : band.stop - rows.start]
        made, arg = matmul(part, right, semiring=ring, return_arg=True)
        came = np.take_along_axis(steps, np.maximum(arg, 0), 0)
        _improve(graph, D[band, cols], before[band, cols], made, came)


def _improve(graph: Graph, D: Array, before: Array, made: Array, came: Array) -> None:
    """Store what is better, and its predecessors."""
    total = graph.algebra.add(D, made)
    changed = total != D
    np.copyto(D, total)
    np.copyto(before, np.broadcast_to(came, before.shape), where=changed)
