"""Reachability on packed bits: transitive closure and transitive reduction."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from tilewise.api import matmul
from tilewise.graph.closure import closure
from tilewise.interop.networkx.matrix import Matrix, Weights
from tilewise.interop.networkx.nodes import Nodes


def transitive_closure(G: Nodes, reflexive: bool | None = False) -> Any:
    if reflexive not in {None, True, False}:
        raise nx.NetworkXError("Incorrect value for the parameter `reflexive`")
    graph = G.graph
    made, nodes = graph.copy(), list(graph)
    edges: Matrix = np.isfinite(Weights(graph, None).matrix)
    reach: Matrix = closure(edges, semiring="lor_land")
    if reflexive is False and graph.is_directed():
        reach = matmul(edges, reach, semiring="lor_land")  # a way of one edge at least
    else:  # in an undirected graph no edge may be walked back, so no other way leads home
        np.fill_diagonal(reach, bool(reflexive))
    for row in range(len(nodes)):
        u = nodes[row]
        has = made[u]
        made.add_edges_from([(u, nodes[col]) for col in np.flatnonzero(reach[row]).tolist() if nodes[col] not in has])
    return made


def transitive_reduction(G: Nodes) -> Any:
    """Of an acyclic graph: edges to what no other way leads to."""
    if not G.is_directed():
        raise NotImplementedError("undirected graphs are left to NetworkX")
    made = Weights(G.graph, None)
    edges: Matrix = np.isfinite(made.matrix)
    beyond = matmul(edges, closure(edges, semiring="lor_land"), semiring="lor_land")
    if np.diagonal(beyond).any():
        raise nx.NetworkXError("Directed Acyclic Graph required for transitive_reduction")
    kept = edges & ~matmul(edges, beyond, semiring="lor_land")
    nodes = made.nodes
    reduced = nx.DiGraph()
    reduced.add_nodes_from(G.graph.nodes())
    reduced.add_edges_from((nodes[u], nodes[v]) for u, v in zip(*(x.tolist() for x in np.nonzero(kept)), strict=True))
    return reduced
