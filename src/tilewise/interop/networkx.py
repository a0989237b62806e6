"""NetworkX with `backend="tilewise"`: all-pairs problems as one closure of the whole graph.

A graph becomes a matrix of weights, `tw.closure` closes it, and the answer goes back into the dictionaries that
NetworkX promises. What a matrix of float64 cannot hold exactly is left to NetworkX (NotImplementedError).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from tilewise.api import matmul
from tilewise.errors import CycleError
from tilewise.graph.closure import closure
from tilewise.interop.networkx_info import FUNCTIONS

Matrix = np.ndarray[Any, np.dtype[Any]]
Weight = str | Callable[[Any, Any, Any], Any] | None

WORTH_IT = 50  # nodes; below, the way there and back is most of the work
MOST_NODES = 30_000  # whose matrix of float64 takes 7.2 GB
EXACT = 2**53
PLAIN = (int, float, np.integer, np.floating)


class Nodes:
    """A graph on its way through: what NetworkX handed over, marked as ours."""

    __networkx_backend__ = "tilewise"

    def __init__(self, graph: Any) -> None:
        self.graph = graph

    def is_directed(self) -> bool:
        return self.graph.is_directed()

    def is_multigraph(self) -> bool:
        return self.graph.is_multigraph()


class Weights:
    """A graph as a matrix: `matrix[u, v]` is the lightest edge from u to v, ∞ where there is none."""

    def __init__(self, graph: Any, weight: Weight, *, default: float = 1) -> None:
        self.nodes = list(graph)
        index = {node: number for number, node in enumerate(self.nodes)}
        self.matrix: Matrix = np.full((len(index), len(index)), np.inf)
        self.whole = isinstance(default, int)
        least, heaviest = 0.0, 0.0
        for u, v, cost in _edges(graph, weight, default):
            if not isinstance(cost, PLAIN) or cost != cost:
                raise NotImplementedError(f"the weight of edge ({u}, {v}) is {cost!r}, not a number a matrix holds")
            self.whole &= isinstance(cost, (int, np.integer))
            number = float(cost)
            least = min(least, number)
            if math.isfinite(number):
                heaviest = max(heaviest, abs(number))
            row, col = index[u], index[v]
            if number < self.matrix[row, col]:
                self.matrix[row, col] = number
        self.negative = least < 0
        if self.whole and heaviest * max(len(index), 1) >= EXACT:
            raise NotImplementedError(f"weights up to {heaviest:.0f} over {len(index)} nodes leave float64's integers")

    def close(self, **how: Any) -> Any:
        try:
            return closure(self.matrix, semiring="min_plus", **how)
        except CycleError as error:
            walk = " → ".join(str(self.nodes[n]) for n in (*error.nodes, *error.nodes[:1]))
            raise nx.NetworkXUnbounded(f"Negative cycle detected: {walk}") from None

    def lengths(self, row: list[float]) -> list[Any]:
        """A row of the closure as NetworkX gives it: whole where every weight was."""
        return [int(x) if x < math.inf else x for x in row] if self.whole else row


def _edges(graph: Any, weight: Weight, default: float) -> Iterator[tuple[Any, Any, Any]]:
    """Every edge with its weight, both ways round where the graph is undirected; hidden ones left out."""
    for u, neighbours in graph.adjacency():
        for v, data in neighbours.items():
            if callable(weight):
                cost = weight(u, v, data)
                if cost is not None:
                    yield u, v, cost
            elif graph.is_multigraph():
                for one in data.values():
                    yield u, v, one.get(weight, default)
            else:
                yield u, v, data.get(weight, default)


def floyd_warshall(G: Nodes, weight: str = "weight") -> dict[Any, dict[Any, Any]]:
    made = Weights(G.graph, weight)
    return _table(made, made.close())


def floyd_warshall_numpy(G: Nodes, nodelist: Any = None, weight: str = "weight") -> Matrix:
    graph = G.graph
    if nodelist is not None and not (len(nodelist) == len(graph) == len(set(nodelist))):
        raise nx.NetworkXError(
            "nodelist must contain every node in G with no repeats."
            "If you wanted a subgraph of G use G.subgraph(nodelist)"
        )
    made = Weights(graph, weight)
    np.fill_diagonal(made.matrix, 0)
    D: Matrix = made.close()
    if nodelist is None:
        return D
    at = {node: number for number, node in enumerate(made.nodes)}
    order = [at[node] for node in nodelist]
    return D[np.ix_(order, order)]


def floyd_warshall_predecessor_and_distance(G: Nodes, weight: str = "weight") -> tuple[Any, Any]:
    made = Weights(G.graph, weight)
    D, before = made.close(return_predecessors=True)
    nodes = made.nodes
    came = {}
    for u, row in zip(nodes, before.tolist(), strict=True):
        steps = {v: nodes[step] for v, step in zip(nodes, row, strict=True) if step >= 0}
        if steps:
            came[u] = steps
    return came, _table(made, D)


def all_pairs_shortest_path_length(G: Nodes, cutoff: int | None = None) -> Iterator[tuple[Any, dict[Any, int]]]:
    return _reached(Weights(G.graph, None), cutoff)


def all_pairs_dijkstra_path_length(
    G: Nodes, cutoff: float | None = None, weight: Weight = "weight"
) -> Iterator[tuple[Any, dict[Any, Any]]]:
    made = Weights(G.graph, weight)
    if made.negative:
        raise ValueError("Contradictory paths found: negative weights? (all_pairs_bellman_ford_path_length takes them)")
    return _reached(made, cutoff)


def all_pairs_bellman_ford_path_length(G: Nodes, weight: Weight = "weight") -> Iterator[tuple[Any, dict[Any, Any]]]:
    return _reached(Weights(G.graph, weight), None)


def transitive_closure(G: Nodes, reflexive: bool | None = False) -> Any:
    if reflexive not in {None, True, False}:
        raise nx.NetworkXError("Incorrect value for the parameter `reflexive`")
    graph = G.graph
    made, nodes = graph.copy(), list(graph)
    edges: Matrix = np.isfinite(Weights(graph, None).matrix)
    reach: Matrix = closure(edges, semiring="lor_land")
    if reflexive is False and graph.is_directed():
        reach = matmul(edges, reach, semiring="lor_land")  # a way of one edge at least
    else:  # in an undirected graph no edge may be walked back, so no other way leads home
        np.fill_diagonal(reach, bool(reflexive))
    for row in range(len(nodes)):
        u = nodes[row]
        has = made[u]
        made.add_edges_from([(u, nodes[col]) for col in np.flatnonzero(reach[row]).tolist() if nodes[col] not in has])
    return made


def _table(made: Weights, D: Matrix) -> dict[Any, dict[Any, Any]]:
    nodes = made.nodes
    return {u: dict(zip(nodes, made.lengths(row), strict=True)) for u, row in zip(nodes, D.tolist(), strict=True)}


def _reached(made: Weights, cutoff: float | None) -> Iterator[tuple[Any, dict[Any, Any]]]:
    """Row by row, the nearest first, as a search from each node would find them."""
    D, nodes = made.close(), made.nodes
    farthest = math.inf if cutoff is None else cutoff
    for u, row in zip(nodes, D, strict=True):
        order = np.argsort(row, kind="stable")
        near = order[(row[order] < math.inf) & (row[order] <= farthest)]
        yield u, dict(zip((nodes[i] for i in near.tolist()), made.lengths(row[near].tolist()), strict=True))


class Backend:
    """What NetworkX calls: conversion, whether to bother, and one function for each name."""

    @staticmethod
    def convert_from_nx(graph: Any, *_: Any, **__: Any) -> Any:
        return graph if isinstance(graph, Nodes) else Nodes(graph)

    @staticmethod
    def convert_to_nx(result: Any, *_: Any, **__: Any) -> Any:
        return result.graph if isinstance(result, Nodes) else result

    @staticmethod
    def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
        nodes = len(_graph(args, kwargs))
        if name in FUNCTIONS and nodes <= MOST_NODES:
            return True
        return f"{nodes:,} nodes make a matrix of {8 * nodes**2 / 1e9:.0f} GB"

    @staticmethod
    def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
        nodes = len(_graph(args, kwargs))
        return nodes >= WORTH_IT or f"{nodes} nodes are quicker done in NetworkX itself"


def _graph(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    graph = args[0] if args else kwargs["G"]
    return graph.graph if isinstance(graph, Nodes) else graph


backend = Backend()
for _name in FUNCTIONS:
    setattr(Backend, _name, staticmethod(globals()[_name]))
