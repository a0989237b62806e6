"""Edges: sizes that are no multiple of the tile, slices, transposes and reversed rows all work in matmul."""

import numpy as np

import tilewise as tw
from tilewise.algebra.dtypes import DTYPES

rng = np.random.default_rng(0)
memory = rng.standard_normal((40, 40))
M = memory[:17, 1:34]  # 17×33, its rows 40 apart in memory
N = memory[::-1, 3:8][:33]  # 33×5, read from the last row up

for tile in (1, 2, 16, 32):
    P = tw.matmul(M, N, tile=tile)
    assert np.allclose(P, M @ N)

# the fill of a tile outside the matrix depends on the algebra, so that it does not change a sum
for name in ("plus_times", "min_plus", "max_times"):
    for dtype in ("float32", "int32"):
        algebra = tw.semirings[name].over(DTYPES[dtype])
        print(f"{name:<11} {dtype:<8} M is filled with {algebra.pad_m}, N with {algebra.pad_n}")
