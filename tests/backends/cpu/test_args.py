"""return_arg: the k that won, the lowest on a tie, −1 where nothing beat zero."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewise as tw
from tilewise.algebra.dtypes import DTYPES
from tilewise.errors import DtypeError, UsageError


@given(
    st.tuples(st.integers(1, 40), st.integers(1, 300), st.integers(1, 110)),
    st.sampled_from(["int8", "uint16", "int32", "int64", "float16", "float32", "float64"]),
    st.sampled_from(["min_plus", "max_plus", "max_min", "min_max"]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_the_lowest_k_wins_a_tie(
    shape: tuple[int, int, int], dtype: str, ring: str, transposed: bool, seed: int
) -> None:
    m, k, n = shape
    rng = np.random.default_rng(seed)
    M, N = (rng.integers(0, 6, s).astype(dtype) for s in ((m, k), (k, n)))
    if transposed:
        M = np.asfortranarray(M)
    P, arg = tw.matmul(M, N, semiring=ring, return_arg=True)
    mul = {"plus": np.add, "min": np.minimum, "max": np.maximum}[ring.split("_")[1]]
    products = mul(M[:, :, None], N[None])
    best = products.argmin(1) if ring.startswith("min") else products.argmax(1)
    np.testing.assert_array_equal(P, products.min(1) if ring.startswith("min") else products.max(1))
    zero = tw.semirings[ring].over(DTYPES[dtype]).zero
    np.testing.assert_array_equal(arg, np.where(zero == P, -1, best))
    assert arg.dtype == np.int64


def test_no_config_has_no_k() -> None:
    W = np.full((5, 5), np.inf)
    P, arg = tw.matmul(W, W, semiring="min_plus", return_arg=True)
    assert np.isinf(P).all()
    assert (arg == -1).all()
    W[:] = np.nan
    assert (tw.matmul(W, W, semiring="max_plus", return_arg=True)[1] == -1).all()
    assert (tw.matmul(W[:, :0], W[:0], semiring="min_plus", return_arg=True)[1] == -1).all()


def test_stacks_and_vectors_have_args_too() -> None:
    rng = np.random.default_rng(0)
    M, N = rng.random((3, 20, 30)), rng.random((30, 10))
    P, arg = tw.matmul(M, N, semiring="min_plus", return_arg=True)
    np.testing.assert_array_equal(arg, (M[..., None] + N).argmin(-2))
    P, arg = tw.matmul(M[0, 0], N, semiring="min_plus", return_arg=True)
    np.testing.assert_array_equal(arg, (M[0, 0][:, None] + N).argmin(0))
    assert P.shape == arg.shape == (10,)


def test_a_product_without_an_arg_is_refused() -> None:
    M = np.ones((3, 3))
    with pytest.raises(UsageError, match="picks none"):
        tw.matmul(M, M, return_arg=True)
    with pytest.raises(UsageError, match="exclude each other"):
        tw.matmul(M, M, semiring="min_plus", return_arg=True, accumulate=True, out=M.copy())
    with pytest.raises(DtypeError, match="compiled kernel"):
        tw.matmul(M.astype("g"), M.astype("g"), semiring="min_plus", return_arg=True)
