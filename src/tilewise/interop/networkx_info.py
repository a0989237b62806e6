"""What NetworkX asks every backend when it is imported itself: read then, so nothing is imported here."""

from __future__ import annotations

from typing import Any

FUNCTIONS = {
    "floyd_warshall": "All-pairs shortest path lengths by blocked Floyd–Warshall.",
    "floyd_warshall_numpy": "The same as a NumPy array.",
    "floyd_warshall_predecessor_and_distance": "The same, with predecessors.",
    "all_pairs_shortest_path_length": "Every edge counts 1; one closure for all sources.",
    "all_pairs_dijkstra_path_length": "Weights of 0 or more; one closure for all sources.",
    "all_pairs_bellman_ford_path_length": "Weights of any sign; a negative cycle is named.",
    "transitive_closure": "Reachability on packed bits.",
}


def get_info() -> dict[str, Any]:
    return {
        "backend_name": "tilewise",
        "project": "tilewise",
        "package": "tilewise",
        "short_summary": "All-pairs problems as tiled products over semirings.",
        "functions": {name: {"additional_docs": text} for name, text in FUNCTIONS.items()},
    }
