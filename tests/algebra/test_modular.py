"""Products modulo p: Python's own whole numbers are the judge."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed


def exact(M, N, p):
    return (M.astype(object) @ N.astype(object) % p).astype(np.int64)


@pytest.mark.parametrize("p", [2, 3, 97, 65_537, 1_000_003, 2**31 - 1, 2**31])
def test_products_of_any_length(p):
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for m, k, n in ((3, 1, 4), (5, 70, 6), (2, 3000, 2), (4, 0, 3)):
        M, N = rng.integers(-p, 3 * p, (m, k)), rng.integers(0, p, (k, n))
        made = tw.matmul(M, N, semiring=tw.modular(p))
        assert made.dtype == np.int64
        np.testing.assert_array_equal(made, exact(M, N, p) if k else np.zeros((m, n)))
        worst = np.full((m, max(k, 1)), p - 1)
        np.testing.assert_array_equal(tw.matmul(worst, worst.T, semiring=tw.modular(p)), exact(worst, worst.T, p))


def test_narrow_integers_vectors_and_stacks():
    rng = np.random.default_rng(0)
    M, N = rng.integers(0, 97, (2, 5, 40)).astype(np.int8), rng.integers(0, 97, (40, 6)).astype(np.int8)
    made = tw.matmul(M, N, semiring=tw.modular(97))
    assert made.dtype == np.int8
    np.testing.assert_array_equal(made, np.stack([exact(x, N, 97) for x in M]))
    assert tw.matmul(M[0, 0], N[:, 0], semiring=tw.modular(97)) == exact(M[0], N, 97)[0, 0]


@pytest.mark.parametrize("p", [128, 200, 300, 2**31])
def test_a_p_that_one_side_does_not_hold(p):
    rng = np.random.default_rng(0)
    for narrow in (np.int8, np.uint8):
        M, N = rng.integers(0, 127, (5, 6)).astype(narrow), rng.integers(-(2**40), 2**40, (6, 4))
        np.testing.assert_array_equal(tw.matmul(M, N, semiring=tw.modular(p)), exact(M, N, p))
    M = rng.integers(-128, 128, (5, 5)).astype(np.int8)
    if p == 128:
        np.testing.assert_array_equal(tw.matmul(M, M, semiring=tw.modular(p)), exact(M, M, p))


def test_the_same_by_every_route():
    rng = np.random.default_rng(0)
    M, N = rng.integers(0, 97, (5, 9)), rng.integers(0, 97, (9, 4))
    for how in ({"kernel": "reference"}, {"device": "simt", "tile": 4}, {"out": np.empty((5, 4), np.int64)}):
        np.testing.assert_array_equal(tw.matmul(M, N, semiring=tw.modular(97), **how), exact(M, N, 97))
    np.testing.assert_array_equal(
        tw.power(M[:, :5], 3, semiring=tw.modular(97)), exact(exact(M[:, :5], M[:, :5], 97), M[:, :5], 97)
    )
    assert tw.modular(97) == tw.modular(97)
    assert tw.modular(97) != tw.modular(89)


def test_values_that_do_not_fit_are_refused():
    with pytest.raises(tw.UsageError, match="p=1 must be a whole number from 2"):
        tw.modular(1)
    M = np.ones((2, 2), np.int32)
    with pytest.raises(tw.DtypeError, match="products modulo 65537 leave the range of int32"):
        tw.matmul(M, M, semiring=tw.modular(65_537), out=np.empty((2, 2), np.int32))
    with pytest.raises(tw.DtypeError, match="int8 does not hold remainders up to 250"):
        tw.matmul(M.astype(np.int8), M.astype(np.int8), semiring=tw.modular(251))
    with pytest.raises(tw.DtypeError, match="% needs integers"):
        tw.matmul(M * 1.0, M * 1.0, semiring=tw.modular(7))
