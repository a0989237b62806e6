"""What is read off all weighted lengths at once: eccentricities, averages, centralities; and pairs counted by products.

No dictionary of pairs is ever made. Where every edge counts 1, `hops` needs no lengths at all.
"""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from tilewise.api import matmul
from tilewise.interop.networkx import brandes
from tilewise.interop.networkx.balls import sampled
from tilewise.interop.networkx.brandes import scale
from tilewise.interop.networkx.matrix import Matrix, Weight, Weights
from tilewise.interop.networkx.nodes import Nodes


def _lengths(G: Nodes, weight: Weight) -> tuple[Weights, Matrix]:
    if not len(G.graph):
        raise NotImplementedError("a graph without nodes is left to NetworkX")
    made = Weights(G.graph, weight)
    if made.negative:
        raise NotImplementedError("negative weights are left to NetworkX")
    return made, made.close()


def _eccentricities(G: Nodes, weight: Weight) -> tuple[Weights, Matrix]:
    made, D = _lengths(G, weight)
    if not np.isfinite(D).all():
        how = "digraph is not strongly connected" if G.is_directed() else "graph is not connected"
        raise nx.NetworkXError(f"Found infinite path length because the {how}")
    return made, D.max(1)


def eccentricity(G: Nodes, v: Any = None, sp: Any = None, weight: Weight = None) -> dict[Any, Any]:
    made, e = _eccentricities(G, weight)
    return dict(zip(made.nodes, made.numbers(e), strict=True))


def diameter(G: Nodes, e: Any = None, usebounds: bool = False, weight: Weight = None) -> Any:
    made, found = _eccentricities(G, weight)
    return made.one(found.max())


def radius(G: Nodes, e: Any = None, usebounds: bool = False, weight: Weight = None) -> Any:
    made, found = _eccentricities(G, weight)
    return made.one(found.min())


def center(G: Nodes, e: Any = None, usebounds: bool = False, weight: Weight = None) -> list[Any]:
    made, found = _eccentricities(G, weight)
    return [made.nodes[i] for i in np.flatnonzero(found == found.min()).tolist()]


def periphery(G: Nodes, e: Any = None, usebounds: bool = False, weight: Weight = None) -> list[Any]:
    made, found = _eccentricities(G, weight)
    return [made.nodes[i] for i in np.flatnonzero(found == found.max()).tolist()]


def average_shortest_path_length(G: Nodes, weight: Weight = None, method: str | None = None) -> Any:
    n = len(G.graph)
    if n == 0:
        raise nx.NetworkXPointlessConcept("the null graph has no paths, thus there is no average shortest path length")
    if n == 1:
        return 0
    made = Weights(G.graph, weight)
    if made.negative:
        raise NotImplementedError("negative weights are left to NetworkX")
    D = made.close()
    if not np.isfinite(D).all():
        raise nx.NetworkXError("Graph is not strongly connected." if G.is_directed() else "Graph is not connected.")
    return made.one(D.sum(dtype=np.float64)) / (n * (n - 1))


def _inverse(D: Matrix) -> Matrix:
    """1 / length, 0 for oneself, for ways of length 0 and where there is none."""
    made = D.astype(np.float64)
    np.divide(1, made, out=made, where=made != 0)
    return made


def harmonic_centrality(G: Nodes, nbunch: Any = None, distance: Weight = None, sources: Any = None) -> dict[Any, float]:
    made, D = _lengths(G, distance)
    return dict(zip(made.nodes, (x or 0 for x in _inverse(D).sum(0).tolist()), strict=True))


def closeness_centrality(
    G: Nodes, u: Any = None, distance: Weight = None, wf_improved: bool | None = True, *, sp: None = None
) -> dict[Any, float]:
    made, D = _lengths(G, distance)
    n = len(made.nodes)
    reached = np.isfinite(D)
    total, count = np.where(reached, D, 0).sum(0, dtype=np.float64), reached.sum(0) - 1.0
    close = np.divide(count, total, out=np.zeros(n), where=(total > 0) & (n > 1))
    if wf_improved and n > 1:
        close *= count / (n - 1)
    return dict(zip(made.nodes, close.tolist(), strict=True))


def betweenness_centrality(
    G: Nodes,
    k: int | None = None,
    normalized: bool | None = True,
    weight: Weight = None,
    endpoints: bool | None = False,
    seed: Any = None,
) -> dict[Any, float]:
    """Brandes's algorithm with all sources at once: pairs are counted level by level, by products."""
    graph = G.graph
    n = len(graph)
    if not n:
        return {}
    made = Weights(graph, None)
    A = np.isfinite(made.matrix).astype(np.float64)
    np.fill_diagonal(A, 0)
    counted = _count_ways(A, 2 * sampled(graph)[0] + 2)
    if counted is None:
        return brandes.betweenness_centrality(G, None, normalized, None, endpoints)
    ways, level = counted
    share = np.zeros((n, n))  # of the paths from a source to all targets, what passes through each node
    for depth in range(int(level.max()), 0, -1):
        there = np.divide(1 + share, ways, out=np.zeros((n, n)), where=level == depth)
        share += np.where(level == depth - 1, ways * matmul(there, A.T), 0)
    np.fill_diagonal(share, 0)
    found = share.sum(0)
    if endpoints:
        reached = level >= 0
        found += reached.sum(1) - 1 + reached.sum(0) - 1
    by = scale(n, bool(normalized), G.is_directed(), bool(endpoints))
    return dict(zip(made.nodes, (found * by).tolist(), strict=True))


def _count_ways(A: Matrix, most: int) -> tuple[Matrix, Matrix] | None:
    """How many shortest paths lead from each source to each node, and over how many edges (−1: none). None where paths
    are longer than `most`."""
    n = len(A)
    ways = front = np.eye(n)
    level = np.where(np.eye(n, dtype=bool), 0, -1)
    for depth in range(1, most + 1):
        front = np.where(level < 0, matmul(front, A), 0)
        new = front > 0
        if not new.any():
            return ways, level
        level[new] = depth
        ways = ways + front
    return None
