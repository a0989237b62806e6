"""Shortest paths from many sources, one per task: closures of graphs with few edges. No product, so no family."""
