"""Lengths and paths between all pairs of an unweighted graph, by a breadth-first search from each node in Python.

Nodes come in NetworkX's order and ties are broken as NetworkX breaks them; it is faster because NetworkX dispatches to
backends once for each search. It runs until kernels are compiled, and if a matrix is not faster.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tilewise.interop.networkx.graph import NxGraph

Neighbours = dict[Any, list[Any]]


def all_pairs_shortest_path_length(G: NxGraph, cutoff: float | None = None) -> Iterator[tuple[Any, dict[Any, int]]]:
    neighbours = _neighbours(G)
    for source in neighbours:
        yield source, _lengths(neighbours, source, math.inf if cutoff is None else cutoff)


def all_pairs_shortest_path(G: NxGraph, cutoff: float | None = None) -> Iterator[tuple[Any, dict[Any, list[Any]]]]:
    neighbours = _neighbours(G)
    for source in neighbours:
        yield source, _paths(neighbours, source, math.inf if cutoff is None else cutoff)


def _neighbours(G: NxGraph) -> Neighbours:
    return {node: list(others) for node, others in G.graph.adjacency()}


def _lengths(neighbours: Neighbours, source: Any, cutoff: float) -> dict[Any, int]:
    """Lengths from a source; nodes nearer than the cutoff, which may be a fraction as in NetworkX, are expanded."""
    n, found, queue = len(neighbours), {source: 0}, [source]
    for node in queue:  # grows while it is read
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
        path = found[node]
        if len(path) - 1 >= cutoff:
            break
        for other in neighbours[node]:
            if other not in found:
                found[other] = [*path, other]
                queue.append(other)
        if len(queue) == n:
            break
    return found
