"""A warp a tile, with no card: every tile and team over random layouts, behind the C++ compiler."""

from __future__ import annotations

import time

import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import layout_of, run_recipe
from tilewise.algebra.dtypes import dtype_of
from tilewise.kernels.detours import recipe_of
from tilewise.kernels.sliced_k.family import SlicedK
from tilewise.kernels.sliced_k.model import TILES, ways
from tilewise.machine import KNOWN_CARDS
from tilewise.problem import Problem

A100, H200 = KNOWN_CARDS["a100"], KNOWN_CARDS["h200"]


def lying(rng, shape, dtype):
    """Whole numbers in row-major, column-major or wider memory, backwards too; NaN around them."""
    rows, cols = shape
    even = rng.random() < 0.4  # lines that start on 16 bytes
    around = np.full((rows, -(-cols // 4) * 4) if even else (rows + 2, cols + 3), np.nan, dtype)
    if rng.random() < 0.5:
        around = np.full((cols, -(-rows // 4) * 4) if even else (cols + 2, rows + 3), np.nan, dtype).T
    x = around[:rows, :cols] if even else around[1 : rows + 1, 1 : cols + 1]
    x[...] = rng.integers(-4, 5, shape)
    return x[::-1] if rng.random() < 0.2 else x


@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_random_products_by_a_random_tile(tmp_path_factory, dtype):
    seed, folder = time.time_ns() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    tiles = TILES[np.dtype(dtype).itemsize]
    tile = tiles[rng.integers(len(tiles))]
    for _ in range(6):
        m, k, n = (int(x) for x in rng.integers(1, 150, 3))
        M, N, P = (lying(rng, shape, dtype) for shape in ((m, k), (k, n), (m, n)))
        P[...] = before = rng.integers(-4, 5, P.shape).astype(dtype)
        onto, kind = bool(rng.random() < 0.3), dtype_of(M.dtype)
        whole = P
        while whole.base is not None:
            whole = whole.base
        around = whole.copy()
        layouts = layout_of(M), layout_of(N), layout_of(P)
        problem = Problem(m, k, n, (), kind, kind, tw.semirings["plus_times"], *layouts, onto, "ieee")
        fitting = [way for way in ways(problem, A100) if way.tile == tile]
        way = fitting[rng.integers(len(fitting))]
        plan = SlicedK().pinned(problem, A100, way)
        run_recipe(recipe_of(plan), folder, M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data)
        said = f"seed {seed}: {m}x{k}x{n} {way.words()} {M.strides} {N.strides} {P.strides}"
        np.testing.assert_array_equal(P, M @ N + (before if onto else 0), err_msg=said)
        P[...] = before
        np.testing.assert_array_equal(whole, around, err_msg=f"written beside P, {said}")
