"""Floyd–Warshall on one square: the diagonal step of a blocked closure. No product, so no family."""
