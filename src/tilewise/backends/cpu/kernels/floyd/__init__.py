"""Floyd–Warshall on one square: what a blocked closure does on its diagonal. No product, so no family."""
