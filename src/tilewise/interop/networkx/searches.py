"""Lengths and paths between all pairs where every edge counts 1, by a search from each node in plain Python.

NetworkX's own order of nodes and choice of paths, without its asking every backend for every search: this is what
runs until kernels are built, and where a matrix would not pay.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tilewise.interop.networkx.nodes import Nodes

Neighbours = dict[Any, list[Any]]


def all_pairs_shortest_path_length(G: Nodes, cutoff: float | None = None) -> Iterator[tuple[Any, dict[Any, int]]]:
    neighbours = _neighbours(G)
    for source in neighbours:
        yield source, _lengths(neighbours, source, math.inf if cutoff is None else cutoff)


def all_pairs_shortest_path(G: Nodes, cutoff: float | None = None) -> Iterator[tuple[Any, dict[Any, list[Any]]]]:
    neighbours = _neighbours(G)
    for source in neighbours:
        yield source, _paths(neighbours, source, math.inf if cutoff is None else cutoff)


def shortest_path_length(
    G: Nodes, source: None = None, target: None = None, weight: None = None, method: str = "dijkstra"
) -> Iterator[tuple[Any, dict[Any, int]]]:
    return all_pairs_shortest_path_length(G)


def shortest_path(
    G: Nodes, source: None = None, target: None = None, weight: None = None, method: str = "dijkstra"
) -> Iterator[tuple[Any, dict[Any, list[Any]]]]:
    return all_pairs_shortest_path(G)


def _neighbours(G: Nodes) -> Neighbours:
    return {node: list(others) for node, others in G.graph.adjacency()}


def _lengths(neighbours: Neighbours, source: Any, cutoff: float) -> dict[Any, int]:
    """A node is looked around from while it is nearer than the cutoff, which may be a fraction, as in NetworkX."""
    n, found, queue = len(neighbours), {source: 0}, [source]
    for node in queue:  # which grows
        if found[node] >= cutoff:
            break
        far = found[node] + 1
        for other in neighbours[node]:
            if other not in found:
                found[other] = far
                queue.append(other)
        if len(queue) == n:
            break
    return found


def _paths(neighbours: Neighbours, source: Any, cutoff: float) -> dict[Any, list[Any]]:
    n, found, queue = len(neighbours), {source: [source]}, [source]
    for node in queue:
        way = found[node]
        if len(way) - 1 >= cutoff:
            break
        for other in neighbours[node]:
            if other not in found:
                found[other] = [*way, other]
                queue.append(other)
        if len(queue) == n:
            break
    return found
