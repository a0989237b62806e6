"""einsum, chain and power of tensors: torch's values and gradients."""

from __future__ import annotations

import pytest
import torch

import tilewise as tw
from tilewise.functions.contraction import einsum as einsum_module

EQUATIONS = ["ij,jk->ik", "bij,bjk->bik", "ij,jk,kl->il", "bi,bi->b", "ij->j", "ii->i", "i,j->ij", "ij,ij,jk->k"]
SIZES = {"i": 3, "j": 3, "k": 4, "l": 2, "b": 3}


def operands(equation):
    return [
        torch.randn([SIZES[c] for c in w], dtype=torch.float64, requires_grad=True)
        for w in equation.split("->")[0].split(",")
    ]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_values_and_gradients_are_torchs(equation):
    tw.einsum(equation, *operands(equation))  # what follows repeats its steps
    given = operands(equation)
    made, theirs = tw.einsum(equation, *given), torch.einsum(equation, *given)
    torch.testing.assert_close(made, theirs)
    weight = torch.randn_like(theirs)
    for mine, other in zip(
        torch.autograd.grad((made * weight).sum(), given),
        torch.autograd.grad((theirs * weight).sum(), given),
        strict=True,
    ):
        torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("semiring", ["min_plus", "logaddexp_plus", "max_min"])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_gradients_over_other_semirings(equation, semiring):
    given = operands(equation)
    assert torch.autograd.gradcheck(lambda *x: tw.einsum(equation, *x, semiring=semiring), given)


def test_chain_power_and_matvec():
    A, B, x = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((3, 3), (3, 4), (4,)))
    torch.testing.assert_close(tw.chain([A, B, x]), A @ B @ x)
    torch.testing.assert_close(tw.power(A, 5), torch.linalg.matrix_power(A, 5))
    torch.testing.assert_close(tw.power(A, 0), torch.eye(3, dtype=torch.float64))
    torch.testing.assert_close(tw.matvec(B, x), B @ x)
    assert torch.autograd.gradcheck(lambda A: tw.power(A, 3, semiring="min_plus"), (A,))
    assert tw.power(torch.eye(2, dtype=torch.bfloat16), 0, semiring="lor_land").dtype == torch.bool


def test_transformed():
    A, B = torch.randn(6, 3, 4), torch.randn(4, 2)
    tw.einsum("ij,jk->ik", A[0], B)  # a recorded call of the same shapes and strides
    torch.testing.assert_close(torch.vmap(lambda a: tw.einsum("ij,jk->ik", a, B))(A), A @ B)
    grad = torch.func.grad(lambda b: tw.einsum("aij,jk->", A, b))(B)
    torch.testing.assert_close(grad, A.sum((0, 1))[:, None].expand(4, 2))


def test_a_repeated_call_makes_no_plan(monkeypatch):
    A, B = torch.randn(2, 3, 4), torch.randn(4, 2)
    first = tw.einsum("aij,jk->aki", A, B)
    monkeypatch.setattr(einsum_module, "_einsum", lambda *_: pytest.fail("planned again"))
    again = tw.einsum("aij,jk->aki", A, B)
    assert torch.equal(again, first)
    assert again.data_ptr() != first.data_ptr()


def test_repeated_calls_of_other_strides():
    A, B = torch.randn(3, 4), torch.randn(4, 2)
    for M in (A, A.t().contiguous().t(), torch.nn.Parameter(A), A.double()) * 2:
        torch.testing.assert_close(tw.einsum("ij,jk->ik", M, B.to(M.dtype)), M @ B.to(M.dtype))
