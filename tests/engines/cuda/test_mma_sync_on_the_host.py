"""float64 on tensor cores with no card: tiles over random layouts, parts of k, edges, behind the C++ compiler."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import layout_of, run_recipe
from tilewise.algebra.dtypes import DTYPES
from tilewise.kernels.detours import recipe_of
from tilewise.kernels.mma_sync.family import MmaSync
from tilewise.kernels.mma_sync.model import DOUBLES, ways
from tilewise.machine import KNOWN_CARDS
from tilewise.problem import Problem

A100 = KNOWN_CARDS["a100"]
SLOW = (
    0,
    1,
    2,
    5,
    6,
)  # to compile and run on the host: the default run has a tile of 64, and a thin one of either side


def lying(rng, rows, cols):
    """Whole numbers in rows or in columns, on 16 bytes or not, and the memory around them."""
    around = rng.integers(-4, 5, (rows + 2, cols + rng.integers(0, 3))).astype(np.float64)
    return around, around[1 : rows + 1, :cols]


@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.parametrize(
    "number", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in range(len(DOUBLES))]
)
def test_random_products_by_every_tile_of_float64(tmp_path_factory, number):
    seed, folder, tile = time.time_ns() % 2**32, tmp_path_factory.getbasetemp(), DOUBLES[number]
    rng, draw = np.random.default_rng(seed), random.Random(seed)
    for _ in range(1 if number not in SLOW else 3):
        m, n = (draw.randint(1, side + 20) for side in (tile.rows, tile.cols))
        k, across = draw.randint(1, 300), [draw.random() < 0.5 for _ in "MN"]
        M = lying(rng, k, m)[1].T if across[0] else lying(rng, m, k)[1]
        N = lying(rng, n, k)[1].T if across[1] else lying(rng, k, n)[1]
        whole, P = lying(rng, m, n)
        around, before, kind = whole.copy(), P.copy(), DTYPES["float64"]
        problem = Problem(
            m, k, n, (), kind, kind, tw.semirings["plus_times"], layout_of(M), layout_of(N), layout_of(P)
        )  # fmt: skip
        can = [way for way in ways(problem, A100) if way.tile == tile and not way.edge_rows and not way.edge_cols]
        if not can:
            continue
        way = draw.choice(can)
        scratch = np.full(1 << 22, 0xFF, np.uint8)
        addresses = {"M": M.ctypes.data, "N": N.ctypes.data, "P": P.ctypes.data, "scratch": scratch.ctypes.data}
        run_recipe(recipe_of(MmaSync().pinned(problem, A100, way)), folder, **addresses)
        said = f"seed {seed}: {m}x{k}x{n} {way.spec()} {M.strides} {N.strides} {P.strides}"
        np.testing.assert_array_equal(P, M @ N, err_msg=said)
        P[...] = before
        np.testing.assert_array_equal(whole, around, err_msg=f"{said}: written beside P")
