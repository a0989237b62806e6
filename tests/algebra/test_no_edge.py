"""Integers' "no edge" stays out of every sum, in every dtype, backend and kind of call."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed
from weights import WEIGHED, by_hand, edges_of, weights


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("semiring", "dtype"), WEIGHED)
def test_it_is_the_zero_of_every_product(semiring, dtype):
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    edges, better = edges_of(semiring, dtype), min if semiring == "min_plus" else max
    for m, k, n, missing in ((1, 1, 1, 1.0), (3, 5, 4, 0.5), (17, 9, 33, 0.9), (1, 40, 7, 0.8), (20, 7, 1, 0.0)):
        M, N = weights(rng, (m, k), edges, missing), weights(rng, (k, n), edges, missing)
        expected, arg = by_hand(M, N, edges, better)
        for how in ({}, {"kernel": "reference"}, {"device": "simt", "tile": 4}):
            np.testing.assert_array_equal(tw.matmul(M, N, semiring=semiring, **how), expected)
        for x, y in ((M[::-1][::-1], N), (np.asfortranarray(M), N.T.copy().T)):
            np.testing.assert_array_equal(tw.matmul(x, y, semiring=semiring), expected)
        P, won = tw.matmul(M, N, semiring=semiring, return_arg=True)
        np.testing.assert_array_equal(P, expected)
        np.testing.assert_array_equal(won, arg)
        onto = rng.integers(edges.dtype.smallest(), edges.dtype.largest(), (m, n), dtype=M.dtype, endpoint=True)
        total = (np.minimum if better is min else np.maximum)(onto, expected)
        tw.matmul(M, N, semiring=semiring, out=onto, accumulate=True)
        np.testing.assert_array_equal(onto, total)


def test_a_call_that_is_known_already_looks_at_the_new_weights():
    top = np.iinfo(np.int32).max
    for M, expected in (([[3, 4]], [[8]]), ([[3, top]], [[8]]), ([[top, top]], [[top]]), ([[9, 1]], [[7]])):
        np.testing.assert_array_equal(
            tw.matmul(np.array(M, np.int32), np.array([[5], [6]], np.int32), semiring="min_plus"), expected
        )


@pytest.mark.parametrize(("semiring", "dtype"), WEIGHED)
def test_weights_beyond_the_range_are_refused(semiring, dtype):
    edges = edges_of(semiring, dtype)
    good = np.full((2, 2), edges.max_weight, dtype)
    bad = good.copy()
    bad[0, 1] += 1
    with pytest.raises(
        tw.DtypeError, match=f"N holds the weight {edges.max_weight + 1}: over {dtype} weights are from"
    ):
        tw.matmul(good, bad, semiring=semiring)


def test_ones_own_min_plus_keeps_the_same_law():
    mine = tw.Semiring("mine", add=tw.minimum, mul=lambda x, y: y + x, zero=tw.largest)
    top = np.iinfo(np.int64).max
    np.testing.assert_array_equal(tw.matmul([[top]], [[7]], semiring=mine), [[top]])


def test_the_closure_and_the_product_agree():
    rng = np.random.default_rng(0)
    top = np.iinfo(np.int32).max
    W = np.where(rng.random((60, 60)) < 0.05, rng.integers(1, 50, (60, 60)), top).astype(np.int32)
    np.fill_diagonal(W, 0)
    D = W
    for _ in range(6):
        D = tw.matmul(D, D, semiring="min_plus")
    np.testing.assert_array_equal(tw.closure(W), D)
    lengths = tw.closure(np.where(top > W, W, np.inf))
    np.testing.assert_array_equal(np.where(np.isinf(lengths), top, lengths), D)


def test_operands_of_two_dtypes_go_by_the_wider_one():
    rng = np.random.default_rng(next_seed() % 2**32)
    M, N = rng.integers(-128, 127, (5, 6), dtype=np.int8, endpoint=True), rng.integers(-99, 99, (6, 4), dtype=np.int32)
    for _ in range(2):  # the second time by a prepared call
        for x, y in ((M, N), (N.T.copy(), M.T.copy())):
            np.testing.assert_array_equal(tw.matmul(x, y, semiring="min_plus"), (x[:, :, None] + y[None]).min(1))
