"""Brandes's betweenness with all sources at once: shortest paths are counted level by level, by matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.dispatch.product import matmul
from tilewise.interop.networkx import brandes
from tilewise.interop.networkx.graph import NxGraph
from tilewise.interop.networkx.hops import sample_searches
from tilewise.interop.networkx.matrix import Matrix, Weight, Weights


def betweenness_centrality(
    G: NxGraph,
    k: int | None = None,
    normalized: bool | None = True,
    weight: Weight = None,
    endpoints: bool | None = False,
    seed: Any = None,
) -> dict[Any, float]:
    graph = G.graph
    n = len(graph)
    if not n:
        return {}
    weights = Weights(graph, None)
    A = np.isfinite(weights.matrix).astype(np.float64)
    np.fill_diagonal(A, 0)
    counted = _count_paths(A, 2 * sample_searches(graph)[0] + 2)
    if counted is None:
        return brandes.betweenness_centrality(G, None, normalized, None, endpoints)
    paths, level = counted
    share = np.zeros((n, n))  # share of the paths from a source to all targets that pass through each node
    for depth in range(int(level.max()), 0, -1):
        there = np.divide(1 + share, paths, out=np.zeros((n, n)), where=level == depth)
        share += np.where(level == depth - 1, paths * matmul(there, A.T), 0)
    np.fill_diagonal(share, 0)
    found = share.sum(0)
    if endpoints:
        reached = level >= 0
        found += reached.sum(1) - 1 + reached.sum(0) - 1
    by = brandes.scale(n, bool(normalized), G.is_directed(), bool(endpoints))
    return dict(zip(weights.nodes, (found * by).tolist(), strict=True))


def _count_paths(A: Matrix, most: int) -> tuple[Matrix, Matrix] | None:
    """The number of shortest paths from each source to each node, and their length (−1: no path). None if a path is
    longer than `most`."""
    n = len(A)
    paths = front = np.eye(n)
    level = np.where(np.eye(n, dtype=bool), 0, -1)
    for depth in range(1, most + 1):
        front = np.where(level < 0, matmul(front, A), 0)
        new = front > 0
        if not new.any():
            return paths, level
        level[new] = depth
        paths = paths + front
    return None
