"""Five thousand random stacks and as many random groups on the CPU, among poison, against a loop in exact numbers."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed

COUNT = 5000
DTYPES = ("float32", "float64", "int32", "int16")


def among_poison(rng, shape, dtype):
    """Small whole numbers in any layout, poison between them; and the memory around them."""
    poison = np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else np.nan
    order = rng.permutation(len(shape)) if rng.random() < 0.3 else np.arange(len(shape))
    extra = rng.integers(0, 3, len(shape))
    memory = np.full([shape[axis] + extra[axis] for axis in order], poison, dtype)
    x = memory[tuple(slice(shape[axis]) for axis in order)].transpose(np.argsort(order))
    x[...] = rng.integers(-4, 5, x.shape)
    return x, memory


def drawn_extents(rng, count, most):
    return [round(math.exp(rng.uniform(0, math.log(most)))) for _ in range(count)]


def check_beside(P, memory, before, case):
    """Nothing but P has changed."""
    after = memory.copy()
    P[...] = 0
    mine = memory.copy()
    memory[...] = before
    P[...] = 0
    assert mine.tobytes() == memory.tobytes(), f"{case}: something was written beside P"
    memory[...] = after


@pytest.mark.slow
def test_random_stacks():
    seed = next_seed() % 2**32
    rng = np.random.default_rng(seed)
    for number in range(COUNT):
        dtype, stack = DTYPES[number % len(DTYPES)], tuple(drawn_extents(rng, int(rng.integers(1, 4)), 6))
        m, k, n = drawn_extents(rng, 3, 70)
        of_m, of_n = (tuple(1 if rng.random() < 0.2 else e for e in stack) for _ in range(2))
        M, N = (among_poison(rng, shape, dtype)[0] for shape in ((*of_m, m, k), (*of_n, k, n)))
        shape = np.broadcast_shapes(of_m, of_n)
        P, memory = among_poison(rng, (*shape, m, n), dtype)
        before = memory.copy()
        case = f"seed {seed}, number {number}: {of_m}{of_n} {m}x{k}x{n} {dtype}"
        tw.matmul(M, N, out=P)
        wanted = np.matmul(M.astype(np.int64), N.astype(np.int64))
        np.testing.assert_array_equal(P, wanted.astype(dtype), err_msg=case)
        check_beside(P, memory, before, case)


@pytest.mark.slow
def test_random_groups():
    seed = next_seed() % 2**32
    rng = np.random.default_rng(seed)
    for number in range(COUNT):
        dtype, along = DTYPES[number % len(DTYPES)], ("rows", "k")[number % 3 == 0]
        groups, (rows, k, n) = int(rng.integers(1, 20)), drawn_extents(rng, 3, 90)
        x, _ = among_poison(rng, (rows, k), dtype)
        w, _ = among_poison(rng, (rows, n) if along == "k" else (groups, k, n), dtype)
        P, memory = among_poison(rng, (groups, k, n) if along == "k" else (rows, n), dtype)
        ends = np.sort(rng.integers(0, rows + 1, groups)).astype(rng.choice(["int32", "int64"]))
        before, out = memory.copy(), P if rng.random() < 0.5 else None
        case = f"seed {seed}, number {number}: {rows}x{k}x{n} {along} {ends.tolist()} {dtype}"
        found = tw.grouped_matmul(x, w, ends, along=along, out=out)
        left, right = x.astype(np.int64), w.astype(np.int64)
        wanted = np.zeros(P.shape, np.int64)
        for group, (a, b) in enumerate(pairwise([0, *ends.tolist()])):
            if along == "k":
                wanted[group] = left[a:b].T @ right[a:b]
            else:
                wanted[a:b] = left[a:b] @ right[group]
        np.testing.assert_array_equal(found, wanted.astype(dtype), err_msg=case)
        if out is not None:
            check_beside(P, memory, before, case)
