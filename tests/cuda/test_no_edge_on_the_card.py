"""Integers' "no edge" on arrays of a card: out of every sum, in every family, and no step slower for it."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed
from weights import WEIGHED, by_hand, edges_of, weights

cupy = pytest.importorskip("cupy")

KERNELS = {
    "plain": (40, 45, 33), "cells": (9, 20, 13), "few_rows": (3, 200, 64), "few_dots": (3, 200, 64),
    "tiled_edges": (20, 33, 17), "coarsened": (20, 33, 17), "register_tiled": (20, 33, 17), None: (33, 900, 40),
}  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("semiring", "dtype"), WEIGHED)
def test_every_family_keeps_it_apart(semiring, dtype, kernel):
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    m, k, n = KERNELS[kernel]
    edges, better = edges_of(semiring, dtype), min if semiring == "min_plus" else max
    M, N = weights(rng, (m, k), edges, 0.7, 0.05), weights(rng, (k, n), edges, 0.7, 0.05)
    M[0], N[:, -1] = edges.stored, edges.stored  # a row and a column that lead nowhere
    expected, won = by_hand(M, N, edges, better)
    there = cupy.asarray(M), cupy.asarray(N.T.copy()).T if kernel == "few_dots" else cupy.asarray(N)
    np.testing.assert_array_equal(tw.matmul(*there, semiring=semiring, kernel=kernel).get(), expected)
    if kernel in (None, "plain"):
        P, arg = tw.matmul(*there, semiring=semiring, kernel=kernel, return_arg=True)
        np.testing.assert_array_equal(P.get(), expected)
        np.testing.assert_array_equal(arg.get(), won)
        onto = rng.integers(edges.dtype.smallest(), edges.dtype.largest(), (m, n), dtype=dtype, endpoint=True)
        total = (np.minimum if better is min else np.maximum)(onto, expected)
        out = cupy.asarray(onto)
        tw.matmul(*there, semiring=semiring, kernel=kernel, out=out, accumulate=True)
        np.testing.assert_array_equal(out.get(), total)


def test_the_closure_keeps_it_apart():
    rng = np.random.default_rng(0)
    top = np.iinfo(np.int32).max
    W = np.where(rng.random((700, 700)) < 0.004, rng.integers(1, 50, (700, 700)), top).astype(np.int32)
    np.testing.assert_array_equal(tw.closure(cupy.asarray(W)).get(), tw.closure(W))


def test_a_step_is_not_slower_for_it():
    """A ring that adds and takes the minimum from a zero of its own needs no stand-in: the same steps, not packed."""
    plain = tw.semirings["min_plus"].with_zero(2**30)
    rng = np.random.default_rng(1)
    M, N = (cupy.asarray(rng.integers(0, 1000, (4096, 4096), dtype=np.int32)) for _ in range(2))

    def seconds(ring):
        times = []
        for _ in range(8):
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            tw.matmul(M, N, semiring=ring)
            end.record()
            end.synchronize()
            times.append(cupy.cuda.get_elapsed_time(begin, end) / 1e3)
        return min(times)

    assert cupy.array_equal(tw.matmul(M, N, semiring=plain), tw.matmul(M, N, semiring="min_plus"))
    with_it, without = seconds("min_plus"), seconds(plain)
    print(f"4096³ int32: {4096**3 / with_it / 1e12:.2f} T steps/s, {4096**3 / without / 1e12:.2f} without")
    assert with_it < 1.05 * without
