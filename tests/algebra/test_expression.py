"""A person's functions become trees; what cannot become one is refused with what to write instead."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tilewise as tw
from tilewise.algebra.dtypes import DTYPES
from tilewise.algebra.expression import Apply, Variable, trace
from tilewise.algebra.to_numpy import numpy_function

X, Y = Variable("x"), Variable("y")


def test_operators_build_the_tree_that_was_written():
    assert trace(lambda x, y: x * y + 1, "f") == trace(lambda a, b: (a * b) + 1, "g")
    assert trace(lambda x, y: x - y, "f") == Apply("sub", (X, Y))
    assert trace(tw.minimum, "f") == Apply("min", (X, Y))
    assert trace(np.fmax, "f") == Apply("max", (X, Y))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, y: x if x < y else y, r"cannot branch on a value .* tw.where"),
        (max, r"tw.maximum"),
        (lambda x, y: math.exp(x) + y, r"tw.exp"),
        (lambda x, y: np.minimum(x, y), r"tw.minimum \(it skips NaN\)"),
        (lambda x, y: np.sin(x), r"np.sin cannot be traced"),
        (lambda x, y: x**2, r"write x \* x"),
        (lambda x, y: "x", r"not str"),
        (lambda x: x, r"must be a function of two values"),
        (lambda x, y: [x, y][y], r"tw.exp"),
        (lambda x, y: -tw.largest, r"write tw.smallest"),
    ],
)
def test_errors_of_tracing_say_what_to_write(function, message):
    with pytest.raises(tw.AlgebraError, match=message):
        trace(function, "add")


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, y: tw.where(x > y, x - y, y * 2), lambda x, y: np.where(x > y, x - y, y * 2)),
        (lambda x, y: (x == y) + x, lambda x, y: (x == y).astype(float) + x),
        (lambda x, y: tw.absolute(x) / (1 + y * y), lambda x, y: abs(x) / (1 + y * y)),
        (lambda x, y: tw.log1p(tw.exp(x)) - tw.sqrt(y * y), lambda x, y: np.log1p(np.exp(x)) - np.sqrt(y * y)),
        (lambda x, y: tw.logical_or(x > 1, y > 1), lambda x, y: ((x > 1) | (y > 1)).astype(float)),
        (lambda x, y: 3, lambda x, y: np.full_like(x, 3)),
        (lambda x, y: tw.maximum(x, tw.smallest), lambda x, y: x),
    ],
)
def test_a_tree_means_what_the_function_means(function, expected):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 50))
    y[:5] = x[:5]
    made = numpy_function(trace(function, "f"), DTYPES["float64"])
    np.testing.assert_allclose(made(x, y), expected(x, y))
    out = np.empty(50)
    made(x, y, out=out)
    np.testing.assert_allclose(out, expected(x, y))
