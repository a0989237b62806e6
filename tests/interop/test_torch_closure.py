"""Gradients of closures: numerically checked, forward mode, stacks, and what has none."""

from __future__ import annotations

import pytest
import torch

import tilewise as tw

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")


def weights(n, missing, none=float("inf"), stack=()):
    made = torch.rand(*stack, n, n, dtype=torch.float64) + 0.1
    return torch.where(torch.rand(*stack, n, n) < missing, none, made).requires_grad_()


@pytest.mark.parametrize("semiring", ["min_plus", "max_min", "min_max"])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_the_gradient_is_the_one_differences_give(semiring, n):
    torch.manual_seed(n)
    W = weights(n, 0)
    off = ~torch.eye(n, dtype=torch.bool)  # staying where one is may count ±∞
    assert torch.autograd.gradcheck(lambda W: tw.closure(W, semiring=semiring)[off], (W,), check_forward_ad=True)


def test_chances_multiply_along_a_path():
    best = tw.Semiring("best_chance", add=tw.maximum, mul=lambda x, y: x * y, zero=0)
    torch.manual_seed(0)
    W = (torch.rand(6, 6, dtype=torch.float64) * 0.9).requires_grad_()
    assert torch.autograd.gradcheck(lambda W: tw.closure(W, semiring=best), (W,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda W: tw.closure(W, semiring=best), (W,))


def test_it_goes_along_the_path_and_nowhere_else():
    inf = float("inf")
    W = torch.tensor([[inf, 1, 5], [inf, inf, 1], [inf, inf, inf]], requires_grad=True)
    D, before = tw.closure(W, return_predecessors=True)
    assert tw.path(before, 0, 2) == [0, 1, 2]
    D[0, 2].backward()
    assert W.grad.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize("n", [30, 150])
def test_large_graphs_against_repeated_products(n):
    torch.manual_seed(n)
    W = weights(n, 0.8)
    weight = torch.rand(n, n, dtype=torch.float64)
    D = tw.closure(W)
    finite = torch.isfinite(D)
    (mine,) = torch.autograd.grad((D * weight)[finite].sum(), W)
    with torch.no_grad():
        identity = torch.full((n, n), float("inf"), dtype=torch.float64).fill_diagonal_(0)
    other = tw.power(torch.fmin(W, identity), 64, semiring="min_plus")
    torch.testing.assert_close(other[finite], D[finite])
    (theirs,) = torch.autograd.grad((other * weight)[finite].sum(), W)
    off = ~torch.eye(n, dtype=torch.bool)
    torch.testing.assert_close(mine[off], theirs[off])


def test_stacks_and_transforms():
    torch.manual_seed(0)
    W = weights(5, 0.3, stack=(4,))
    D = tw.closure(W)
    torch.testing.assert_close(D, torch.stack([tw.closure(w) for w in W]))
    assert torch.autograd.gradcheck(tw.closure, (weights(4, 0, stack=(2, 3)),))
    dense = weights(5, 0, stack=(4,)).detach()
    each = torch.vmap(torch.func.grad(lambda w: tw.closure(w).sum()))(dense)
    torch.testing.assert_close(each, torch.stack([torch.func.grad(lambda w: tw.closure(w).sum())(w) for w in dense]))


def test_an_unreached_target_has_no_gradient():
    W = torch.full((3, 3), float("inf"), requires_grad=True)
    (made,) = torch.autograd.grad(tw.closure(W).nan_to_num(posinf=0).sum(), W)
    assert (made == 0).all()
