"""Prepared calls whose `out` overlaps an operand or has another dtype, and those whose P depends on no values."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed, sample_size
from tilewise import api

OTHER = {"f8": "f4", "f4": "f8", "i4": "i8"}


def placed(rng, memory, shape):
    """A view of `shape` somewhere in the memory: rows, columns, or every other column."""
    here, (rows, columns) = memory[rng.integers(60) :], shape
    layout = rng.integers(3)
    if layout == 2:
        return here[: 2 * rows * columns].reshape(rows, 2 * columns)[:, ::2]
    whole = here[: rows * columns]
    return whole.reshape(shape) if layout == 0 else whole.reshape(columns, rows).T


def test_products_into_memory_that_overlaps():
    rng = np.random.default_rng(next_seed())
    for _ in range(sample_size(600)):
        dtype = rng.choice(list(OTHER))
        memory = rng.integers(0, 5, 300).astype(dtype)
        result = OTHER[dtype] if rng.random() < 0.4 else dtype
        m, k, n = rng.choice([1, 2, 3, 5], 3)
        M, N = placed(rng, memory, (m, k)), placed(rng, memory, (k, n))
        out = placed(rng, memory if result == dtype else rng.integers(0, 5, 300).astype(result), (m, n))
        before, expected = memory.copy(), (M @ N).astype(result)
        for _ in range(3):
            memory[:] = before
            assert tw.matmul(M, N, out=out) is out
            np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("case", ["overlap", "dtype"])
def test_a_second_call_is_prepared(case, monkeypatch):
    M, N = np.arange(9.0).reshape(3, 3), np.eye(3)[::-1].copy()
    out = M if case == "overlap" else np.zeros((3, 3), np.float32)
    tw.matmul(M, N, out=out)
    expected = M @ N
    monkeypatch.setattr(api, "first_call", lambda *_: pytest.fail("not a prepared call"))
    assert tw.matmul(M, N, out=out) is out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    "shapes", [((0, 3), (3, 2)), ((2, 0), (0, 3)), ((0,), (0,)), ((4, 2, 0), (0, 3)), ((0, 2, 3), (3, 2))]
)
@pytest.mark.parametrize("semiring", ["plus_times", "min_plus"])
def test_products_that_depend_on_no_values_are_prepared(shapes, semiring, monkeypatch):
    M, N = map(np.zeros, shapes)
    first = tw.matmul(M, N, semiring=semiring)
    kept = np.array(first)
    first = np.asarray(first)
    if first.flags.writeable and first.ndim:
        first[...] = 7.0  # the caller's own: later products are not its views
    monkeypatch.setattr(api, "first_call", lambda *_: pytest.fail("not a prepared call"))
    second = tw.matmul(M, N, semiring=semiring)
    assert isinstance(second, np.ndarray) == (len(shapes[0]) > 1)
    np.testing.assert_array_equal(second, kept)
    assert np.asarray(second).dtype == kept.dtype
