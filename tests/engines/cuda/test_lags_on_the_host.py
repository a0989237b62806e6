"""Groups whose lines of N start on no 16 bytes, taken by classes between which the sums move, with no card: among poison."""

from __future__ import annotations

import time
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import layout_of, run_recipe
from tilewise.algebra.dtypes import dtype_of
from tilewise.kernels.detours import recipe_of
from tilewise.kernels.registry import family_of
from tilewise.kernels.wgmma_half import lags
from tilewise.machine import KNOWN_CARDS
from tilewise.problem import Groups, Problem

H200 = KNOWN_CARDS["h200"]
PLUS_TIMES = tw.semirings["plus_times"]
BF16, F16 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)
needs_compiler = pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")


def among_poison(rng, shape, dtype, lead, before, between=0):
    """Small whole numbers in lines `lead` elements apart, NaN before, between and behind them; and all of the memory."""
    *stack, rows, cols = shape
    apart = (rows + between) * lead
    memory = np.full(before + int(np.prod(stack, dtype=int)) * apart + 8, np.nan, dtype)
    strides = [lead * dtype.itemsize, dtype.itemsize]
    x = np.ndarray(shape, dtype, memory, before * dtype.itemsize, [apart * dtype.itemsize] * len(stack) + strides)
    x[...] = rng.integers(-3, 4, x.shape).astype(dtype)
    return x, memory


def drawn(rng, dtype, rows, k, n, groups):
    """x, w whose lines lie an odd number of elements apart, and P."""
    odd = n + int(rng.integers(0, 6))
    odd += odd % 2 == 0
    x, _ = among_poison(rng, (rows, k), dtype, k + int(rng.integers(0, 5)), int(rng.integers(0, 9)))
    w, _ = among_poison(rng, (groups.count, k, n), dtype, odd, int(rng.integers(0, 9)), int(rng.integers(0, 3)))
    P, around = among_poison(rng, (rows, n), dtype, n + int(rng.integers(0, 5)), int(rng.integers(0, 9)))
    kind = dtype_of(dtype)
    problem = Problem(rows, k, n, (), kind, kind, PLUS_TIMES, *map(layout_of, (x, w, P)), groups=groups)
    return x, w, P, around, problem


def product(x, w, ends):
    """By a loop over the groups; rows behind the last are 0."""
    made = np.zeros((len(x), w.shape[2]), np.float64)
    for g, (a, b) in enumerate(pairwise([0, *ends.tolist()])):
        made[a:b] = x[a:b].astype(np.float64) @ w[g].astype(np.float64)
    return made.astype(x.dtype)


def check(way, problem, x, w, P, around, ends, folder, words):
    before, plan = around.copy(), family_of("wgmma_half").pinned(problem, H200, way)
    places = {"M": x, "N": w, "P": P, "offsets": ends}
    run_recipe(recipe_of(plan), folder, **{name: place.ctypes.data for name, place in places.items()})
    np.testing.assert_array_equal(P, product(x, w, ends), err_msg=words)
    P[...] = np.ndarray(P.shape, P.dtype, before, P.ctypes.data - around.ctypes.data, P.strides)
    np.testing.assert_array_equal(around.view(np.uint16), before.view(np.uint16), err_msg=f"{words}: beside P")


@needs_compiler
@pytest.mark.drawn(2)
@pytest.mark.parametrize("number", range(len(lags.LAGGED)))
def test_random_groups_among_poison(number, tmp_path_factory):
    seed, folder = time.time_ns() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    dtype, groups = (BF16, F16)[int(rng.integers(2))], Groups(int(rng.integers(1, 6)), "rows", bool(rng.integers(2)))
    rows, k, n = int(rng.integers(1, 300)), int(rng.integers(64, 700)), int(rng.integers(1, 500))
    x, w, P, around, problem = drawn(rng, dtype, rows, k, n, groups)
    ends = np.sort(rng.integers(0, rows + 1, groups.count)).astype(np.int64 if groups.wide else np.int32)
    if rng.random() < 0.5:
        ends[-1] = rows
    way = lags.ways(problem)[number]
    check(way, problem, x, w, P, around, ends, folder, f"seed {seed}: {problem.shape} {dtype} {way.spec()} {ends}")


def test_lines_an_even_number_of_elements_apart_are_not_taken():
    rng = np.random.default_rng(0)
    *_, problem = drawn(rng, BF16, 100, 130, 77, Groups(3))
    assert lags.takes(problem)
    w, _ = among_poison(rng, (3, 130, 77), BF16, 78, 0)
    of_n = layout_of(w)
    kind = dtype_of(BF16)
    even = Problem(100, 130, 77, (), kind, kind, PLUS_TIMES, problem.layout_m, of_n, problem.layout_p, groups=Groups(3))
    assert not lags.takes(even)
