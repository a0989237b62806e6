"""Block-sparse products of tensors, and their gradients."""

from __future__ import annotations

import torch

import tilewise as tw


def test_values_and_gradients_are_those_of_the_masked_matrix():
    torch.manual_seed(torch.seed() % 2**31)
    for _ in range(5):
        mask = torch.rand(3, 4) < 0.5
        M, N = torch.randn(12, 20, dtype=torch.float64), torch.randn(20, 7, dtype=torch.float64)
        whole = torch.kron(mask.double(), torch.ones(4, 5, dtype=torch.float64))
        found = []
        for by_tiles in (True, False):
            m, n = M.clone().requires_grad_(), N.clone().requires_grad_()
            P = tw.block_sparse_matmul(m, n, mask) if by_tiles else (m * whole) @ n
            P.square().sum().backward()
            found.append((P.detach(), m.grad, n.grad))
        for ours, theirs in zip(*found, strict=True):
            torch.testing.assert_close(ours, theirs)
