"""The definition of `reproducible=`, held against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import tilewise as tw
from tilewise.backends.reference.ordered import multiply_add, ordered_product


def rounded(exact: Fraction, dtype: type) -> float:
    """To nearest, ties to even, subnormal numbers included: from the integers that floats of a dtype are."""
    if exact == 0:
        return 0.0
    bits, least = (24, -149) if dtype is np.float32 else (53, -1074)
    exponent = max(least, abs(exact.numerator).bit_length() - exact.denominator.bit_length() - bits)
    while abs(exact) >= Fraction(2) ** (exponent + bits):
        exponent += 1
    steps = exact / Fraction(2) ** exponent
    while abs(steps) < 2 ** (bits - 1) and exponent > least:
        exponent -= 1
        steps = exact / Fraction(2) ** exponent
    return float(np.ldexp(float(round(steps)), exponent))


def hard(rng: np.random.Generator, count: int, dtype: type) -> np.ndarray:
    """Numbers whose products nearly cancel, lie between two others, or are subnormal."""
    reach = 70 if dtype is np.float32 else 500
    x = rng.integers(1, 2**10, count) * 2.0 ** rng.integers(-reach, 20, count) * rng.choice([-1, 1], count)
    return (x * (1 + rng.choice([0, 2.0**-20, 2.0**-12], count))).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_multiply_add_is_rounded_once(dtype):
    rng = np.random.default_rng(3)
    x, y = hard(rng, 2000, dtype), hard(rng, 2000, dtype)
    near = -(x.astype(np.float64) * y).astype(dtype)
    c = np.where(rng.random(2000) < 0.5, near, hard(rng, 2000, dtype)).astype(dtype)
    made = multiply_add(x, y, c)
    for a, b, d, found in zip(x.tolist(), y.tolist(), c.tolist(), made.tolist(), strict=True):
        if np.isfinite(d) and np.isfinite(found):
            assert found == rounded(Fraction(a) * Fraction(b) + Fraction(d), dtype), (a, b, d)


def test_a_sum_is_chains_of_512_added_in_order():
    rng = np.random.default_rng(4)
    x, y = (rng.standard_normal(1300).astype(np.float32) for _ in "MN")
    chains = []
    for begin in (0, 512, 1024):
        chain = np.float32(0)
        for a, b in zip(x[begin : begin + 512].tolist(), y[begin : begin + 512].tolist(), strict=True):
            chain = np.float32(rounded(Fraction(a) * Fraction(b) + Fraction(float(chain)), np.float32))
        chains.append(chain)
    want = (chains[0] + chains[1]) + chains[2]
    assert ordered_product(x[None], y[:, None], np.float32, None)[0, 0] == want
    onto = ((np.float32(3) + chains[0]) + chains[1]) + chains[2]
    assert ordered_product(x[None], y[:, None], np.float32, np.float32([[3]]))[0, 0] == onto


def test_nan_has_one_bit_pattern():
    payload = np.array([[0xFFC01234]], np.uint32).view(np.float32)
    made = ordered_product(payload, np.float32([[1]]), np.float32, None)
    assert made.view(np.uint32)[0, 0] == 0x7FC00000


def test_with_k_of_0_nothing_is_added():
    """A chain of nothing would be +0, and make +0 of a −0."""
    before = np.array([[-0.0, 0.0, -np.nan, np.inf, -2.5]], np.float32)
    M, N = np.empty((1, 0), np.float32), np.empty((0, 5), np.float32)
    want = np.array([[0x80000000, 0, 0x7FC00000, 0x7F800000, 0xC0200000]], np.uint32)
    for kernel in (None, "reference"):
        P = before.copy()
        tw.matmul(M, N, out=P, accumulate=True, kernel=kernel, reproducible="everywhere")
        assert P.view(np.uint32).tolist() == want.tolist()
        assert not tw.matmul(M, N, kernel=kernel, reproducible="everywhere").view(np.uint32).any()
