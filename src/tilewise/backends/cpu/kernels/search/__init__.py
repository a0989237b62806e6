"""Dijkstra from many sources, one a task: closures of graphs with few edges. No product, so no family."""
