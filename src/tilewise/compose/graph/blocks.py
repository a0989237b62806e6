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
from tilewise.compose.graph.laws import Progress, algebra_with_zero, one_of, sentinel_of
from tilewise.compose.graph.paths import NONE
from tilewise.compose.graph.predecessors import repair
from tilewise.compose.graph.search import cycle_error, find_cycle
from tilewise.dispatch.product import matmul
from tilewise.dispatch.sparse.arrays import Rows
from tilewise.errors import CycleError

SIDE = 64  # nodes of the square that one kernel closes
SIDES = (240, 80, SIDE)  # block sizes, multiples of MR = 5, 6 or 8; wide blocks read and write D less often
LEAST = 3  # blocks that a square is cut into, at least
BAND = 1024  # rows whose predecessors are updated at a time


def close_by_tiles(W: Array, work: Algebra, tracks: bool, progress: Progress | None) -> tuple[Array, Array | None]:
    """The closure of W in blocks, and predecessors if `tracks`."""
    graph = Graph.of(W, work, tracks)
    close_square(graph, 0, len(graph.D), progress)
    if graph.predecessors is not None:
        repair(graph.predecessors, W, work)
    return graph.finished(), graph.predecessors


def close_block(D: Array, algebra: Algebra, one: Number, first: int = 0) -> None:
    """Close a diagonal block of a larger closure in place; `first`: the number of its first node there."""
    assert not isinstance(algebra.zero, complex)
    try:
        close_square(Graph(D.copy(), D, None, algebra, one, algebra.zero, algebra), 0, len(D))
    except CycleError as error:
        nodes = tuple(node + first for node in error.nodes)
        raise cycle_error(nodes, f"one among nodes {first} to {first + len(D) - 1}") from None


def start_block(D: Array, algebra: Algebra, one: Number, first: int | None) -> None:
    """Initialise rows of D in place: NaN becomes the zero, and ⊕= `one` on the diagonal. `first`: the column of the
    diagonal cell of the first row, None for a block off the diagonal."""
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
    predecessors: Array | None
    algebra: Algebra
    one: Number
    absent: bool | int | float  # sentinel for "no edge" in D, and the zero of `algebra`
    given: Algebra  # the caller's, with its own zero
    close: Callable[[Array], None] = field(init=False)  # kernel that closes a small square in place

    def __post_init__(self) -> None:
        self.close = closer(self.algebra)

    @classmethod
    def of(cls, W: Array, algebra: Algebra, tracks: bool) -> Graph:
        partial = algebra.partial.numpy
        one, absent = one_of(algebra), sentinel_of(W, len(W), algebra)
        D = np.empty(W.shape, partial)
        given = W != 0 if algebra.partial.kind == "b" and W.dtype.kind != "b" else W
        with np.errstate(all="ignore"):
            if given.dtype != partial:
                np.copyto(D, given, casting="unsafe")
                given = D
            algebra.add(given, np.full(1, algebra.zero, partial), out=D)  # NaN is no edge
        if absent != algebra.zero:
            D[algebra.zero == D] = absent
        predecessors: Array | None = None
        if tracks:
            predecessors = np.where(absent == D, NONE, np.arange(len(D))[:, None])
            np.fill_diagonal(predecessors, NONE)
        diagonal = D.ravel()[:: len(D) + 1] if len(D) else D.ravel()
        with np.errstate(all="ignore"):
            diagonal[...] = algebra.add(diagonal, np.full(1, one, partial))
        return cls(W, D, predecessors, algebra_with_zero(algebra, absent), one, absent, algebra)

    def finished(self) -> Array:
        """D with the sentinel replaced by the semiring's zero."""
        D, zero = self.D, self.given.zero
        if self.absent != zero:  # half the dtype's range, which negative weights may have reduced
            far = self.absent // 2 < D if self.absent > 0 else -(-self.absent // 2) > D
            D = np.where(far, np.asarray(zero, D.dtype), D)
        return D

    def check_diagonal(self, start: int, stop: int) -> None:
        """Raise CycleError if a diagonal cell is better than `one`: its node is on an improving cycle."""
        changed = self.D.diagonal()[start:stop] != self.one
        if not changed.any():
            return
        improved = np.flatnonzero(changed)
        self.raise_cycle(f"one through node {start + int(improved[0])}")

    def raise_cycle(self, otherwise: str = "its nodes could not be named") -> NoReturn:
        rows = Rows.of_dense(self.W, self.given.zero, nan=False)
        raise cycle_error(find_cycle(rows, self.given), otherwise)

    def close_small(self, start: int, stop: int) -> None:
        D = self.D[start:stop, start:stop]
        if self.predecessors is None:
            self.close(D)
        else:
            table = self.predecessors[start:stop, start:stop]
            with np.errstate(all="ignore"):
                for k in range(stop - start):
                    _improve(self, D, table, self.algebra.mul(D[:, k, None], D[None, k, :]), table[k][None])
        self.check_diagonal(start, stop)

    def relax_through(self, K: slice, others: list[slice]) -> None:
        """Relax all other cells of a square through the closed block K. The diagonal of D[K, K] is the one of mul, so
        the products with it include the old values of K's row and column."""
        self.check_diagonal(K.start, K.stop)
        if self.predecessors is not None:
            for part in others:
                _relax_with_predecessors(self, K, K, part)
                _relax_with_predecessors(self, part, K, K)
            for rows, cols in product(others, others):
                _relax_with_predecessors(self, rows, K, cols)
            return
        D, ring = self.D, self.algebra.semiring
        across = [matmul(D[K, K], D[K, part], semiring=ring) for part in others]
        down = [matmul(D[part, K], D[K, K], semiring=ring) for part in others]
        for part, row, column in zip(others, across, down, strict=True):
            D[K, part], D[part, K] = row, column
        for (rows, column), (cols, row) in product(zip(others, down, strict=True), zip(others, across, strict=True)):
            matmul(column, row, semiring=ring, out=D[rows, cols], accumulate=True)


