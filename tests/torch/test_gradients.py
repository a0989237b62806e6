"""Gradients over every semiring: numerically checked, of the first and of the second order."""

from __future__ import annotations

import pytest
import torch

import tilewise as tw

NUMERIC = [name for name in tw.semirings if name != "lor_land"]
SHAPES = [((5, 7), (7, 3)), ((7,), (7,)), ((7,), (7, 3)), ((5, 7), (7,)), ((2, 1, 3, 4), (3, 4, 2)), ((3, 0), (0, 2))]


def operands(*shapes, dtype=torch.float64):
    torch.manual_seed(sum(map(len, shapes)))
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


@pytest.mark.drawn(12)
@pytest.mark.parametrize("semiring", NUMERIC)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_the_gradient_is_the_one_differences_give(semiring, shapes):
    M, N = operands(*shapes)
    assert torch.autograd.gradcheck(lambda M, N: tw.matmul(M, N, semiring=semiring), (M, N))


@pytest.mark.drawn(4)
@pytest.mark.parametrize("semiring", NUMERIC)
def test_the_gradient_of_the_gradient_too(semiring):
    M, N = operands((4, 5), (5, 3))
    assert torch.autograd.gradgradcheck(lambda M, N: tw.matmul(M, N, semiring=semiring), (M, N))


def test_complex_products():
    M, N = operands((4, 5), (5, 3), dtype=torch.complex128)
    assert torch.autograd.gradcheck(tw.matmul, (M, N))


REGISTERED = {
    "best_chance": tw.Semiring("best_chance", add=tw.maximum, mul=lambda x, y: x * y, zero=0),
    "distance": tw.Semiring(
        "distance", add=lambda x, y: x + y, mul=lambda x, y: tw.absolute(x - y), zero=0, pad_m=0, pad_n=0
    ),
    "soft": tw.Semiring("soft", add=tw.logaddexp, mul=lambda x, y: x + 2 * y, zero=float("-inf")),
    "mixed": tw.Semiring("mixed", add=tw.minimum, mul=lambda x, y: tw.sqrt(x * x + tw.exp(y)), zero=tw.largest,
                         pad_m=float("inf"), pad_n=0),
}  # fmt: skip


@pytest.mark.parametrize("semiring", REGISTERED.values(), ids=str)
def test_user_defined_semirings_have_gradients(semiring):
    M, N = operands((4, 5), (5, 3))
    assert torch.autograd.gradcheck(lambda M, N: tw.matmul(M, N, semiring=semiring), (M, N))


def test_an_add_without_a_derivative_is_refused():
    odd = tw.Semiring("odd", add=lambda x, y: x + y + x * y, mul=lambda x, y: x * y, zero=0)
    M, N = operands((2, 2), (2, 2))
    with pytest.raises(tw.UsageError, match="odd has no gradient"):
        tw.matmul(M, N, semiring=odd).sum().backward()


def test_the_whole_gradient_goes_to_the_k_that_won():
    M = torch.tensor([[1.0, 5.0, 2.0]], requires_grad=True)
    N = torch.tensor([[9.0], [1.0], [1.5]], requires_grad=True)
    P, k = tw.matmul(M, N, semiring="min_plus", return_arg=True)
    P.backward(torch.full_like(P, 7.0))
    assert (P.item(), k.item()) == (3.5, 2)
    assert M.grad.tolist() == [[0, 0, 7]]
    assert N.grad.tolist() == [[0], [0], [7]]


def test_cells_without_a_winner_have_no_gradient():
    M = torch.full((1, 2), float("inf"), requires_grad=True)
    N = torch.zeros(2, 1, requires_grad=True)
    tw.matmul(M, N, semiring="min_plus").backward(torch.ones(1, 1))
    assert M.grad.tolist() == [[0, 0]]
    assert N.grad.tolist() == [[0], [0]]


@pytest.mark.parametrize("far", [1e4, -1e4])
def test_soft_weights_neither_overflow_nor_vanish(far):
    M, N = operands((4, 6), (6, 5))
    with torch.no_grad():
        M += far
        M[0] = float("-inf")
    P = tw.matmul(M, N, semiring="logaddexp_plus")
    weights = torch.randn(4, 5, dtype=torch.float64)
    P[1:].backward(weights[1:])
    soft = torch.softmax(M[1:, :, None] + N[None], dim=1).detach()
    torch.testing.assert_close(M.grad[1:], (soft * weights[1:, None]).sum(-1))
    torch.testing.assert_close(N.grad, (soft * weights[1:, None]).sum(0))
    assert M.grad[0].tolist() == [0] * 6


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_a_gradient_has_the_dtype_of_its_operand(dtype):
    M, N = operands((4, 5), (5, 3), dtype=torch.float32)
    M = M.detach().to(dtype).requires_grad_()
    tw.matmul(M, N).sum().backward()
    assert M.grad.dtype == dtype
    assert N.grad.dtype == torch.float32
    torch.testing.assert_close(N.grad, M.detach().float().T @ torch.ones(4, 3), atol=1e-5, rtol=1e-5)


def test_only_what_is_wanted_is_computed(monkeypatch):
    from tilewise.dispatch import product

    calls, plain = [], product.matmul
    monkeypatch.setattr(product, "matmul", lambda *a, **k: (calls.append(a), plain(*a, **k))[1])
    M, N = operands((4, 5), (5, 3))
    tw.torch.matmul(M.detach(), N).sum().backward()
    assert len(calls) == 2, "the product, and dN alone"
