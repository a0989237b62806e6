"""Stacks and groups whose rows of N come by class, between which the sums move, with no card: among poison."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import layout_of, run_recipe
from seeds import next_seed
from tilewise.algebra.dtypes import dtype_of
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Groups, Problem
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.registry import family_of
from tilewise.kernels.wgmma_gemm.wgmma_half import alignment_classes

H200 = KNOWN_CARDS["h200"]
PLUS_TIMES = tw.semirings["plus_times"]
BF16, F16 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)
needs_compiler = pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")


def among_poison(rng, shape, dtype, lead, before, between=0):
    """Small whole numbers in lines `lead` elements apart, NaN around them; and all of the memory."""
    *stack, rows, _ = shape
    apart = (rows + between) * lead
    memory = np.full(before + int(np.prod(stack, dtype=int)) * apart + 8, np.nan, dtype)
    strides = [lead * dtype.itemsize, dtype.itemsize]
    x = np.ndarray(shape, dtype, memory, before * dtype.itemsize, [apart * dtype.itemsize] * len(stack) + strides)
    x[...] = rng.integers(-3, 4, x.shape).astype(dtype)
    return x, memory


def apart(rng, length):
    """Elements from line to line, no multiple of 8, and before the first one: some line starts on 16 bytes."""
    lead = length + int(rng.integers(0, 6))
    lead += lead % 8 == 0
    return lead, int(rng.integers(0, 9)) * math.gcd(lead, 8)


def drawn(rng, dtype, rows, k, n, stack, groups=None):
    """x, w with misaligned rows, and P."""
    own = () if groups else (stack,)
    x, _ = among_poison(rng, (*own, rows, k), dtype, k + int(rng.integers(0, 5)), int(rng.integers(0, 9)))
    w, _ = among_poison(rng, (stack, k, n), dtype, *apart(rng, n), int(rng.integers(0, 3)))
    P, around = among_poison(rng, (*own, rows, n), dtype, n + int(rng.integers(0, 5)), int(rng.integers(0, 9)))
    kind = dtype_of(dtype)
    return x, w, P, around, Problem(rows, k, n, own, kind, kind, PLUS_TIMES, *map(layout_of, (x, w, P)), groups=groups)


def product(x, w, ends):
    """By a loop over the groups; rows behind the last are 0."""
    made = np.zeros((len(x), w.shape[2]), np.float64)
    for g, (a, b) in enumerate(pairwise([0, *ends.tolist()])):
        made[a:b] = x[a:b].astype(np.float64) @ w[g].astype(np.float64)
    return made.astype(x.dtype)


def check(config, problem, wanted, P, around, folder, case, **places):
    before, plan = around.copy(), family_of("wgmma_half").pinned(problem, H200, config)
    run_recipe(recipe_of(plan), folder, P=P.ctypes.data, **{name: place.ctypes.data for name, place in places.items()})
    np.testing.assert_array_equal(P, wanted, err_msg=case)
    P[...] = np.ndarray(P.shape, P.dtype, before, P.ctypes.data - around.ctypes.data, P.strides)
    np.testing.assert_array_equal(around.view(np.uint16), before.view(np.uint16), err_msg=f"{case}: beside P")


@needs_compiler
@pytest.mark.drawn(1)
@pytest.mark.parametrize("number", range(len(alignment_classes.N_BY_CLASSES)))
def test_random_groups_among_poison(number, tmp_path_factory):
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    dtype, groups = (BF16, F16)[int(rng.integers(2))], Groups(int(rng.integers(1, 6)), "rows", bool(rng.integers(2)))
    rows, k, n = int(rng.integers(1, 200)), int(rng.integers(64, 300)), int(rng.integers(1, 300))
    x, w, P, around, problem = drawn(rng, dtype, rows, k, n, groups.count, groups)
    ends = np.sort(rng.integers(0, rows + 1, groups.count)).astype(np.int64 if groups.wide else np.int32)
    if rng.random() < 0.5:
        ends[-1] = rows
    config = alignment_classes.configs(problem)[number]
    case = f"seed {seed}: {problem.shape} {dtype} {config.spec()} {ends}"
    check(config, problem, product(x, w, ends), P, around, folder, case, M=x, N=w, offsets=ends)


@needs_compiler
@pytest.mark.drawn(1)
@pytest.mark.parametrize("number", [n for n, tile in enumerate(alignment_classes.IN_STACKS) if tile.together == 1])
def test_random_stacks_among_poison(number, tmp_path_factory):
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    dtype, stack = (BF16, F16)[int(rng.integers(2))], int(rng.integers(2, 5))
    m, k, n = int(rng.integers(1, 200)), int(rng.integers(64, 200)), int(rng.integers(1, 200))
    x, w, P, around, problem = drawn(rng, dtype, m, k, n, stack)
    config = alignment_classes.configs(problem)[number]
    wanted = (x.astype(np.float64) @ w.astype(np.float64)).astype(dtype)
    check(config, problem, wanted, P, around, folder, f"seed {seed}: {problem} {config.spec()}", M=x, N=w)


def test_aligned_rows_are_not_taken():
    *_, problem = drawn(np.random.default_rng(0), BF16, 100, 130, 77, 3, Groups(3))
    assert alignment_classes.takes(problem)
    for row, stack, misalignment in ((80, 80 * 130, 0), (78, 78 * 130, 2), (77, 77 * 130 + 8, 0)):
        of_n = problem.layout_n._replace(row=row, stack=(stack,), misalignment=misalignment)
        assert not alignment_classes.takes(replace(problem, layout_n=of_n)), (row, stack, misalignment)