class BlockClosure(Protocol):
    """The two steps of a blocked closure: close a square that is not cut further; relax through a closed block."""

    def close_small(self, start: int, stop: int) -> None: ...

    def relax_through(self, K: slice, others: list[slice]) -> None: ...


def close_square(graph: BlockClosure, start: int, stop: int, progress: Progress | None = None) -> None:
    """Close the square of nodes start to stop, block by block."""
    n = stop - start
    side = next((side for side in SIDES if n >= LEAST * side), SIDE)
    count = max(2, round(n / side)) if n >= SIDE + SIDE // 2 else 1
    for number in range(count):  # the last block takes the remainder: a narrow block would be slow
        K = slice(start + number * side, start + (number + 1) * side if number < count - 1 else stop)
        if count == 1:
            graph.close_small(start, stop)
        else:
            close_square(graph, K.start, K.stop)
            others = [part for part in (slice(start, K.start), slice(K.stop, stop)) if part.start < part.stop]
            graph.relax_through(K, others)
        if progress is not None:
            progress(number + 1, count)


def _relax_with_predecessors(graph: Graph, rows: slice, K: slice, cols: slice) -> None:
    """D[rows, cols] ⊕= D[rows, K] ⊗ D[K, cols], with predecessors."""
    assert graph.predecessors is not None
    D, predecessors, ring = graph.D, graph.predecessors, graph.algebra.semiring
    left, right, steps = D[rows, K].copy(), D[K, cols].copy(), predecessors[K, cols].copy()
    for top in range(rows.start, rows.stop, BAND):
        band = slice(top, min(top + BAND, rows.stop))
        part = left[top - rows.start : band.stop - rows.start]
        made, arg = matmul(part, right, semiring=ring, return_arg=True)
        made_predecessors = np.take_along_axis(steps, np.maximum(arg, 0), 0)
        _improve(graph, D[band, cols], predecessors[band, cols], made, made_predecessors)


def _improve(graph: Graph, D: Array, predecessors: Array, made: Array, made_predecessors: Array) -> None:
    """D ⊕= made; cells that change take the predecessors of `made`."""
    total = graph.algebra.add(D, made)
    changed = total != D
    np.copyto(D, total)
    np.copyto(predecessors, np.broadcast_to(made_predecessors, predecessors.shape), where=changed)
