"""Every rung of the ladder is right at every size, on the card."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from operands import CARD_DTYPES, SEMIRINGS, values, works
from oracle import assert_product
from tilewise.kernels.ladder.model import LADDER

SIZES = (1, 2, 3, 15, 16, 17, 31, 33)
MIXES = ((1, 33, 2), (17, 1, 31), (3, 16, 15), (33, 31, 1), (16, 17, 33), (2, 15, 3), (1000, 17, 33), (31, 1000, 2))
EDGED = [name for name, rung in LADDER.items() if not rung.whole_tiles_only]


@pytest.mark.parametrize("kernel", EDGED)
@pytest.mark.parametrize("shape", [(s, s, s) for s in SIZES] + list(MIXES))
def test_small_and_rectangular(kernel, shape):
    m, k, n = shape
    M, N = values((m, k), "float32", m + k), values((k, n), "float32", n)
    for tile in (4, 8, 16, 32):
        if tile <= LADDER[kernel].max_tile:
            assert_product(tw.matmul(M, N, device="cuda", kernel=kernel, tile=tile), M, N, "plus_times")


@pytest.mark.parametrize("tile", [4, 8, 16, 32])
def test_tiled_takes_whole_tiles(tile):
    M, N = values((tile * 3, tile * 5), "float32", 1), values((tile * 5, tile), "float32", 2)
    assert_product(tw.matmul(M, N, device="cuda", kernel="tiled", tile=tile), M, N, "plus_times")
    with pytest.raises(tw.ShapeError, match="whole tiles"):
        tw.matmul(M[:-1], N, device="cuda", kernel="tiled", tile=tile)


@pytest.mark.parametrize("kernel", EDGED)
@pytest.mark.parametrize("size", [1000, 4097])
def test_large(kernel, size):
    M, N = values((size, size), "float32", 3), values((size, size), "float32", 4)
    P = tw.matmul(M, N, device="cuda", kernel=kernel)
    exact = M.astype(np.float64) @ N.astype(np.float64)
    assert np.linalg.norm(P - exact) / np.linalg.norm(exact) < 2e-6


@pytest.mark.parametrize("kernel", EDGED)
@pytest.mark.parametrize("dtype", CARD_DTYPES)
def test_every_dtype_and_semiring(kernel, dtype):
    for semiring in SEMIRINGS:
        if works(semiring, dtype):
            sums = semiring.endswith("_plus")  # integers under min and max stay within the range of weights
            M, N = (values(s, dtype, seed, True, weights=sums) for s, seed in (((19, 37), 5), ((37, 23), 6)))
            assert_product(tw.matmul(M, N, device="cuda", kernel=kernel, semiring=semiring), M, N, semiring)


def test_indices_beyond_32_bits():
    """A matrix of more than 2³¹ cells: the plan turns to 64-bit indices, and the last row is right."""
    import cupy

    rows, cols = 70_000, 32_000
    M = cupy.zeros((rows, cols), cupy.int8)
    M[-1] = 1
    N = cupy.ones((cols, 3), cupy.int8)
    for kernel in EDGED:
        P = tw.matmul(M, N, kernel=kernel)
        assert int(P[:-1].any()) == 0
        assert P[-1].tolist() == [np.int8(cols % 256)] * 3


def test_a_grid_taller_than_the_card_allows_is_launched_in_bands():
    M = values((70_000, 3), "float32", 1)
    N = values((3, 2), "float32", 2)
    assert_product(tw.matmul(M, N, device="cuda", kernel="naive", tile=1), M, N, "plus_times")
