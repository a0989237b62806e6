"""The backend's description, which NetworkX reads when it is imported: so nothing is imported here."""

from __future__ import annotations

from typing import Any

FUNCTIONS = {
    "floyd_warshall": "All-pairs shortest path lengths by blocked Floyd–Warshall.",
    "floyd_warshall_numpy": "The same as a NumPy array.",
    "floyd_warshall_predecessor_and_distance": "The same, with predecessors.",
    "all_pairs_shortest_path_length": "Unweighted; one closure for all sources, or searches in plain Python.",
    "all_pairs_dijkstra_path_length": "Weights of 0 or more; one closure for all sources.",
    "all_pairs_bellman_ford_path_length": "Weights of any sign; a negative cycle is named.",
    "all_pairs_shortest_path": "Unweighted; paths from one table of predecessors.",
    "all_pairs_dijkstra_path": "Weights of 0 or more; paths from one table of predecessors.",
    "all_pairs_dijkstra": "Lengths and paths together.",
    "all_pairs_bellman_ford_path": "Weights of any sign; a negative cycle is named.",
    "johnson": "Paths between all pairs, by one closure.",
    "shortest_path": "Without source and target: all pairs.",
    "shortest_path_length": "Without source and target: all pairs.",
    "average_shortest_path_length": "From counts of nodes by distance; weighted: the mean of one closure.",
    "eccentricity": "The depth of searches from all nodes; weighted: the largest length of each row of one closure.",
    "diameter": "The largest eccentricity.",
    "radius": "The smallest eccentricity.",
    "center": "Nodes of the smallest eccentricity.",
    "periphery": "Nodes of the largest eccentricity.",
    "closeness_centrality": "From counts of nodes by distance; weighted: sums of columns of one closure.",
    "harmonic_centrality": "From counts of nodes by distance; weighted: sums of reciprocals of one closure.",
    "global_efficiency": "From counts of nodes by distance.",
    "betweenness_centrality": "Unweighted: shortest paths are counted level by level, by products.",
    "transitive_closure": "Sets of nodes as bits, by strongly connected components.",
    "transitive_reduction": "Edges to nodes that no other path reaches, sets of nodes as bits.",
}


def get_info() -> dict[str, Any]:
    return {
        "backend_name": "tilewise",
        "project": "tilewise",
        "package": "tilewise",
        "short_summary": "All-pairs problems as tiled products over semirings.",
        "functions": {name: {"additional_docs": text} for name, text in FUNCTIONS.items()},
    }
