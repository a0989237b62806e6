"""Semirings as typed expression trees: what add and mul mean, for which dtypes, and what fills a tile.

`dtypes` lists the dtypes, `expression` traces functions into trees, `semiring` checks the laws, `builtin` has the
built-in semirings, `table` says which dtype works where; `to_numpy`, `to_cuda` and `to_llvm` render a tree each.
"""
