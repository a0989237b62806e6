"""Products of two sparse matrices, row by row (Gustavson)."""
