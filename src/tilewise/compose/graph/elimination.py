"""Closures whose add is not idempotent: sums over all paths, by Kleene's elimination in blocks.

A node k is eliminated once every path through it is counted elsewhere: D[i, j] ⊕= D[i, k] ⊗ D[k, k]* ⊗ D[k, j]. The
star of a value, one ⊕ a ⊕ a⊗a ⊕ …, is 1 / (1 − a) for numbers (a geometric series, where it converges), its logarithm
for logarithms, and otherwise the fixed point of the partial sums: after k terms for the k best lengths, after one for
counts of shortest paths. Without a fixed point the closure does not exist, and the error says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tilewise.algebra.builtin import SEMIRINGS, is_plus_times
from tilewise.algebra.dtypes import Array, dtype_of
from tilewise.algebra.expression import is_plain
from tilewise.algebra.semiring import Algebra
from tilewise.algebra.structured import StructuredAlgebra
from tilewise.backends.cpu.kernels.search.run import walks_from
from tilewise.compose.graph.blocks import close_by_tiles, close_square
from tilewise.compose.graph.laws import Progress, one_of
from tilewise.dispatch.product import matmul
from tilewise.errors import AlgebraError, CycleError, DtypeError

Values = list[Array]  # one array per field; numbers have one field
Operation = Callable[[Sequence[Array], Sequence[Array]], Values]
DENSE = 0.2  # share of cells that are edges; denser graphs are searched as a dense matrix
MANY = 128  # sources; from this many on it pays to drop the edges that no walk needs
ROUNDED = 64  # ulps by which sums along two walks may differ
ROUNDS = 64  # partial sums until a star must have reached its fixed point


@dataclass
class Elimination:
    """A closure in progress."""

    D: Values
    add: Operation
    mul: Operation
    multiply: Operation  # of matrices
    star: Callable[[Values], Values | None]
    zero: Sequence[Any]
    reason: str  # why a star may not exist
    names: Sequence[str] = ("weight",)

    def close_small(self, start: int, stop: int) -> None:
        D = [x[start:stop, start:stop] for x in self.D]
        for k in range(stop - start):
            star = self.star([x[k, k : k + 1] for x in D])
            if star is None:
                held = ", ".join(f"{name} {x[k, k]}" for name, x in zip(self.names, D, strict=True))
                raise CycleError(
                    f"the sum over all paths has no limit: cycles through node {start + k} have {held}; {self.reason}"
                )
            row, left = self.mul(star, [x[k] for x in D]), [x[:, k : k + 1].copy() for x in D]
            for x, values, own, zero in zip(D, row, star, self.zero, strict=True):
                values[k], x[:, k] = own[0], zero
            made = self.add(D, self.mul(left, [values[None] for values in row]))
            for x, values, own in zip(D, made, row, strict=True):
                x[...] = values
                x[k] = own

    def relax_through(self, K: slice, others: list[slice]) -> None:
        star = self._part(K, K)
        rows = {part.start: self.multiply(star, self._part(K, part)) for part in others}
        for part, cols in product(others, others):
            self._put(
                part, cols, self.add(self._part(part, cols), self.multiply(self._part(part, K), rows[cols.start]))
            )
        for part in others:
            self._put(K, part, rows[part.start])
            self._put(part, K, self.multiply(self._part(part, K), star))

    def _part(self, rows: slice, cols: slice) -> Values:
        return [x[rows, cols] for x in self.D]

    def _put(self, rows: slice, cols: slice, values: Values) -> None:
        for x, made in zip(self.D, values, strict=True):
            x[rows, cols] = made


def eliminate(W: Array, algebra: Algebra, progress: Progress | None) -> Array:
    """The closure of numbers; NaN weights propagate."""
    dtype, ring = algebra.partial, algebra.semiring
    D = W.astype(dtype.numpy, copy=True)
    one = np.full(1, one_of(algebra), dtype.numpy)
    add, mul = _single(algebra.add), _single(algebra.mul)
    star, reason = _fixed_point(add, mul, [one]), f"the powers of it do not settle over {ring}"
    if is_plus_times(ring):
        if dtype.kind == "c" or (dtype.kind != "u" and (D < 0).any()):
            return _inverse(D)
        star, reason = _geometric, "a geometric series needs less than 1"
        if dtype.is_integer:
            reason = "among integers only graphs without cycles have one"
    elif is_plain(ring.add, "logaddexp") and is_plain(ring.mul, "add"):
        star, reason = _logarithmic, "the logarithm of a geometric series needs one below 0"

    def multiply(x: Sequence[Array], y: Sequence[Array]) -> Values:
        return [matmul(x[0], y[0], semiring=ring)]

    with np.errstate(all="ignore"):
        close_square(Elimination([D], add, mul, multiply, star, [algebra.zero], reason), 0, len(D), progress)
    return D


def k_shortest_walks(
    W: Values, algebra: StructuredAlgebra, chosen: Array | None, progress: Progress | None
) -> Values | None:
    """The k shortest walks by a search from each node; None if a weight is below 0 or not float32 or float64."""
    from tilewise.algebra.structured_builtin import k_best

    k = len(W)
    if not algebra.semiring.name.endswith("_best") or algebra.semiring != k_best(k) or algebra.dtypes[0].itemsize < 4:
        return None
    if algebra.dtypes[0].kind != "f" or not all((x >= 0).all() for x in W):
        return None
    edges = [np.isfinite(x) for x in W]
    sources = np.arange(len(W[0])) if chosen is None else chosen
    if len(sources) >= MANY and edges[0].sum() >= DENSE * edges[0].size:
        edges[0] &= _possible_edges(W[0], k)
    if any(x.any() for x in edges[1:]) or edges[0].sum() < DENSE * edges[0].size:
        cells = np.nonzero(np.stack(edges, 2))
        starts = np.searchsorted(cells[0], np.arange(len(W[0]) + 1))
        lists = walks_from((starts, cells[1], np.stack(W, 2)[cells]), sources, k, progress)
    else:
        lists = walks_from(W[0], sources, k, progress)
    return [np.ascontiguousarray(x) for x in np.moveaxis(lists, 2, 0)]


def _possible_edges(W: Array, k: int) -> Array:
    """Which edges may be in one of the k shortest walks between two nodes. For an edge u→v, the shortest walks u→x→…→v
    with x in each of k groups of nodes are k walks: an edge longer than all of them is not needed."""
    algebra = SEMIRINGS["min_plus"].over(dtype_of(W.dtype))
    D, _ = close_by_tiles(W, algebra, False, None)
    bound = np.zeros_like(W)
    for group in np.array_split(np.arange(len(W)), k):
        np.maximum(bound, matmul(W[:, group], D[group], semiring="min_plus"), out=bound)
    return np.asarray(bound * (1 + ROUNDED * np.finfo(W.dtype).eps) >= W)


def eliminate_fields(W: Values, algebra: StructuredAlgebra, progress: Progress | None) -> Values:
    """The closure of values with fields."""
    from tilewise.algebra.structured_builtin import dual
    from tilewise.dispatch.structured.product import structured_matmul

    ring = algebra.semiring
    D = [x.astype(dtype.numpy, copy=True) for x, dtype in zip(W, algebra.dtypes, strict=True)]
    one = _one_of_fields(algebra)

    def add(x: Sequence[Array], y: Sequence[Array]) -> Values:
        return list(algebra.evaluate(ring.add, x=x, y=y))

    def mul(x: Sequence[Array], y: Sequence[Array]) -> Values:
        return list(algebra.evaluate(ring.mul, x=x, y=y))

    def multiply(x: Sequence[Array], y: Sequence[Array]) -> Values:
        return list(structured_matmul(tuple(x), tuple(y), ring))

    star = _fixed_point(add, mul, one)
    reason = "no path is best where one of them improves, and paths are without number where one changes nothing"
    if ring == dual:
        if (D[0] < 0).any():
            inverse = _inverse(D[0])
            return [inverse, inverse @ D[1] @ inverse]
        star, reason = _dual, "a geometric series needs a value below 1"
    with np.errstate(all="ignore"):
        closing = Elimination(D, add, mul, multiply, star, algebra.zero, reason, ring.fields)
        close_square(closing, 0, len(D[0]), progress)
    return D


def _single(function: Callable[..., Array]) -> Operation:
    return lambda x, y: [function(x[0], y[0])]


def _fixed_point(add: Operation, mul: Operation, one: Values) -> Callable[[Values], Values | None]:
    """The star as the fixed point of x = one ⊕ a ⊗ x; None if it is not reached in ROUNDS."""

    def star(a: Values) -> Values | None:
        total = one
        for _ in range(ROUNDS):
            following = add(one, mul(a, total))
            if all(np.array_equal(x, y) for x, y in zip(total, following, strict=True)):
                return total
            total = following
        return None

    return star


def _geometric(a: Values) -> Values | None:
    x = a[0]
    if x.dtype.kind in "iu":
        return [np.ones_like(x)] if x[0] == 0 else None
    return [1 / (1 - x)] if x[0] < 1 else None


def _logarithmic(a: Values) -> Values | None:
    return [-np.log1p(-np.exp(a[0]))] if a[0][0] < 0 else None


def _dual(a: Values) -> Values | None:
    inner = _geometric(a[:1])
    return None if inner is None else [inner[0], inner[0] * a[1] * inner[0]]


def _inverse(W: Array) -> Array:
    """1 + W + W² + … of weights of either sign: the inverse of 1 − W, where the spectral radius of W is below 1."""
    if W.dtype.kind == "i":
        raise DtypeError(f"weights below 0 of {W.dtype} have no sum over all paths in general: convert them to float64")
    radius = float(abs(np.linalg.eigvals(W)).max(initial=0.0))
    if not radius < 1:
        raise CycleError(f"the sum over all paths has no limit: the spectral radius of W is {radius:.6g}, not below 1")
    return np.asarray(np.linalg.inv(np.eye(len(W), dtype=W.dtype) - W))


def _one_of_fields(algebra: StructuredAlgebra) -> Values:
    """The neutral element of mul; each of its fields is 0, 1 or the zero's."""
    choices = [dict.fromkeys((0, 1, zero)) for zero in algebra.zero]
    kinds = [dtype.numpy for dtype in algebra.dtypes]
    tried = [np.array(x, kind)[:, None] for x, kind in zip(zip(*product(*choices), strict=True), kinds, strict=True)]
    witnesses = [(np.array([[2, 3, 5, 7]]) + 15 * at).astype(kind) for at, kind in enumerate(kinds)]  # apart, ascending
    made = algebra.evaluate(algebra.semiring.mul, x=tried, y=witnesses)
    right = np.logical_and.reduce([(x == y).all(1) for x, y in zip(made, witnesses, strict=True)])
    if not right.any():
        raise AlgebraError(f"closure needs a one with mul(one, x) == x, and {algebra.semiring} has none among 0 and 1")
    at = int(right.argmax())
    return [x[at] for x in tried]
