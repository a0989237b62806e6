"""Few rows or columns of halves along lines that start anywhere, with no card: random products among poison."""

from __future__ import annotations

import time

import ml_dtypes
import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import layout_of, run_recipe
from tilewise.algebra.dtypes import dtype_of
from tilewise.cache import DiskCache
from tilewise.engines.cuda.compile import compile_source
from tilewise.epilogue import Epilogue
from tilewise.kernels.detours import recipe_of
from tilewise.kernels.half_dots.family import HalfDots
from tilewise.kernels.half_dots.model import TILES, DotsWay, sides
from tilewise.kernels.half_dots.text import render_half_dots
from tilewise.machine import KNOWN_CARDS
from tilewise.problem import Problem

H200 = KNOWN_CARDS["h200"]
BF16 = np.dtype(ml_dtypes.bfloat16)


def among_poison(rng, rows, cols, dtype, turned):
    """Small whole numbers, NaN before, between and behind their lines; and all of the memory."""
    lines, length = (cols, rows) if turned else (rows, cols)
    apart, before = length + int(rng.integers(0, 4)), int(rng.integers(0, 8))
    memory = np.full(before + lines * apart + 8, np.nan, dtype)
    strides = (dtype.itemsize, apart * dtype.itemsize) if turned else (apart * dtype.itemsize, dtype.itemsize)
    x = np.ndarray((rows, cols), dtype, memory, before * dtype.itemsize, strides)
    x[...] = rng.integers(-3, 4, x.shape).astype(dtype)
    return x, memory


@pytest.mark.drawn(1)
@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.parametrize("dtype", [BF16, np.dtype(np.float16)])
def test_random_products_among_poison(tmp_path_factory, dtype):
    seed, folder = time.time_ns() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    tile, accumulate = TILES[0], bool(rng.integers(2))
    for _ in range(4):
        few, k, length = int(rng.integers(1, tile.rows + 1)), round(300 ** rng.random()), 1 + round(150 ** rng.random())
        swapped = bool(rng.integers(2))
        m, n = (length, few) if swapped else (few, length)
        M, _ = among_poison(rng, m, k, dtype, False if swapped else bool(rng.integers(2)))
        N, _ = among_poison(rng, k, n, dtype, bool(rng.integers(2)) if swapped else True)
        P, around = among_poison(rng, m, n, dtype, bool(rng.integers(2)))
        before, kind = around.copy(), dtype_of(dtype)
        layouts = layout_of(M), layout_of(N), layout_of(P)
        problem = Problem(m, k, n, (), kind, kind, tw.semirings["plus_times"], *layouts, accumulate)
        said = f"seed {seed}: {problem.shape} {dtype} {tile} {swapped} {accumulate}"
        if k == 1 and swapped not in sides(problem):
            continue  # lines of one element lie either way, and it may take them for the other one
        assert swapped in sides(problem), said
        wanted = (M.astype(np.float64) @ N.astype(np.float64) + accumulate * P.astype(np.float64)).astype(dtype)
        plan = HalfDots().pinned(problem, H200, DotsWay(tile, swapped))
        run_recipe(recipe_of(plan), folder, M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data)
        np.testing.assert_array_equal(P, wanted, err_msg=said)
        P[...] = np.ndarray(P.shape, dtype, before, P.ctypes.data - around.ctypes.data, P.strides)
        np.testing.assert_array_equal(around.view(np.uint16), before.view(np.uint16), err_msg=f"{said}: beside P")


def test_a_sample_compiles(tmp_path):
    text = render_half_dots(dtype_of(BF16), TILES[0], True, Epilogue(2.0, dtype_of(BF16), "gelu"))
    assert compile_source(text, "sm_90a", DiskCache("cubin", tmp_path))[:4] == b"\x7fELF"
