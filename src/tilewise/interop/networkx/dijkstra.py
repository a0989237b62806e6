"""Dijkstra's algorithm from every node in Python, weights read once: for first calls, while kernels are compiled.

The order of nodes, the choice among equal paths and the sums are NetworkX's, bit for bit. Without negative weights
Bellman–Ford gives the same lengths, and so does Johnson, whose potentials are then 0; negative ones use `lengths`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from heapq import heappop, heappush
from importlib import import_module
from itertools import count
from typing import Any

from tilewise.interop.networkx.graph import NxGraph

Neighbours = dict[Any, list[tuple[Any, Any]]]
Found = tuple[dict[Any, Any], dict[Any, list[Any]]]


def all_pairs_dijkstra_path_length(G: NxGraph, cutoff: float | None = None, weight: Any = "weight") -> Iterator[Any]:
    neighbours = _not_negative(G, weight)
    return ((source, _search(neighbours, source, cutoff, None)) for source in neighbours)


def all_pairs_dijkstra(G: NxGraph, cutoff: float | None = None, weight: Any = "weight") -> Iterator[tuple[Any, Found]]:
    neighbours = _not_negative(G, weight)
    return ((source, _with_paths(neighbours, source, cutoff)) for source in neighbours)


def all_pairs_dijkstra_path(G: NxGraph, cutoff: float | None = None, weight: Any = "weight") -> Iterator[Any]:
    return ((source, paths) for source, (_, paths) in all_pairs_dijkstra(G, cutoff, weight))


def all_pairs_bellman_ford_path_length(G: NxGraph, weight: Any = "weight") -> Iterator[Any]:
    if has_negative(G.graph, weight):
        return _by_matrix("all_pairs_bellman_ford_path_length", G, weight)
    return all_pairs_dijkstra_path_length(G, weight=weight)


def all_pairs_bellman_ford_path(G: NxGraph, weight: Any = "weight") -> Iterator[Any]:
    if has_negative(G.graph, weight):
        return _by_matrix("all_pairs_bellman_ford_path", G, weight)
    return all_pairs_dijkstra_path(G, weight=weight)


def _by_matrix(name: str, *how: Any) -> Iterator[Any]:
    made: Iterator[Any] = getattr(import_module("tilewise.interop.networkx.lengths"), name)(*how)
    return made


def has_negative(graph: Any, weight: Any) -> bool:
    """Whether a weight is negative, not a number, or ∞, which Bellman–Ford does not relax."""
    made = _neighbours(graph, weight)
    return made is None or any(cost == math.inf for others in made.values() for _, cost in others)


def _not_negative(G: NxGraph, weight: Any) -> Neighbours:
    made = _neighbours(G.graph, weight)
    if made is None:
        raise NotImplementedError("negative weights: all_pairs_bellman_ford_path_length takes them, or NetworkX")
    return made


def _neighbours(graph: Any, weight: Any) -> Neighbours | None:
    """Neighbours with weights: the lightest of parallel edges, no hidden ones; None unless all are numbers ≥ 0."""
    if callable(weight):
        triples = {u: [(v, weight(u, v, data)) for v, data in others.items()] for u, others in graph.adjacency()}
        made = {u: [(v, cost) for v, cost in others if cost is not None] for u, others in triples.items()}
    elif graph.is_multigraph():
        made = {
            u: [(v, min(one.get(weight, 1) for one in data.values())) for v, data in others.items()]
            for u, others in graph.adjacency()
        }
    else:
        made = {u: [(v, data.get(weight, 1)) for v, data in others.items()] for u, others in graph.adjacency()}
    try:
        plain = all(cost >= 0 for others in made.values() for _, cost in others)
    except TypeError:
        return None
    return made if plain else None


def _with_paths(neighbours: Neighbours, source: Any, cutoff: float | None) -> Found:
    predecessors: dict[Any, Any] = {}
    found = _search(neighbours, source, cutoff, predecessors)
    paths: dict[Any, list[Any]] = {}
    for node in found:  # nearest first, so a predecessor's path exists
        paths[node] = [*paths[predecessors[node]], node] if node in predecessors else [node]
    return found, paths


def _search(
    neighbours: Neighbours, source: Any, cutoff: float | None, predecessors: dict[Any, Any] | None
) -> dict[Any, Any]:
    number = count(1)  # breaks ties: nodes need not be comparable
    found: dict[Any, Any] = {}
    near = {source: 0}
    heap = [(0, 0, source)]
    while heap:
        far, _, node = heappop(heap)
        if node in found:
            continue
        found[node] = far
        for other, cost in neighbours[node]:
            if other in found:
                continue
            length = far + cost
            if (other in near and length >= near[other]) or (cutoff is not None and length > cutoff):
                continue
            near[other] = length
            heappush(heap, (length, next(number), other))
            if predecessors is not None:
                predecessors[other] = node
    return found
