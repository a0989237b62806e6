"""New sizes of a known kind of call: right, as the first of its kind is, and none of it planned again."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed, sample_size
from tilewise.dispatch import kinds, product
from tilewise.errors import ShapeError

DTYPES = ("float32", "float64", "int8", "int32", "complex128", "bool")


@pytest.fixture(autouse=True, params=[0, 10**9], ids=["by a table", "without it"])
def first_sizes(request, monkeypatch):
    monkeypatch.setattr(kinds, "FIRST_SIZES", request.param)
    product.KINDS.clear()
    product.PREPARED.clear()


def drawn(rng, dtype, shape):
    """An array of this shape: row-major, column-major, a slice, backwards or with a stride."""
    wide = (rng.integers(-4, 5, [2 * extent for extent in shape]) + (0.5 if dtype[0] in "fc" else 0)).astype(dtype)
    x = wide[tuple(slice(extent) for extent in shape)]
    lies = rng.integers(5)
    if lies == 1:
        return np.asfortranarray(x)
    if lies == 2:
        return x
    if lies == 3:
        return np.ascontiguousarray(x)[..., ::-1]
    return np.ascontiguousarray(wide[..., ::2])[tuple(slice(extent) for extent in shape)] if lies == 4 else x.copy()


@pytest.mark.drawn(2)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_size_and_layout_of_a_kind_is_right(dtype):
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for _ in range(sample_size(20)):
        m, k, n, b = (int(rng.integers(1, 40)) for _ in range(4))
        left = [(m, k), (k,), (b, m, k), (1, m, k)][rng.integers(4)]
        right = [(k, n), (k,), (b, k, n), (k, n)][rng.integers(4)]
        M, N = drawn(rng, dtype, left), drawn(rng, dtype, right)
        expected = np.matmul(M, N)
        for found in (tw.matmul(M, N), tw.matmul(M, N)):
            np.testing.assert_allclose(found, expected, rtol=1e-5, err_msg=f"{left} {right}")
            assert np.shape(found) == np.shape(expected)
            assert found.dtype == expected.dtype
        if np.ndim(expected) == 2:
            out = drawn(rng, dtype, expected.shape)
            assert tw.matmul(M, N, out=out) is out
            np.testing.assert_allclose(out, expected, rtol=1e-5)


def test_a_new_size_is_not_planned(monkeypatch):
    tw.matmul(np.ones((3, 4)), np.ones((4, 5)))
    monkeypatch.setattr(product, "bind", None)
    assert (tw.matmul(np.ones((31, 29)), np.ones((29, 37))) == 29).all()
    assert tw.matmul(np.ones(271), np.ones(271)) == 271


def test_what_a_kind_does_not_take_is_bound_as_before():
    tw.matmul(np.ones((3, 4)), np.ones((4, 5)))
    with pytest.raises(ShapeError, match="7 columns of M do not meet the 6 rows of N"):
        tw.matmul(np.ones((3, 7)), np.ones((6, 5)))
    records = np.zeros((6, 7), np.dtype([("flag", "i1"), ("x", "f8")]))  # 9 bytes from number to number
    records["x"] = 2
    assert (tw.matmul(records["x"], np.ones((7, 5))) == 14).all()
    assert tw.matmul(np.ones((0, 11)), np.ones((11, 3))).shape == (0, 3)
    assert (tw.matmul(np.ones((4, 0)), np.ones((0, 3))) == 0).all()
    A = np.arange(121.0).reshape(11, 11)
    expected = A @ A
    assert tw.matmul(A, A, out=A) is A  # through a temporary
    assert (expected == A).all()


def test_weights_out_of_range_are_refused_at_every_size():
    tw.matmul(np.zeros((2, 2), "i4"), np.zeros((2, 2), "i4"), semiring="min_plus")
    far = np.full((5, 3), 2**31 - 1, "i4")
    assert (tw.matmul(far, np.ones((3, 4), "i4"), semiring="min_plus") == 2**31 - 1).all()
    far[1, 1] -= 1
    with pytest.raises(tw.errors.DtypeError, match="weight"):
        tw.matmul(far, np.ones((3, 4), "i4"), semiring="min_plus")


def test_a_product_that_is_cut_into_pieces_is_none_of_a_kind(monkeypatch):
    tw.matmul(np.ones((3, 4)), np.ones((4, 5)))
    for kind in product.KINDS.values():
        monkeypatch.setattr(kind, "most", 100)
    monkeypatch.setattr(kinds, "Ready", None)
    assert (tw.matmul(np.ones((13, 17)), np.ones((17, 19))) == 17).all()
