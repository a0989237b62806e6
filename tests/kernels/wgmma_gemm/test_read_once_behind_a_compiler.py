"""Few rows or columns of float32 by `read_once`, with no card: random products among poison, tf32 and planes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import layout_of, run_recipe
from seeds import next_seed
from tilewise.algebra.dtypes import DTYPES
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Problem
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.wgmma_gemm.family import ReadOnce
from tilewise.kernels.wgmma_gemm.read_once.model import TILES, OnceConfig

pytestmark = pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
H200 = KNOWN_CARDS["h200"]
OWN = ("transpose", "split", "read_once", "add_parts")


def among_poison(rng, rows, cols, transposed):
    """Whole numbers, NaN before, between and behind their rows; and all of the memory."""
    lines, length = (cols, rows) if transposed else (rows, cols)
    apart, before = length + int(rng.integers(0, 4)), int(rng.integers(0, 8))
    memory = np.full(before + lines * apart + 64, np.nan, np.float32)
    strides = (4, apart * 4) if transposed else (apart * 4, 4)
    x = np.ndarray((rows, cols), np.float32, memory, before * 4, strides)
    x[...] = rng.integers(-900, 900, x.shape)
    return x, memory


def drawn(rng, precision):
    """Operands of any layout, and a config for them."""
    few, k, length = int(rng.integers(1, 41)), int(rng.integers(4, 130)), int(rng.integers(41, 200))
    transposed, accumulate = bool(rng.integers(2)), precision == "tf32" and bool(rng.integers(2))
    m, n = (few, length) if transposed else (length, few)
    (M, _), (N, _) = among_poison(rng, m, k, bool(rng.integers(2))), among_poison(rng, k, n, bool(rng.integers(2)))
    gathered, least = bool(rng.integers(2)), min(few, int(rng.integers(16, 41)))
    tile = next(tile for tile in TILES[precision] if tile.gathered == gathered and tile.width >= least)
    return M, N, OnceConfig(tile, transposed, 1, int(rng.integers(1, 3))), accumulate


def multiplied(M, N, P, config, precision, folder, accumulate=False, alone=False):
    """By the recipe; `alone`=True: without the plain kernel behind planes."""
    layouts, one = (layout_of(M), layout_of(N), layout_of(P)), DTYPES["float32"]
    problem = Problem(
        M.shape[0], M.shape[1], N.shape[1], (), one, one, tw.semirings["plus_times"], *layouts, accumulate, precision
    )
    recipe = recipe_of(ReadOnce().pinned(problem, H200, config))
    if alone:
        recipe = replace(recipe, steps=tuple(step for step in recipe.steps if step.name in OWN))
    run_recipe(recipe, folder, M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data)


def held_against_float64(rng, output, precision, folder):
    M, N, config, accumulate = drawn(rng, precision)
    P, around = among_poison(rng, len(M), N.shape[1], False)
    before = around.copy()
    wanted = M.astype(np.float64) @ N.astype(np.float64) + accumulate * P.astype(np.float64)
    output = f"{output}: {M.shape} {M.strides} {N.shape} {N.strides} {precision} {config} {accumulate}"
    multiplied(M, N, P, config, precision, folder, accumulate, alone=True)
    np.testing.assert_allclose(P, wanted, rtol=0, atol=abs(wanted).max() * 1e-5, err_msg=output)
    P[...] = np.ndarray(P.shape, np.float32, before, P.ctypes.data - around.ctypes.data, P.strides)
    np.testing.assert_array_equal(around.view(np.uint32), before.view(np.uint32), err_msg=f"{output}: beside P")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("precision", ["tf32", "high"])
def test_a_random_product_among_poison(tmp_path_factory, precision):
    seed = next_seed() % 2**32
    held_against_float64(np.random.default_rng(seed), f"seed {seed}", precision, tmp_path_factory.getbasetemp())


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["tf32", "high"])
def test_many_random_products_among_poison(tmp_path_factory, precision):
    seed = next_seed() % 2**32
    rng = np.random.default_rng(seed)
    for _ in range(25):
        held_against_float64(rng, f"seed {seed}", precision, tmp_path_factory.getbasetemp())


@pytest.mark.slow
def test_what_planes_cannot_hold_is_made_on_plain_cores(tmp_path_factory):
    seed = next_seed() % 2**32
    rng = np.random.default_rng(seed)
    for value in (np.inf, 3e38):
        M, N, config, _ = drawn(rng, "high")
        (N if config.transposed else M)[0, 3] = value
        P, _ = among_poison(rng, len(M), N.shape[1], False)
        multiplied(M, N, P, config, "high", tmp_path_factory.getbasetemp())
        with np.errstate(all="ignore"):
            wanted = (M.astype(np.float64) @ N.astype(np.float64)).astype(np.float32)
        finite = np.isfinite(wanted)
        np.testing.assert_array_equal(np.isfinite(P), finite, err_msg=f"seed {seed}")
        np.testing.assert_array_equal(np.isnan(P), np.isnan(wanted), err_msg=f"seed {seed}")
        np.testing.assert_allclose(P[finite], wanted[finite], rtol=1e-5, atol=1.0, err_msg=f"seed {seed}")
