"""Floyd–Warshall in blocks, on the host.

For each diagonal block K: close it; multiply it into its row and its column of blocks; then relax all other cells
through K: D ⊕= D[:, K] ⊗ D[K, :], a product for each corner that K leaves. No cell is computed twice in a round, and
nearly all of the n³ steps are in those products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import NoReturn, Protocol

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.algebra.expression import Number
from tilewise.algebra.semiring import Algebra
from tilewise.backends.cpu.kernels.floyd.run import closer
from tilewise.compose.graph.laws import Progress, kept_apart, one_of, stand_in_for_zero
from tilewise.compose.graph.paths import NONE
from tilewise.compose.graph.predecessors import repair
from tilewise.compose.graph.search import cycle_error, find_cycle
from tilewise.dispatch.product import matmul
from tilewise.dispatch.sparse.arrays import Rows
from tilewise.errors import CycleError

SIDE = 64  # of a square that one kernel closes
SIDES = (240, 80, SIDE)  # of blocks, whole register tiles of 5, 6 or 8 rows: wide ones read and write D less often
LEAST = 3  # blocks of a square
BAND = 1024  # rows whose predecessors are updated at a time


def close_by_tiles(W: Array, work: Algebra, tracks: bool, progress: Progress | None) -> tuple[Array, Array | None]:
    """The closure of W in blocks, and predecessors."""
    graph = Graph.of(W, work, tracks)
    close_square(graph, 0, len(graph.D), progress)
    if graph.before is not None:
        repair(graph.before, W, work)
    return graph.finished(), graph.before


def close_block(D: Array, algebra: Algebra, one: Number, first: int = 0) -> None:
    """Close a square of a larger closure in place; its nodes are numbered from `first` there."""
    assert not isinstance(algebra.zero, complex)
    try:
        close_square(Graph(D.copy(), D, None, algebra, one, algebra.zero, algebra), 0, len(D))
    except CycleError as error:
        nodes = tuple(node + first for node in error.nodes)
        raise cycle_error(nodes, f"one among nodes {first} to {first + len(D) - 1}") from None


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
        one, absent = one_of(algebra), stand_in_for_zero(W, len(W), algebra)
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
        rows = Rows.of_dense(self.W, self.given.zero, nan=False)
        raise cycle_error(find_cycle(rows, self.given), otherwise)

    def close_small(self, start: int, stop: int) -> None:
        D = self.D[start:stop, start:stop]
        if self.before is None:
            self.close(D)
        else:
            before = self.before[start:stop, start:stop]
            with np.errstate(all="ignore"):
                for k in range(stop - start):
                    _improve(self, D, before, self.algebra.mul(D[:, k, None], D[None, k, :]), before[k][None])
        self.check_diagonal(start, stop)

    def relax_through(self, K: slice, others: list[slice]) -> None:
        """All other cells of a square through K, a closed block. D[K, K] has the one of mul along its diagonal: what
        was in its row and column is among the terms."""
        self.check_diagonal(K.start, K.stop)
        if self.before is not None:
            for part in others:
                _tracked(self, K, K, part)
                _tracked(self, part, K, K)
            for rows, cols in product(others, others):
                _tracked(self, rows, K, cols)
            return
        D, ring = self.D, self.algebra.semiring
        across = [matmul(D[K, K], D[K, part], semiring=ring) for part in others]
        down = [matmul(D[part, K], D[K, K], semiring=ring) for part in others]
        for part, row, column in zip(others, across, down, strict=True):
            D[K, part], D[part, K] = row, column
        for (rows, column), (cols, row) in product(zip(others, down, strict=True), zip(others, across, strict=True)):
            matmul(column, row, semiring=ring, out=D[rows, cols], accumulate=True)


class Closing(Protocol):
    """A closure in progress: what is done to a square that is not cut further, and through a closed block."""

    def close_small(self, start: int, stop: int) -> None: ...

    def relax_through(self, K: slice, others: list[slice]) -> None: ...


def close_square(graph: Closing, start: int, stop: int, progress: Progress | None = None) -> None:
    """Close the square of nodes start to stop, block by block."""
    n = stop - start
    side = next((side for side in SIDES if n >= LEAST * side), SIDE)
    count = max(2, round(n / side)) if n >= SIDE + SIDE // 2 else 1
    for number in range(count):  # what is left over is the last block's: a narrow one would be slow
        K = slice(start + number * side, start + (number + 1) * side if number < count - 1 else stop)
        if count == 1:
            graph.close_small(start, stop)
        else:
            close_square(graph, K.start, K.stop)
            others = [part for part in (slice(start, K.start), slice(K.stop, stop)) if part.start < part.stop]
            graph.relax_through(K, others)
        if progress is not None:
            progress(number + 1, count)


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
