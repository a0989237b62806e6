"""Stacks and groups of rows at small odd sizes, for compute-sanitizer: `make sanitize`. Exits 1 when one is wrong."""

from __future__ import annotations

import sys
from itertools import pairwise

import ml_dtypes
import numpy as np

import tilewise as tw

wrong: list[str] = []
rng = np.random.default_rng(0)
HALF, SINGLE = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
for stack, (m, k, n), kernel, dtype in (
    ((5,), (70, 65, 72), "wgmma_half", HALF),
    ((2, 3), (33, 17, 35), "wgmma_half", HALF),
    ((40,), (17, 129, 33), "direct_half", HALF),
    ((3,), (65, 71, 131), "direct_half", HALF),
    ((40,), (17, 129, 33), "bulk_lines", HALF),  # lines in one run
    ((5,), (30, 90, 301), "bulk_lines", HALF),  # each for itself
    ((7,), (30, 20, 40), None, SINGLE),
    ((90,), (61, 3, 33), "cells", SINGLE),
    ((5,), (67, 130, 45), "buffered", SINGLE),
    ((9,), (70, 13, 45), "rank_k", HALF),
    ((3,), (33, 40, 300), "rank_k", SINGLE),
    ((5,), (70, 65, 72), "bf16x6", SINGLE),
    ((2,), (40, 700, 30), "bf16x6", SINGLE),
):
    M, N = (rng.integers(-3, 4, (*stack, *sides)).astype(dtype) for sides in ((m, k), (k, n)))
    with tw.to_device(M) as Md, tw.to_device(N) as Nd, tw.matmul(Md, Nd, kernel=kernel) as Pd:
        if not np.allclose(Pd.numpy().astype(float), M.astype(float) @ N.astype(float), rtol=8e-3, atol=0.5):
            wrong.append(f"{stack} x [{m}x{k}x{n}] {dtype} by {kernel}")
ends = np.array([3, 3, 90, 200], np.int32)
for kernel, dtype, n in (
    ("wgmma_half", HALF, 72),
    ("wgmma_half", HALF, 35),
    ("direct_half", HALF, 35),
    ("grouped", SINGLE, 35),
):
    x, w, y = (rng.integers(-3, 4, s).astype(dtype) for s in ((200, 40), (4, 40, n), (200, n)))
    by_k = None if kernel == "direct_half" else kernel  # which takes groups of rows alone
    with tw.to_device(x) as xd, tw.to_device(w) as wd, tw.to_device(y) as yd, tw.to_device(ends) as ends_d:
        found = tw.grouped_matmul(xd, wd, ends_d, kernel=kernel).numpy().astype(float)
        along_k = tw.grouped_matmul(xd, yd, ends_d, along="k", kernel=by_k).numpy().astype(float)
    for group, (a, b) in enumerate(pairwise([0, *ends.tolist()])):
        product, slope = (p.astype(float) @ q.astype(float) for p, q in ((x[a:b], w[group]), (x[a:b].T, y[a:b])))
        for what, held, right in (("rows", found[a:b], product), ("k", along_k[group], slope)):
            if not np.allclose(held, right, rtol=8e-3, atol=0.5):
                wrong.append(f"group {group} along {what}, {dtype} n {n} by {kernel}")
for n, dtype in ((40, HALF), (33, SINGLE)):  # rows in words of 16 bytes, and of one element
    y, rows, weights = (
        rng.integers(-3, 4, (300, n)).astype(dtype),
        rng.integers(-1, 51, 300),
        (rng.integers(0, 65, 300) / 64).astype(np.float32),  # every sum exact: a card may fuse where NumPy rounds twice
    )
    with tw.to_device(y) as yd, tw.to_device(rows) as rows_d, tw.to_device(weights) as weights_d:
        added = tw.scatter_rows(yd, rows_d, 50, weights=weights_d).numpy()
    if not np.array_equal(added, tw.scatter_rows(y, rows, 50, weights=weights)):
        wrong.append(f"rows of {n} {dtype} added by an index")
print(f"{len(wrong)} wrong", *wrong, sep="\n")
sys.exit(bool(wrong))
