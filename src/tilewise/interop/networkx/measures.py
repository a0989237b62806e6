"""Eccentricities, averages and centralities from the lengths of all pairs, without a dictionary of pairs.

Without weights `hops` counts nodes by distance; with weights the lengths are one closure of the matrix of weights.
"""

from __future__ import annotations

from typing import Any

import networkx as nx

from tilewise.interop.networkx.graph import NxGraph
from tilewise.interop.networkx.hops import HopLengths


def _lengths(G: NxGraph, weight: Any, inward: bool = False) -> Any:
    if weight is None:
        return HopLengths(G.graph, inward)
    from tilewise.interop.networkx.matrix import WeightedLengths  # imports NumPy

    return WeightedLengths(G.graph, weight, inward)


def eccentricity(G: NxGraph, v: Any = None, sp: Any = None, weight: Any = None) -> dict[Any, Any]:
    n = len(G.graph)
    if not n:
        raise NotImplementedError("a graph without nodes is left to NetworkX")
    lengths = _lengths(G, weight)
    if min(lengths.reached()) < n - 1:
        how = "digraph is not strongly connected" if G.is_directed() else "graph is not connected"
        raise nx.NetworkXError(f"Found infinite path length because the {how}")
    return dict(zip(G.graph, lengths.farthest(), strict=True))


def diameter(G: NxGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> Any:
    return max(eccentricity(G, weight=weight).values())


def radius(G: NxGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> Any:
    return min(eccentricity(G, weight=weight).values())


def center(G: NxGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> list[Any]:
    if weight is None and (of_tree := _center_of_tree(G.graph)) is not None:
        return of_tree
    found = eccentricity(G, weight=weight)
    least = min(found.values())
    return [node for node, far in found.items() if far == least]


def _center_of_tree(graph: Any) -> list[Any] | None:
    """The one or two nodes that remain when leaves are removed round by round; None if the graph is not a tree."""
    near, n = graph._adj, len(graph)
    left = {node: len(others) for node, others in near.items()}
    if graph.is_directed() or graph.is_multigraph() or sum(left.values()) != 2 * (n - 1):
        return None
    leaves, edges = [node for node, degree in left.items() if degree == 1], 0
    while len(left) > 2 and leaves:
        following = []
        for leaf in leaves:
            del left[leaf]
            for other in near[leaf]:
                if other in left:
                    edges += 1
                    left[other] -= 1
                    if left[other] == 1:
                        following.append(other)
        leaves = following
    first, *others = left
    # otherwise not a tree: a cycle has no leaf; a node of another component or with a loop is removed without an edge
    tree = edges == n - len(left) and len(others) < 2 and all(other in near[first] for other in others)
    return [first, *others] if tree else None


def periphery(G: NxGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> list[Any]:
    found = eccentricity(G, weight=weight)
    most = max(found.values())
    return [node for node, far in found.items() if far == most]


def average_shortest_path_length(G: NxGraph, weight: Any = None, method: str | None = None) -> Any:
    n = len(G.graph)
    if n == 0:
        raise nx.NetworkXPointlessConcept("the null graph has no paths, thus there is no average shortest path length")
    if n == 1:
        return 0
    lengths = _lengths(G, None if method == "unweighted" else weight)
    if min(lengths.reached()) < n - 1:
        raise nx.NetworkXError("Graph is not strongly connected." if G.is_directed() else "Graph is not connected.")
    return sum(lengths.totals()) / (n * (n - 1))


def global_efficiency(G: NxGraph) -> float:
    if G.is_directed():
        raise NotImplementedError("directed graphs are left to NetworkX")
    n = len(G.graph)
    return sum(_lengths(G, None).inverses()) / (n * (n - 1)) if n > 1 else 0


def harmonic_centrality(G: NxGraph, nbunch: Any = None, distance: Any = None, sources: Any = None) -> dict[Any, float]:
    return dict(zip(G.graph, _lengths(G, distance, inward=True).inverses(), strict=True))


def closeness_centrality(
    G: NxGraph, u: Any = None, distance: Any = None, wf_improved: bool | None = True, *, sp: None = None
) -> dict[Any, float]:

    def exchanged(u: Any, v: Any, data: Any) -> Any:
        return distance(v, u, data)  # NetworkX searches the reversed graph of a directed one

    back = G.is_directed()
    n, lengths = len(G.graph), _lengths(G, exchanged if back and callable(distance) else distance, inward=back)
    found = {}
    for node, reached, total in zip(G.graph, lengths.reached(), lengths.totals(), strict=True):
        close = reached / total if total else 0.0
        found[node] = close * (reached / (n - 1)) if wf_improved and n > 1 else close
    return found
