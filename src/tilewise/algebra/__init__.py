"""Semirings as typed expression trees: what add and mul mean, for which dtypes, and what fills a tile.

`dtypes` names the numbers, `expression` traces functions into trees, `semiring` holds the laws, `builtin` the
semirings everybody knows, `table` says which dtype works where; `to_numpy`, `to_cuda` and `to_llvm` render a tree each.
"""
