"""Brandes's betweenness centrality in Python on numbered nodes: for first calls, while kernels are compiled.

Terms are added in NetworkX's order, so the sums are the same bit for bit.
"""

from __future__ import annotations

from typing import Any

from tilewise.interop.networkx.graph import NxGraph


def betweenness_centrality(
    G: NxGraph,
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
    """Add the share of shortest paths from one source that pass through each node."""
    n = len(neighbours)
    far, paths = [-1] * n, [0.0] * n
    predecessors: list[list[int]] = [[] for _ in range(n)]
    far[source], paths[source] = 0, 1.0
    queue = [source]
    for v in queue:  # grows while it is read
        following, many = far[v] + 1, paths[v]
        for w in neighbours[v]:
            if far[w] < 0:
                far[w] = following
                queue.append(w)
            if far[w] == following:
                paths[w] += many
                predecessors[w].append(v)
    if endpoints:
        shares[source] += len(queue) - 1
    through = [0.0] * n
    more = 1 if endpoints else 0
    for w in reversed(queue):
        share = (1 + through[w]) / paths[w]
        for v in predecessors[w]:
            through[v] += paths[v] * share
        if w != source:
            shares[w] += through[w] + more


def scale(n: int, normalized: bool, directed: bool, endpoints: bool) -> float:
    """NetworkX's normalisation: by the number of pairs, or a half for undirected graphs."""
    if normalized:
        pairs = n * (n - 1) if endpoints else (n - 1) * (n - 2)
        return 1 / pairs if pairs > 0 else 1.0
    return 1.0 if directed else 0.5
