"""Measures of a graph whose edges all count 1, read off how many nodes are how far from each."""

from __future__ import annotations

from typing import Any

import networkx as nx

from tilewise.interop.networkx.balls import count_by_distance
from tilewise.interop.networkx.nodes import Nodes


def _eccentricities(G: Nodes) -> dict[Any, int]:
    n = len(G.graph)
    if not n:
        raise NotImplementedError("a graph without nodes is left to NetworkX")
    found = {}
    for node, counts in zip(G.graph, count_by_distance(G.graph), strict=True):
        if sum(counts) < n - 1:
            how = "digraph is not strongly connected" if G.is_directed() else "graph is not connected"
            raise nx.NetworkXError(f"Found infinite path length because the {how}")
        found[node] = len(counts)
    return found


def eccentricity(G: Nodes, v: Any = None, sp: Any = None, weight: None = None) -> dict[Any, int]:
    return _eccentricities(G)


def diameter(G: Nodes, e: Any = None, usebounds: bool = False, weight: None = None) -> int:
    return max(_eccentricities(G).values())


def radius(G: Nodes, e: Any = None, usebounds: bool = False, weight: None = None) -> int:
    return min(_eccentricities(G).values())


def center(G: Nodes, e: Any = None, usebounds: bool = False, weight: None = None) -> list[Any]:
    found = _eccentricities(G)
    least = min(found.values())
    return [node for node, far in found.items() if far == least]


def periphery(G: Nodes, e: Any = None, usebounds: bool = False, weight: None = None) -> list[Any]:
    found = _eccentricities(G)
    most = max(found.values())
    return [node for node, far in found.items() if far == most]


def average_shortest_path_length(G: Nodes, weight: Any = None, method: str | None = None) -> Any:
    n = len(G.graph)
    if n == 0:
        raise nx.NetworkXPointlessConcept("the null graph has no paths, thus there is no average shortest path length")
    if n == 1:
        return 0
    total = 0
    for counts in count_by_distance(G.graph):
        if sum(counts) < n - 1:
            raise nx.NetworkXError("Graph is not strongly connected." if G.is_directed() else "Graph is not connected.")
        total += _total(counts)
    return total / (n * (n - 1))


def global_efficiency(G: Nodes) -> float:
    if G.is_directed():
        raise NotImplementedError("directed graphs are left to NetworkX")
    n = len(G.graph)
    if n < 2:
        return 0
    return sum(map(_inverses, count_by_distance(G.graph))) / (n * (n - 1))


def harmonic_centrality(G: Nodes, nbunch: Any = None, distance: None = None, sources: Any = None) -> dict[Any, float]:
    return dict(zip(G.graph, map(_inverses, count_by_distance(G.graph, inward=True)), strict=True))


def closeness_centrality(
    G: Nodes, u: Any = None, distance: None = None, wf_improved: bool | None = True, *, sp: None = None
) -> dict[Any, float]:
    n = len(G.graph)
    found = {}
    for node, counts in zip(G.graph, count_by_distance(G.graph, inward=True), strict=True):
        reached = float(sum(counts))
        close = reached / _total(counts) if counts else 0.0
        found[node] = close * (reached / (n - 1)) if counts and wf_improved else close
    return found


def _total(counts: list[int]) -> int:
    """Of the lengths."""
    return sum(far * count for far, count in enumerate(counts, 1))


def _inverses(counts: list[int]) -> float:
    """The sum of 1 / length."""
    return sum(count / far for far, count in enumerate(counts, 1))
