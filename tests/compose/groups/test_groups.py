"""Groups of rows on the host: a product per group, error messages, rows by an index."""

from __future__ import annotations

from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed


def drawn(rng, dtype="float64", groups=None):
    groups = int(rng.integers(1, 9)) if groups is None else groups
    rows, k, n = (int(x) for x in rng.integers(0, 40, 3))
    ends = np.sort(rng.integers(0, rows + 1, groups))
    x, w = rng.integers(-4, 5, (rows, k)).astype(dtype), rng.integers(-4, 5, (groups, k, n)).astype(dtype)
    return x, w, ends.astype(rng.choice([np.int32, np.int64]))


def by_a_loop(x, w, ends, semiring="plus_times"):
    zero = tw.matmul(np.zeros((1, 0), x.dtype), np.zeros((0, 1), x.dtype), semiring=semiring)[0, 0]
    made = np.full((len(x), w.shape[2]), zero, x.dtype)
    for group, (a, b) in enumerate(pairwise([0, *ends.tolist()])):
        made[a:b] = tw.matmul(x[a:b], w[group], semiring=semiring)
    return made


@pytest.mark.drawn(2)
@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "max_plus"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_every_group_is_its_own_product(semiring, dtype):
    seed = next_seed() % 2**32
    rng = np.random.default_rng(seed)
    for _ in range(20):
        x, w, ends = drawn(rng, dtype)
        found = tw.grouped_matmul(x, w, ends, semiring=semiring)
        np.testing.assert_array_equal(found, by_a_loop(x, w, ends, semiring), err_msg=f"seed {seed}")


def test_groups_of_halves_and_strides():
    rng = np.random.default_rng(1)
    x, w = rng.integers(-3, 4, (30, 14)).astype(ml_dtypes.bfloat16), rng.integers(-3, 4, (3, 9, 7, 2))
    w = w.astype(ml_dtypes.bfloat16)[..., 1].swapaxes(1, 2)  # strided and transposed
    ends, out = np.array([0, 11, 30]), np.zeros((60, 18), ml_dtypes.bfloat16)[::2, ::2]
    made = tw.grouped_matmul(x[:, ::2], w, ends, out=out)
    assert made is out
    np.testing.assert_array_equal(out, by_a_loop(x[:, ::2], w, ends))


def test_groups_along_k_are_the_gradients_of_weights():
    seed = next_seed() % 2**32
    rng = np.random.default_rng(seed)
    for _ in range(20):
        x, _, ends = drawn(rng)
        y = rng.integers(-4, 5, (len(x), 5)).astype(x.dtype)
        found = tw.grouped_matmul(x, y, ends, along="k")
        wanted = [x[a:b].T @ y[a:b] for a, b in pairwise([0, *ends.tolist()])]
        np.testing.assert_array_equal(found, np.stack(wanted), err_msg=f"seed {seed}")


def test_rows_are_gathered_by_an_index():
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((10, 4)), rng.standard_normal((2, 4, 3))
    rows = rng.integers(0, 10, 25)
    ends = np.array([7, 25])
    np.testing.assert_array_equal(tw.grouped_matmul(x, w, ends, rows=rows), tw.grouped_matmul(x[rows], w, ends))
    with pytest.raises(tw.ShapeError, match="rows has 10, and x has rows 0 to 9"):
        tw.grouped_matmul(x, w, ends, rows=np.array([3, 10]))


def test_rows_are_added_up_in_their_order():
    seed = next_seed() % 2**32
    rng = np.random.default_rng(seed)
    y, rows = rng.standard_normal((50, 6)).astype(np.float32), rng.integers(-1, 9, 50)
    weights = rng.standard_normal(50).astype(np.float32)
    wanted = np.zeros((8, 6), np.float32)
    for i, target in enumerate(rows):
        if 0 <= target < 8:
            wanted[target] += weights[i] * y[i]
    np.testing.assert_array_equal(tw.scatter_rows(y, rows, 8, weights=weights), wanted, err_msg=f"seed {seed}")


X, W, ENDS = np.ones((6, 4)), np.ones((2, 4, 3)), np.array([2, 6])


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "message"),
    [
        ((X, W, np.array([4, 2])), {}, tw.ShapeError, r"offsets\[1\] is 2, before its group's first row 4"),
        ((X, W, np.array([-1, 2])), {}, tw.ShapeError, r"offsets\[0\] is -1"),
        ((X, W, np.array([2, 7])), {}, tw.ShapeError, "offsets ends at 7, and x has 6 rows"),
        ((X, W, np.array([2.0, 6.0])), {}, tw.DtypeError, "offsets has dtype float64: pass int32 or int64"),
        ((X, W, np.array([2, 4, 6])), {}, tw.ShapeError, "w has 2 matrices and offsets 3 ends"),
        ((X, W[:, :3], ENDS), {}, tw.ShapeError, "the 4 columns of x do not meet the 3 rows"),
        ((X[0], W, ENDS), {}, tw.ShapeError, "x is 4"),
        ((X, W[0], ENDS), {}, tw.ShapeError, "a stack of matrices, one for each group"),
        ((X, W, np.array([[2], [6]])), {}, tw.ShapeError, "one number for each group"),
        ((X, W, ENDS), {"along": "n"}, tw.UsageError, "along='n' is not known"),
        ((X, W, ENDS), {"out": np.ones((6, 4))}, tw.ShapeError, "out is 6×4, and the product is 6×3"),
        ((X, W, ENDS), {"out": np.ones((6, 3), np.float32)}, tw.DtypeError, "out has dtype float32"),
        ((X, X[:3], ENDS), {"along": "k"}, tw.ShapeError, "as many rows as x: 6"),
        ((X, W, ENDS), {"precision": "low"}, tw.UsageError, "precision"),
    ],
)
def test_bad_calls_get_a_sentence(arguments, keywords, error, message):
    with pytest.raises(error, match=message):
        tw.grouped_matmul(*arguments, **keywords)


def test_many_products_of_any_shapes():
    rng = np.random.default_rng(3)
    pairs = [(rng.standard_normal((m, k)), rng.standard_normal((k, n))) for m, k, n in rng.integers(1, 9, (6, 3))]
    for found, (M, N) in zip(tw.matmul_many(pairs), pairs, strict=True):
        np.testing.assert_allclose(found, M @ N, rtol=1e-12)
