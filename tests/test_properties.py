"""Laws that hold for every shape, stride, dtype and semiring."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewise as tw
from operands import SEMIRINGS, values
from oracle import assert_product
from strategies import cases


def product_is_right(case):
    M, N = case.view_m.of(case.memory_m), case.view_n.of(case.memory_n)
    try:
        dtype = np.promote_types(M.dtype, N.dtype)
    except TypeError:
        with pytest.raises(tw.DtypeError):
            tw.matmul(M, N, semiring=case.semiring)
        return
    if case.semiring == "logaddexp_plus" and dtype.kind in "c":
        return
    before = case.memory_m.tobytes(), case.memory_n.tobytes()
    P = tw.matmul(M, N, semiring=case.semiring, tile=case.tile)
    assert_product(P, M, N, case.semiring)
    assert (case.memory_m.tobytes(), case.memory_n.tobytes()) == before


@given(cases())
def test_any_shape_stride_dtype_and_semiring_gives_the_right_product(case):
    product_is_right(case)


@pytest.mark.slow
@settings(max_examples=2500)
@given(cases())
def test_exhaustively_any_shape_stride_dtype_and_semiring_gives_the_right_product(case):
    product_is_right(case)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.sampled_from(SEMIRINGS), st.integers(0, 2**31))
def test_the_tile_width_does_not_change_the_product(m, k, n, semiring, seed):
    """Sums are taken in order of k whatever the tile, so even the bits agree."""
    M, N = values((m, k), "float32", seed), values((k, n), "float32", seed + 1)
    first = tw.matmul(M, N, semiring=semiring, tile=1)
    for tile in (2, 7, 16, 32):
        np.testing.assert_array_equal(tw.matmul(M, N, semiring=semiring, tile=tile), first)


@given(st.sampled_from(("min_plus", "max_plus", "max_min", "min_max", "plus_times")), st.integers(0, 2**31))
def test_products_of_small_integers_are_associative(semiring, seed):
    rng = np.random.default_rng(seed)
    A, B, C = (rng.integers(-9, 10, (rng.integers(1, 12),) * 2) for _ in range(3))
    size = min(len(A), len(B), len(C))
    A, B, C = (x[:size, :size] for x in (A, B, C))
    left = tw.matmul(tw.matmul(A, B, semiring=semiring), C, semiring=semiring)
    right = tw.matmul(A, tw.matmul(B, C, semiring=semiring), semiring=semiring)
    np.testing.assert_array_equal(left, right)
