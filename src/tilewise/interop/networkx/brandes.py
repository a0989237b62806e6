"""Brandes's betweenness of nodes in plain Python on numbered nodes: for a first call, while kernels are built.

Sums are made in NetworkX's order, so they are its own to the last bit.
"""

from __future__ import annotations

from typing import Any

from tilewise.interop.networkx.nodes import Nodes


def betweenness_centrality(
    G: Nodes,
    k: None = None,
    normalized: bool | None = True,
    weight: None = None,
    endpoints: bool | None = False,
    seed: Any = None,
) -> dict[Any, float]:
    at = {node: number for number, node in enumerate(G.graph)}
    neighbours = [[at[other] for other in others] for _, others in G.graph.adjacency()]
    shares = [0.0] * len(at)
    for source in range(len(at)):
        _add(shares, neighbours, source, bool(endpoints))
    by = scale(len(at), bool(normalized), G.is_directed(), bool(endpoints))
    return {node: share * by for node, share in zip(at, shares, strict=True)}


def _add(shares: list[float], neighbours: list[list[int]], source: int, endpoints: bool) -> None:
    """What passes through each node of the shortest paths from one source."""
    n = len(neighbours)
    far, ways = [-1] * n, [0.0] * n
    before: list[list[int]] = [[] for _ in range(n)]
    far[source], ways[source] = 0, 1.0
    queue = [source]
    for v in queue:  # which grows
        following, many = far[v] + 1, ways[v]
        for w in neighbours[v]:
            if far[w] < 0:
                far[w] = following
                queue.append(w)
            if far[w] == following:
                ways[w] += many
                before[w].append(v)
    if endpoints:
        shares[source] += len(queue) - 1
    through = [0.0] * n
    more = 1 if endpoints else 0
    for w in reversed(queue):
        share = (1 + through[w]) / ways[w]
        for v in before[w]:
            through[v] += ways[v] * share
        if w != source:
            shares[w] += through[w] + more


def scale(n: int, normalized: bool, directed: bool, endpoints: bool) -> float:
    """NetworkX's: shares of pairs, or pairs, each counted once where the graph has no directions."""
    if normalized:
        pairs = n * (n - 1) if endpoints else (n - 1) * (n - 2)
        return 1 / pairs if pairs > 0 else 1.0
    return 1.0 if directed else 0.5
