"""Structured values drawn at random, and their product by the definition: one k after the other, in NumPy."""

from __future__ import annotations

import numpy as np

import tilewise as tw
from tilewise.algebra.dtypes import DTYPES

RINGS = [
    (tw.min_count, ("float64", "int64")), (tw.min_count, ("float32", "int32")), (tw.min_count, ("float64", "int32")),
    (tw.k_best(4), ("float32",) * 4), (tw.max_arg, ("float32", "int32")), (tw.dual, ("float64", "float64")),
    (tw.k_best(2), ("float64",) * 2), (tw.k_best(3), ("float32",) * 3),
]  # fmt: skip
NAMES = [f"{ring}-{'-'.join(dtypes)}" for ring, dtypes in RINGS]


def algebra_of(ring, dtypes):
    return ring.over([DTYPES[name] for name in dtypes])


def drawn(rng, ring, dtypes, shape):
    """Small whole numbers, many of them alike; a third of the values zero."""
    made = [rng.integers(0, 9, shape).astype(dtype) for dtype in dtypes]
    if ring.name.endswith("_best"):
        made = list(np.sort(np.stack(made), 0))
    gone = rng.random(shape) < 0.3
    for field, zero in zip(made, algebra_of(ring, dtypes).zero, strict=True):
        field[gone] = zero
    return tuple(made)


def expected(ring, dtypes, M, N):
    """The definition: one k after the other."""
    algebra, shape = algebra_of(ring, dtypes), (M[0].shape[0], N[0].shape[1])
    total = tuple(np.full(shape, zero, dtype) for dtype, zero in zip(dtypes, algebra.zero, strict=True))
    for k in range(M[0].shape[1]):
        total = algebra.evaluate(algebra.step, t=total, x=[x[:, k : k + 1] for x in M], y=[y[k : k + 1] for y in N])
    return tuple(np.asarray(value, dtype) for value, dtype in zip(total, dtypes, strict=True))


def assert_same(made, right):
    assert len(made) == len(right)
    for one, two in zip(made, right, strict=True):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one, two)
