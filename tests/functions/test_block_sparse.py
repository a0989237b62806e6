"""Products by a mask of tiles are those of a matrix that is zero elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed, sample_size


@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "max_min", "lor_land"])
def test_only_the_tiles_of_the_mask_count(semiring):
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for _ in range(sample_size(20)):
        tiles_m, tiles_k, height, depth, n = rng.integers(1, 6, 5)
        mask = rng.random((tiles_m, tiles_k)) < rng.choice([0.0, 0.3, 1.0])
        M = rng.integers(1, 9, (tiles_m * height, tiles_k * depth)).astype(float)
        N = rng.integers(1, 9, (tiles_k * depth, n)).astype(float)
        zero = {"min_plus": np.inf, "max_min": -np.inf}.get(semiring, 0.0)
        whole = np.where(np.kron(mask, np.ones((height, depth))) > 0, M, zero)
        made = tw.block_sparse_matmul(M, N, mask, semiring=semiring)
        np.testing.assert_array_equal(made, tw.matmul(whole, N, semiring=semiring), err_msg=f"seed {seed}")


def test_integers_have_no_edge_where_there_is_no_tile():
    M = np.array([[3, 4], [5, 6]], np.int32)
    made = tw.block_sparse_matmul(M, M, [[True, False], [False, False]], semiring="min_plus")
    top = np.iinfo(np.int32).max
    assert made.tolist() == [[6, 7], [top, top]]


def test_what_does_not_fit_is_refused():
    M, N = np.ones((6, 6)), np.ones((6, 2))
    for mask, message in (
        (np.ones((4, 2)), "4 tiles along M's 6 rows"), (np.ones((2, 5)), "5 tiles along M's 6 columns"),
        (np.ones(2), "axes"), (np.ones((0, 2)), "0 tiles"),
    ):  # fmt: skip
        with pytest.raises(tw.ShapeError, match=message):
            tw.block_sparse_matmul(M, N, mask)
    with pytest.raises(tw.ShapeError, match="6 columns of M do not meet the 5 rows"):
        tw.block_sparse_matmul(M, np.ones((5, 2)), np.ones((2, 2)))


def test_lists_are_taken_as_everywhere():
    made = tw.block_sparse_matmul([[1.0, 2], [3, 4]], [[1.0], [1]], [[True, False], [True, True]])
    np.testing.assert_array_equal(made, [[1], [7]])
