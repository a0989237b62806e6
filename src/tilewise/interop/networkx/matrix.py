"""A graph as a matrix of weights, its closure, and lengths in NetworkX's own types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import networkx as nx
import numpy as np

from tilewise.compose.graph.closure import closure
from tilewise.dispatch.product import matmul
from tilewise.errors import CycleError

Matrix = np.ndarray[Any, np.dtype[Any]]
Weight = str | Callable[[Any, Any, Any], Any] | None

EXACT = {"float64": 2**53, "float32": 2**24}
PLAIN = (int, float, np.integer, np.floating)


class Weights:
    """A graph as a matrix: `matrix[u, v]` is the smallest weight of the edges from u to v, ∞ without one.

    float32 if every length is an integer that it holds exactly. Weights that float64 cannot hold are left to NetworkX,
    and so are infinite weights, which NetworkX treats as edges, unless `infinite`.
    """

    def __init__(self, graph: Any, weight: Weight, *, default: float = 1, infinite: bool = False) -> None:
        self.nodes = list(graph)
        n = len(self.nodes)
        index = dict(zip(self.nodes, range(n), strict=True))
        rows, cols, costs = _edges(graph, index, weight, default)
        kinds = set(map(type, costs))
        if not all(issubclass(kind, PLAIN) for kind in kinds):
            odd = next(cost for cost in costs if not isinstance(cost, PLAIN))
            raise NotImplementedError(f"the weight {odd!r} is not a number a matrix holds")
        self.integral = all(issubclass(kind, int | np.integer) for kind in kinds)
        try:
            numbers = np.fromiter(costs, np.float64, len(costs))
        except OverflowError:
            raise NotImplementedError("a weight leaves the range of float64") from None
        if np.isnan(numbers).any():
            raise NotImplementedError("a weight is NaN")
        if not infinite and np.isinf(numbers).any():
            raise NotImplementedError("a weight is infinite, which a matrix reads as no edge")
        finite = abs(numbers[np.isfinite(numbers)])
        heaviest = float(finite.max()) if finite.size else 0.0
        if self.integral and heaviest * max(n, 1) >= EXACT["float64"]:
            raise NotImplementedError(f"weights up to {heaviest:.0f} over {n} nodes leave float64's integers")
        small = self.integral and heaviest * max(n, 1) < EXACT["float32"]
        self.negative = bool((numbers < 0).any())
        self.positive = bool((numbers > 0).all())
        self.matrix: Matrix = np.full((n, n), np.inf, np.float32 if small else np.float64)
        if graph.is_multigraph():
            np.minimum.at(self.matrix, (rows, cols), numbers.astype(self.matrix.dtype))
        else:
            self.matrix[rows, cols] = numbers

    def close(self, **how: Any) -> Any:
        try:
            return closure(self.matrix, semiring="min_plus", **how)
        except CycleError as error:
            walk = " → ".join(str(self.nodes[n]) for n in (*error.nodes, *error.nodes[:1]))
            raise nx.NetworkXUnbounded(f"Negative cycle detected: {walk}") from None

    def close_with_predecessors(self) -> tuple[Matrix, Matrix]:
        """Lengths and predecessors; for positive integer weights one product finds the predecessors."""
        if not (self.integral and self.positive):
            return self.close(return_predecessors=True)
        D = self.close()
        edges = self.matrix.copy()
        np.fill_diagonal(edges, np.inf)
        predecessors: Matrix = matmul(D, edges, semiring="min_plus", return_arg=True)[1]
        np.fill_diagonal(predecessors, -1)
        return D, predecessors

    def numbers(self, values: Matrix) -> list[Any]:
        """Finite lengths in NetworkX's types: integers if every weight is one."""
        return (values.astype(np.int64) if self.integral else values).tolist()

    def node_array(self) -> Matrix:
        """The nodes as an object array, to be indexed by arrays."""
        made: Matrix = np.empty(len(self.nodes), object)
        for number, node in enumerate(self.nodes):
            made[number] = node
        return made


class WeightedLengths:
    """Statistics of the path lengths from each node of a weighted graph, or, inward, to it."""

    def __init__(self, graph: Any, weight: Weight, inward: bool) -> None:
        if not len(graph):
            raise NotImplementedError("a graph without nodes is left to NetworkX")
        self._weights = Weights(graph, weight)
        if self._weights.negative:
            raise NotImplementedError("negative weights are left to NetworkX")
        D: Matrix = self._weights.close()
        self._lengths = D.T if inward else D

    def reached(self) -> list[int]:
        return (np.isfinite(self._lengths).sum(1) - 1).tolist()

    def farthest(self) -> list[Any]:
        return self._weights.numbers(self._lengths.max(1))

    def totals(self) -> list[Any]:
        finite = np.where(np.isfinite(self._lengths), self._lengths, 0)
        totals = finite.sum(1, dtype=np.float64).tolist()
        return [int(total) for total in totals] if self._weights.integral else totals

    def inverses(self) -> list[float]:
        """Σ 1 / length, without paths of length 0."""
        inverse = self._lengths.astype(np.float64)
        np.divide(1, inverse, out=inverse, where=inverse != 0)
        return [x or 0 for x in inverse.sum(1).tolist()]


def _edges(graph: Any, index: dict[Any, int], weight: Weight, default: float) -> tuple[Matrix, Matrix, list[Any]]:
    """Every edge with its weight, undirected ones in both directions; edges with weight None are hidden."""
    adjacency = list(graph.adjacency())
    if callable(weight) or (graph.is_multigraph() and weight is not None):
        triples = list(_each(adjacency, weight, default, graph.is_multigraph()))
        rows = np.fromiter((index[u] for u, _, _ in triples), np.int64, len(triples))
        cols = np.fromiter((index[v] for _, v, _ in triples), np.int64, len(triples))
        return rows, cols, [cost for _, _, cost in triples]
    counts = [len(neighbours) for _, neighbours in adjacency]
    rows = np.repeat(np.arange(len(adjacency)), counts)
    cols = np.fromiter((index[v] for _, neighbours in adjacency for v in neighbours), np.int64, len(rows))
    if weight is None:
        return rows, cols, [default] * len(rows)
    found = chain.from_iterable(neighbours.values() for _, neighbours in adjacency)
    return rows, cols, [data.get(weight, default) for data in found]


def _each(adjacency: Any, weight: Weight, default: float, multigraph: bool) -> Iterator[tuple[Any, Any, Any]]:
    for u, neighbours in adjacency:
        for v, data in neighbours.items():
            if callable(weight):
                cost = weight(u, v, data)
                if cost is not None:
                    yield u, v, cost
            elif multigraph:
                for one in data.values():
                    yield u, v, one.get(weight, default)


def nearest_first(D: Matrix, integral: bool) -> Matrix:
    """For each row the targets by increasing length; small integers are sorted by radix."""
    finite = D[np.isfinite(D)]
    if integral and (not finite.size or (finite.max() < 32000 and finite.min() > -32000)):
        D = np.where(np.isfinite(D), D, 32001).astype(np.int16)
    return np.argsort(D, axis=1, kind="stable")
