"""Reachability with Python's integers as bit sets: transitive closure and transitive reduction.

All nodes of a strongly connected component reach the same set; an edge to another component costs one `|`. NetworkX
yields components in reverse topological order, so one sweep is enough, and a second one finds no change.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from typing import Any

import networkx as nx

from tilewise.interop.networkx.graph import NxGraph

BITS = bytes.maketrans(b"01", b"\0\1")


def transitive_closure(G: NxGraph, reflexive: bool | None = False) -> Any:
    if reflexive not in {None, True, False}:
        raise nx.NetworkXError("Incorrect value for the parameter `reflexive`")
    graph = G.graph
    made, nodes = graph.copy(), list(graph)
    for number, (u, reachable) in enumerate(zip(nodes, _reachable(graph), strict=True)):
        itself = 1 << number
        if reflexive:
            reachable |= itself
        elif reflexive is None or not graph.is_directed():  # an undirected edge makes no loop
            reachable &= ~itself
        has = made[u]
        made.add_edges_from([(u, v) for v in _members(reachable, nodes) if v not in has])
    return made


def transitive_reduction(G: NxGraph) -> Any:
    """The edges of an acyclic graph to nodes that no other path reaches."""
    if not G.is_directed():
        raise NotImplementedError("undirected graphs are left to NetworkX")
    reachable = _reachable(G.graph)
    if any(reached >> number & 1 for number, reached in enumerate(reachable)):
        raise nx.NetworkXError("Directed Acyclic Graph required for transitive_reduction")
    at = {node: number for number, node in enumerate(G.graph)}
    reduced = nx.DiGraph()
    reduced.add_nodes_from(G.graph.nodes())
    for u, others in G.graph.adjacency():
        further = 0
        for v in others:
            further |= reachable[at[v]]
        reduced.add_edges_from([(u, v) for v in others if not further >> at[v] & 1])
    return reduced


def _reachable(graph: Any) -> list[int]:
    """For each node the bit set of the nodes that a path of at least one edge reaches."""
    parts = nx.strongly_connected_components(graph) if graph.is_directed() else nx.connected_components(graph)
    at = {node: number for number, node in enumerate(graph)}
    made = [0] * len(at)
    steps: list[tuple[list[int], list[int]]] = []  # a component, and the heads of its edges
    for part in parts:
        steps.append(([at[u] for u in part], list({at[v] for u in part for v in graph.adj[u]})))
    changed = True
    while changed:
        changed = False
        for part, others in steps:
            reached = 0
            for v in others:
                reached |= made[v] | 1 << v
            if reached != made[part[0]]:
                changed = True
                for u in part:
                    made[u] = reached
    return made


def _members(bits: int, nodes: list[Any]) -> Iterator[Any]:
    """The nodes of a bit set; the last node is the first binary digit."""
    return compress(reversed(nodes), f"{bits:0{len(nodes)}b}".encode().translate(BITS))
