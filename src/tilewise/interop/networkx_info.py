"""What NetworkX asks every backend when it is imported itself: read then, so nothing is imported here."""

from __future__ import annotations

from typing import Any

FUNCTIONS = {
    "floyd_warshall": "All-pairs shortest path lengths by blocked Floyd–Warshall.",
    "floyd_warshall_numpy": "The same as a NumPy array.",
    "floyd_warshall_predecessor_and_distance": "The same, with predecessors.",
    "all_pairs_shortest_path_length": "Every edge counts 1; one closure for all sources, or searches in plain Python.",
    "all_pairs_dijkstra_path_length": "Weights of 0 or more; one closure for all sources.",
    "all_pairs_bellman_ford_path_length": "Weights of any sign; a negative cycle is named.",
    "all_pairs_shortest_path": "Every edge counts 1; paths from one table of predecessors.",
    "all_pairs_dijkstra_path": "Weights of 0 or more; paths from one table of predecessors.",
    "all_pairs_dijkstra": "Lengths and paths together.",
    "all_pairs_bellman_ford_path": "Weights of any sign; a negative cycle is named.",
    "johnson": "Paths between all pairs, by one closure.",
    "shortest_path": "Without source and target: all pairs.",
    "shortest_path_length": "Without source and target: all pairs.",
    "average_shortest_path_length": "From how many nodes are how far from each; weighted: the mean of one closure.",
    "eccentricity": "How far searches from all nodes go; weighted: the largest length of each row of one closure.",
    "diameter": "The largest eccentricity.",
    "radius": "The smallest eccentricity.",
    "center": "Nodes of the smallest eccentricity.",
    "periphery": "Nodes of the largest eccentricity.",
    "closeness_centrality": "From how many nodes are how far from each; weighted: sums of columns of one closure.",
    "harmonic_centrality": "From how many nodes are how far from each; weighted: sums of reciprocals of one closure.",
    "global_efficiency": "From how many nodes are how far from each.",
    "betweenness_centrality": "Unweighted: shortest paths are counted level by level, by products.",
    "transitive_closure": "Sets of nodes as bits, strongly connected parts first.",
    "transitive_reduction": "Edges to what no other way leads to, sets of nodes as bits.",
}


def get_info() -> dict[str, Any]:
    return {
        "backend_name": "tilewise",
        "project": "tilewise",
        "package": "tilewise",
        "short_summary": "All-pairs problems as tiled products over semirings.",
        "functions": {name: {"additional_docs": text} for name, text in FUNCTIONS.items()},
    }
