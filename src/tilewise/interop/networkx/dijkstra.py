"""Dijkstra's algorithm from every node in plain Python, weights read once: for first calls, while kernels are built.

NetworkX's own order and choice among equal paths, and its sums to the last bit. What is not plain numbers of 0 or more
goes to `lengths`.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from importlib import import_module
from itertools import count
from typing import Any

from tilewise.interop.networkx.nodes import Nodes

Neighbours = dict[Any, list[tuple[Any, Any]]]
Found = tuple[dict[Any, Any], dict[Any, list[Any]]]


def all_pairs_dijkstra_path_length(G: Nodes, cutoff: float | None = None, weight: Any = "weight") -> Iterator[Any]:
    neighbours = _neighbours(G, weight)
    if neighbours is None:
        return _by_matrix("all_pairs_dijkstra_path_length", G, cutoff, weight)
    return ((source, _search(neighbours, source, cutoff, None)) for source in neighbours)


def all_pairs_dijkstra(G: Nodes, cutoff: float | None = None, weight: Any = "weight") -> Iterator[tuple[Any, Found]]:
    neighbours = _neighbours(G, weight)
    if neighbours is None:
        return _by_matrix("all_pairs_dijkstra", G, cutoff, weight)
    return ((source, _with_paths(neighbours, source, cutoff)) for source in neighbours)


def all_pairs_dijkstra_path(G: Nodes, cutoff: float | None = None, weight: Any = "weight") -> Iterator[Any]:
    return ((source, paths) for source, (_, paths) in all_pairs_dijkstra(G, cutoff, weight))


def shortest_path_length(
    G: Nodes, source: None = None, target: None = None, weight: Any = None, method: str = "dijkstra"
) -> Iterator[Any]:
    return all_pairs_dijkstra_path_length(G, weight=weight)


def shortest_path(
    G: Nodes, source: None = None, target: None = None, weight: Any = None, method: str = "dijkstra"
) -> Iterator[Any]:
    return all_pairs_dijkstra_path(G, weight=weight)


def _by_matrix(name: str, *how: Any) -> Iterator[Any]:
    made: Iterator[Any] = getattr(import_module("tilewise.interop.networkx.lengths"), name)(*how)
    return made


def _neighbours(G: Nodes, weight: Any) -> Neighbours | None:
    """With weights; None unless all are plain numbers of 0 or more."""
    if callable(weight) or G.is_multigraph():
        return None
    made = {
        node: [(other, data.get(weight, 1)) for other, data in others.items()] for node, others in G.graph.adjacency()
    }
    plain = all(type(cost) in (int, float) and cost >= 0 for others in made.values() for _, cost in others)
    return made if plain else None


def _with_paths(neighbours: Neighbours, source: Any, cutoff: float | None) -> Found:
    before: dict[Any, Any] = {}
    found = _search(neighbours, source, cutoff, before)
    paths: dict[Any, list[Any]] = {}
    for node in found:  # the nearest first, so the one before it has its path
        paths[node] = [*paths[before[node]], node] if node in before else [node]
    return found, paths


def _search(neighbours: Neighbours, source: Any, cutoff: float | None, before: dict[Any, Any] | None) -> dict[Any, Any]:
    number = count(1)  # nodes need not be comparable, and equal lengths come in the order they were found
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
            if before is not None:
                before[other] = node
    return found
