"""Computations made of products, for arrays that no framework traces: closures and paths, groups of rows."""
