"""Products by a mask of tiles on a card."""

from __future__ import annotations

import pytest

import tilewise as tw

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.cuda


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("semiring", ["plus_times", "min_plus"])
def test_only_the_tiles_of_the_mask_count(dtype, semiring):
    torch.manual_seed(torch.seed() % 2**31)
    for tiles_m, tiles_k, height, depth, n in ((4, 5, 64, 32, 200), (3, 2, 7, 9, 11), (8, 8, 128, 128, 256)):
        mask = torch.rand(tiles_m, tiles_k) < 0.4
        M = torch.randint(1, 5, (tiles_m * height, tiles_k * depth), device="cuda").to(dtype)
        N = torch.randint(1, 5, (tiles_k * depth, n), device="cuda").to(dtype)
        held = torch.kron(mask.float(), torch.ones(height, depth)).cuda() > 0
        whole = torch.where(held, M, torch.full_like(M, 0.0 if semiring == "plus_times" else float("inf")))
        made = tw.block_sparse_matmul(M, N, mask, semiring=semiring)
        expected = tw.matmul(whole, N, semiring=semiring)
        torch.testing.assert_close(made, expected, rtol=1e-2, atol=1e-2)
