"""A small square closed in place: bit for bit what Floyd–Warshall makes of it, k by k."""

from __future__ import annotations

import numpy as np
import pytest

from seeds import next_seed
from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DTYPES
from tilewise.backends.cpu.kernels.floyd.run import closer

RINGS = {
    "min_plus": (np.minimum, np.add, 0),
    "max_min": (np.maximum, np.minimum, None),
    "max_times": (np.maximum, np.multiply, 1),
}


def one_k_after_the_other(D: np.ndarray, ring: str) -> np.ndarray:
    add, mul, _ = RINGS[ring]
    for k in range(len(D)):
        D = add(D, mul(D[:, k, None], D[None, k, :]))
    return D


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("ring", list(RINGS))
def test_a_square_of_any_side_is_closed_to_the_bit(ring: str, dtype: str) -> None:
    if ring == "max_times" and dtype.startswith("int"):
        pytest.skip("products of integers grow along a path")
    seed = next_seed() % 2**32
    rng, close = np.random.default_rng(seed), closer(find_semiring(ring).over(DTYPES[dtype]))
    for n in (*range(1, 18), 30, 63, 64, 65, 80, 95):
        wide = np.full((n, n + 3), 77, dtype)  # a square of a larger matrix, whose other columns are not to be touched
        D = wide[:, :n]
        D[...] = (rng.random((n, n)) * (1000 if dtype.startswith("int") else 1)).astype(dtype)
        one = RINGS[ring][2]
        np.fill_diagonal(D, D.max() if one is None else one)
        right = one_k_after_the_other(D.copy(), ring)
        close(D)
        np.testing.assert_array_equal(D, right, f"seed {seed}, side {n}")
        assert (wide[:, n:] == 77).all()
