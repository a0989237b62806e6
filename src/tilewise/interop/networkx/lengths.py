"""All-pairs lengths and paths: one closure of the whole graph, returned as the dictionaries of NetworkX."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from tilewise.interop.networkx.graph import NxGraph
from tilewise.interop.networkx.matrix import Matrix, Weight, Weights, nearest_first

SINCE_3_7 = tuple(map(int, nx.__version__.split(".")[:2])) >= (3, 7)


def _all_edges(G: NxGraph, weight: Weight) -> Weights:
    """The weights as NetworkX's Floyd–Warshall functions read them: an infinite weight is no edge, a missing one is 1
    (1.0 before NetworkX 3.7); since 3.7 a loop of negative weight is a negative cycle. A callable weight is not called,
    but used as an attribute's name."""
    default = 1 if SINCE_3_7 else 1.0

    def attribute(_u: Any, _v: Any, data: Any) -> Any:
        return min(one.get(weight, default) for one in (data.values() if G.is_multigraph() else (data,)))

    made = Weights(G.graph, attribute if callable(weight) else weight, default=default, infinite=True)
    loops = np.flatnonzero(made.matrix.diagonal() < 0)
    if SINCE_3_7 and loops.size:
        node = made.nodes[loops[0]]
        raise nx.NetworkXUnbounded(f"Negative cycle detected: {node} → {node}")
    return made


def floyd_warshall(G: NxGraph, weight: Weight = "weight") -> dict[Any, dict[Any, Any]]:
    made = _all_edges(G, weight)
    return _table(made, made.close())


def floyd_warshall_numpy(G: NxGraph, nodelist: Any = None, weight: Weight = "weight") -> Matrix:
    graph = G.graph
    if nodelist is not None and not (len(nodelist) == len(graph) == len(set(nodelist))):
        raise nx.NetworkXError(
            "nodelist must contain every node in G with no repeats."
            "If you wanted a subgraph of G use G.subgraph(nodelist)"
        )
    made = _all_edges(G, weight)
    np.fill_diagonal(made.matrix, 0)
    D: Matrix = made.close().astype(np.float64, copy=False)
    if nodelist is None:
        return D
    at = {node: number for number, node in enumerate(made.nodes)}
    order = [at[node] for node in nodelist]
    return D[np.ix_(order, order)]


def floyd_warshall_predecessor_and_distance(G: NxGraph, weight: Weight = "weight") -> tuple[Any, Any]:
    made = _all_edges(G, weight)
    D, table = made.close_with_predecessors()
    nodes = made.nodes
    predecessors = {}
    for u, row in zip(nodes, table.tolist(), strict=True):
        steps = {v: nodes[step] for v, step in zip(nodes, row, strict=True) if step >= 0}
        if steps:
            predecessors[u] = steps
    for u, _ in nx.selfloop_edges(G.graph):  # NetworkX lists a loop as its own predecessor
        predecessors.setdefault(u, {})[u] = u
    return predecessors, _table(made, D)


def all_pairs_shortest_path_length(G: NxGraph, cutoff: int | None = None) -> Iterator[tuple[Any, dict[Any, int]]]:
    return _lengths_by_source(Weights(G.graph, None), _ceiling(cutoff))


def all_pairs_dijkstra_path_length(
    G: NxGraph, cutoff: float | None = None, weight: Weight = "weight"
) -> Iterator[tuple[Any, dict[Any, Any]]]:
    return _lengths_by_source(_not_negative(Weights(G.graph, weight)), cutoff)


def all_pairs_bellman_ford_path_length(G: NxGraph, weight: Weight = "weight") -> Iterator[tuple[Any, dict[Any, Any]]]:
    return _lengths_by_source(Weights(G.graph, weight), None)


def all_pairs_dijkstra_path(
    G: NxGraph, cutoff: float | None = None, weight: Weight = "weight"
) -> Iterator[tuple[Any, dict[Any, list[Any]]]]:
    return ((u, paths) for u, (_, paths) in all_pairs_dijkstra(G, cutoff, weight))


def all_pairs_dijkstra(
    G: NxGraph, cutoff: float | None = None, weight: Weight = "weight"
) -> Iterator[tuple[Any, tuple[dict[Any, Any], dict[Any, list[Any]]]]]:
    return _lengths_and_paths(_not_negative(Weights(G.graph, weight)), cutoff)


def all_pairs_bellman_ford_path(G: NxGraph, weight: Weight = "weight") -> Iterator[tuple[Any, dict[Any, list[Any]]]]:
    return ((u, paths) for u, (_, paths) in _lengths_and_paths(Weights(G.graph, weight), None))


def _ceiling(cutoff: float | None) -> float | None:
    """The cutoff rounded up: NetworkX expands every node nearer than the cutoff."""
    return cutoff if cutoff is None or math.isinf(cutoff) else math.ceil(cutoff)


def _not_negative(made: Weights) -> Weights:
    if made.negative:
        raise NotImplementedError(
            "negative weights are left to NetworkX (all_pairs_bellman_ford_path_length takes them)"
        )
    return made


def _table(made: Weights, D: Matrix) -> dict[Any, dict[Any, Any]]:
    nodes = made.nodes
    if made.integral and np.isfinite(D).all():
        rows = D.astype(np.int64).tolist()
    elif made.integral:
        rows = [[int(x) if x < math.inf else x for x in row] for row in D.tolist()]
    else:
        rows = D.tolist()
    return {u: dict(zip(nodes, row, strict=True)) for u, row in zip(nodes, rows, strict=True)}


def _near(made: Weights, D: Matrix, cutoff: float | None) -> Iterator[tuple[Any, Matrix, list[Any]]]:
    """For each source: its targets within the cutoff, nearest first, and their lengths."""
    order = nearest_first(D, made.integral)
    sorted_lengths = np.take_along_axis(D, order, 1)
    far = math.inf if cutoff is None else cutoff
    counts = ((sorted_lengths < math.inf) & (sorted_lengths <= far)).sum(1).tolist()
    for row, (u, targets, lengths, count) in enumerate(zip(made.nodes, order, sorted_lengths, counts, strict=True)):
        if far < 0:  # a node reaches itself, whatever the cutoff
            yield u, np.array([row]), [0]
        else:
            yield u, targets[:count], made.numbers(lengths[:count])


def _lengths_by_source(made: Weights, cutoff: float | None) -> Iterator[tuple[Any, dict[Any, Any]]]:
    names = made.node_array()
    for u, targets, lengths in _near(made, made.close(), cutoff):
        yield u, dict(zip(names[targets].tolist(), lengths, strict=True))


def _lengths_and_paths(
    made: Weights, cutoff: float | None
) -> Iterator[tuple[Any, tuple[dict[Any, Any], dict[Any, list[Any]]]]]:
    """Lengths and paths by source; a path extends its predecessor's path by one node."""
    D, table = made.close_with_predecessors()
    nodes = made.nodes
    for row, (u, targets, lengths) in enumerate(_near(made, D, cutoff)):
        steps = table[row].tolist()
        paths: list[list[Any] | None] = [None] * len(nodes)
        paths[row] = [u]
        order = targets.tolist()
        for v in order:
            chain, node = [], v
            while paths[node] is None:  # with edges of weight 0 a target may precede its predecessor
                chain.append(node)
                node = steps[node]
            known = paths[node]
            for node in reversed(chain):
                known = paths[node] = [*known, nodes[node]]
        yield (
            u,
            (
                {nodes[v]: length for v, length in zip(order, lengths, strict=True)},
                {nodes[v]: paths[v] for v in order},
            ),
        )
