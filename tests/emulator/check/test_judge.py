"""The product that P is compared with."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tilewise.emulator.check.judge import integer_product


@pytest.mark.parametrize(
    ("low", "high"), [(-100, 100), (-(2**15), 2**15), (0, 2**31), (-(2**31), 2**31), (-(2**63), 2**63)]
)
def test_products_of_integers_are_those_of_int64_with_its_wrap(low, high):
    draw = np.random.default_rng(1)
    for m, k, n in ((5, 7, 3), (1, 300, 2), (33, 64, 65), (3, 0, 2)):
        one, two = (draw.integers(low, high - 1, shape, np.int64, endpoint=True) for shape in ((m, k), (k, n)))
        assert np.array_equal(integer_product(one, two), one @ two)


def test_the_least_integer():
    edge = np.array([[-(2**63), 2**63 - 1, -(2**47), 2**15]])
    assert np.array_equal(integer_product(edge, edge.T), edge @ edge.T)


def test_it_does_not_take_the_time_of_numpys_integers():
    """2,048³ of int took all of the 20 s of a check, and nothing was reported."""
    one = np.random.default_rng(1).integers(0, 2**31, (700, 700), np.int64)

    def least(function):
        times = []
        for _ in range(3):
            began = time.perf_counter()
            function(one, one)
            times.append(time.perf_counter() - began)
        return min(times)

    assert least(integer_product) < least(np.matmul)
