"""Products of a matrix and its transpose in the same memory: half of the tiles, and the same P."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed
from tilewise.dispatch.prepared import PREPARED, ByMemory

DTYPES = ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "complex64", "complex128")


def transposed(x):
    return x.swapaxes(-1, -2)


def drawn(rng, dtype, shape):
    x = rng.integers(-5, 6, shape).astype(dtype)
    return x + 1j * rng.integers(-5, 6, shape).astype(dtype) if dtype[0] == "c" else x


@pytest.mark.drawn(3)  # the generator is one; dtypes differ in what test_products has for each
@pytest.mark.parametrize("dtype", DTYPES)
def test_both_halves_are_right_in_every_layout(dtype):
    """Integers, so that every order of sums gives the same bits."""
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for how in range(6):
        m, k = int(rng.integers(64, 200)), int(rng.integers(1, 60)) if how or dtype == "float16" else 9000
        stack = (3,) if how == 1 else ()
        X = drawn(rng, dtype, (*stack, m, k)) if how % 2 else transposed(drawn(rng, dtype, (*stack, k, m)))
        wide = X.astype(np.float64) if dtype == "float16" else X  # whose sums NumPy rounds one by one
        expected = np.matmul(wide, transposed(wide).copy()).astype(dtype)
        assert tw.plan(X, transposed(X)).blocking.symmetric
        P = np.zeros((*stack, m, m), dtype)
        out = [P, np.asfortranarray(P), np.zeros((*stack, m, 2 * m), dtype)[..., ::2]][how % 3]
        for found in (tw.matmul(X, transposed(X)), tw.matmul(X, transposed(X), out=out)):
            np.testing.assert_array_equal(found, expected)
        before = drawn(rng, dtype, expected.shape)
        out[...] = before
        tw.matmul(X, transposed(X), out=out, accumulate=True)  # what P held is not symmetric
        np.testing.assert_array_equal(out, before + expected)


@pytest.mark.parametrize("semiring", ["min_plus", "max_times", "max_min"])
def test_semirings_whose_mul_commutes(semiring):
    X = np.random.default_rng(next_seed() % 2**32).random((90, 40), np.float32)
    P = tw.matmul(X, X.T, semiring=semiring)
    np.testing.assert_array_equal(P, tw.matmul(X, X.T.copy(), semiring=semiring))
    assert tw.plan(X, X.T, semiring=semiring).blocking.symmetric


def test_a_mul_that_does_not_commute_is_computed_whole():
    ring = tw.Semiring("first_minus", add=tw.minimum, mul=lambda x, y: x - y, zero=tw.largest)
    X = np.random.default_rng(0).random((80, 30))
    assert not tw.plan(X, X.T, semiring=ring).blocking.symmetric
    np.testing.assert_array_equal(tw.matmul(X, X.T, semiring=ring), (X[:, :, None] - X.T[None]).min(1))


def test_one_signature_for_one_memory_and_two():
    """Addresses are no part of a signature, so the prepared call looks at them."""
    rng = np.random.default_rng(next_seed() % 2**32)
    A, B = rng.random((100, 70)), rng.random((100, 70))
    PREPARED.clear()
    for _ in range(3):
        np.testing.assert_allclose(tw.matmul(A, A.T), A @ A.T)
        np.testing.assert_allclose(tw.matmul(A, B.T), A @ B.T)
    assert [call.__class__ for call in PREPARED.values()] == [ByMemory]


def test_the_plan_has_the_part_of_the_tiles_that_is_computed():
    A = np.ones((1000, 300))
    (note,) = tw.plan(A, A.T).notes
    part = float(note.removeprefix("symmetric: ").removesuffix(" of the tiles"))
    assert 0.5 <= part < 0.55  # by the width of the register tile
    assert not tw.plan(A, A.copy().T).notes
    assert not tw.plan(A[:30], A[:30].T).notes


def test_bias_and_activation_apply_to_every_cell():
    A, bias = np.random.default_rng(1).random((80, 30)) - 0.5, np.arange(80.0)
    expected = np.maximum(2 * (A @ A.T) + bias, 0)
    np.testing.assert_allclose(tw.matmul(A, A.T, alpha=2.0, bias=bias, activation="relu"), expected)
