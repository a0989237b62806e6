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


def test_the_gradient_is_zero_off_the_path():
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


@pytest.mark.parametrize("stack", [(), (3,), (2, 2)])
@pytest.mark.parametrize("sources", [[3], [4, 0, 3, 3, 0, 1], [], 2, torch.tensor([1, 4])])
@pytest.mark.parametrize("semiring", ["min_plus", "max_min", "min_max"])
def test_rows_of_a_few_sources_and_their_gradients(semiring, sources, stack):
    torch.manual_seed(1)
    none = float("-inf") if semiring == "max_min" else float("inf")
    W = weights(5, 0.4, none, stack)
    rows = torch.as_tensor(sources).reshape(-1).long()
    whole = tw.closure(W, semiring=semiring)
    D, before = tw.closure(W, semiring=semiring, sources=sources, return_predecessors=True)
    assert D.shape == before.shape == (*stack, len(rows), 5)
    torch.testing.assert_close(D, whole[..., rows, :], rtol=0, atol=0)
    torch.testing.assert_close(tw.closure(W.detach(), semiring=semiring, sources=sources), D.detach(), rtol=0, atol=0)
    off = torch.isfinite(D) & (torch.arange(5) != rows[:, None])
    weight = torch.rand(D.shape, dtype=D.dtype)
    (mine,) = torch.autograd.grad((D * weight)[off].sum(), W)
    (theirs,) = torch.autograd.grad((whole[..., rows, :] * weight)[off].sum(), W)
    torch.testing.assert_close(mine, theirs)


def test_gradients_of_rows_are_those_that_differences_give():
    torch.manual_seed(2)
    W = weights(6, 0, stack=(2,))
    assert torch.autograd.gradcheck(lambda W: tw.closure(W, sources=[5, 0, 5]), (W,), check_forward_ad=True)
    each = torch.vmap(torch.func.grad(lambda w: tw.closure(w, sources=[2]).sum()))(W.detach())
    (whole,) = torch.autograd.grad(tw.closure(W, sources=[2]).sum(), W)
    torch.testing.assert_close(each, whole)


@pytest.mark.parametrize("sources", [[-1], [5], [0.5], [[1]]])
def test_sources_outside_of_the_graph_are_refused(sources):
    with pytest.raises(tw.UsageError, match="numbers of nodes, from 0 to 4"):
        tw.closure(weights(5, 0.4), sources=sources)


@pytest.mark.drawn(3)  # Inductor compiles for seconds
@pytest.mark.parametrize("semiring", ["min_plus", "lor_land"])
@pytest.mark.parametrize(
    "how", [{}, {"sources": [3, 0]}, {"sources": torch.tensor([2])}, {"sources": 1, "return_predecessors": True}]
)
@pytest.mark.parametrize("stack", [(), (2,)])
def test_a_compiled_closure_is_the_same(stack, how, semiring):
    torch._dynamo.reset()
    torch.manual_seed(3)
    W = weights(6, 0.5, stack=stack).detach()
    W = W < 0.8 if semiring == "lor_land" else W
    compiled = torch.compile(lambda W: tw.closure(W, semiring=semiring, **how), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(W), tw.closure(W, semiring=semiring, **how), rtol=0, atol=0)


@pytest.mark.drawn(1)  # Inductor compiles for seconds
@pytest.mark.parametrize("sources", [None, [4, 1, 1]])
def test_a_compiled_closure_has_the_same_gradient(sources):
    torch._dynamo.reset()
    torch.manual_seed(4)
    W = weights(6, 0.3, stack=(2,))

    def total(W):
        return tw.closure(W * 2, sources=sources).nan_to_num(posinf=0).sin().sum()

    compiled = torch.compile(total, fullgraph=True, backend="aot_eager")
    (mine,) = torch.autograd.grad(compiled(W), W)
    (eager,) = torch.autograd.grad(total(W), W)
    torch.testing.assert_close(mine, eager)
    assert mine.abs().sum() > 0


def test_a_compiled_closure_refuses_what_the_plain_one_refuses():
    torch._dynamo.reset()
    compiled = torch.compile(lambda W, s: tw.closure(W, sources=s), backend="aot_eager")
    with pytest.raises(tw.UsageError, match="numbers of nodes"):
        compiled(weights(4, 0.3).detach(), torch.tensor([9]))
    with pytest.raises(tw.CycleError, match="0 → 1 → 0"):
        compiled(torch.tensor([[0, -2.0], [1.0, 0]]), torch.tensor([0]))


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:torch.as_tensor results are registered as constants")  # which sources are
def test_a_traced_closure_is_the_same():
    torch.manual_seed(5)
    W = weights(5, 0.3).detach()
    traced = torch.jit.trace(lambda W: tw.closure(W, sources=[1]), (W,))
    torch.testing.assert_close(traced(W), tw.closure(W)[[1]], rtol=0, atol=0)


def test_the_operators_are_what_torch_expects_of_operators():
    torch.manual_seed(6)
    W = weights(4, 0.0)
    for sources in (None, torch.tensor([2, 0])):
        for arguments in ((W, "min_plus", sources, True), (W.detach(), "min_plus", sources, False)):
            found = torch.library.opcheck(torch.ops.tilewise.closure.default, arguments)
            assert set(found.values()) == {"SUCCESS"}
