"""linear_cross_entropy: the loss and gradients of the plain form, within a band of logits."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

import tilewise as tw
from seeds import next_seed
from tilewise.torch import loss_bands as room

TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-4, torch.bfloat16: 4e-2}


def drawn(dtype=torch.float32, lead=()):
    seed = next_seed() % 2**31
    print("seed", seed)
    torch.manual_seed(seed)
    rows, width, classes = (int(torch.randint(2, most, ())) for most in (40, 20, 90))
    shape = (*lead, rows) if lead else (rows,)
    x = (torch.randn(*shape, width)).to(dtype).requires_grad_()
    w = torch.randn(classes, width).to(dtype).requires_grad_()
    b = torch.randn(classes).to(dtype).requires_grad_()
    target = torch.randint(classes, shape)
    target[..., 0] = -100
    return x, w, b, target


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("band", [1, 700, 1 << 28])
def test_loss_and_gradients_are_those_of_the_plain_form(dtype, reduction, band, monkeypatch):
    monkeypatch.setattr(room, "BAND_BYTES", band)
    x, w, b, target = drawn(dtype, (2,))
    moved = torch.rand(target.shape)

    def losses(form, *given):
        made = form(*given)
        return (made * moved.to(made.dtype)).sum() if reduction == "none" else made

    ours = losses(lambda x, w, b: tw.torch.linear_cross_entropy(x, w, target, b, reduction=reduction), x, w, b)
    X, W, B = (t.detach().double().requires_grad_() for t in (x, w, b))
    logits = functional.linear(X, W, B)
    theirs = losses(
        lambda logits: functional.cross_entropy(
            logits.flatten(0, -2), target.flatten(), reduction=reduction
        ).reshape(target.shape if reduction == "none" else ()),
        logits,
    )  # fmt: skip
    torch.testing.assert_close(ours.double(), theirs, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    *wanted, slope = torch.autograd.grad(theirs, (X, W, B, logits))
    rows, terms = X.detach().abs().flatten(0, -2), slope.abs().flatten(0, -2)
    sizes = terms @ W.detach().abs(), terms.T @ rows, terms.sum(0)  # of what is added up, and may cancel
    for got, exact, size in zip(torch.autograd.grad(ours, (x, w, b)), wanted, sizes, strict=True):
        assert got.dtype == dtype
        allowed = TOLERANCE[dtype] * exact.norm() + torch.finfo(dtype).eps * size.norm()
        assert (got.double() - exact).norm() <= allowed + 1e-12


def test_gradients_where_they_are_wanted_and_scaled_by_what_follows():
    x, w, _, target = drawn(torch.float64)
    assert torch.autograd.gradcheck(lambda x, w: tw.torch.linear_cross_entropy(x, w, target) * 3, (x, w))
    frozen = w.detach()
    loss = tw.torch.linear_cross_entropy(x, frozen, target)
    (dx,) = torch.autograd.grad(loss, x)
    (exact,) = torch.autograd.grad(functional.cross_entropy(x @ frozen.T, target), x)
    torch.testing.assert_close(dx, exact)
    with torch.no_grad():
        assert not tw.torch.linear_cross_entropy(x, w, target).requires_grad


def test_only_a_band_of_logits_is_held(monkeypatch):
    seen = []
    real = room.to_gradients
    monkeypatch.setattr(room, "to_gradients", lambda logits, *more: seen.append(logits.shape) or real(logits, *more))
    monkeypatch.setattr(room, "BAND_BYTES", 300 * 4 * 130)
    x, w = torch.randn(1000, 8, requires_grad=True), torch.randn(300, 8)
    tw.torch.linear_cross_entropy(x, w, torch.randint(300, (1000,))).backward()
    assert sum(rows for rows, _ in seen) == 1000
    assert max(rows for rows, _ in seen) <= 130
    assert {cols for _, cols in seen} == {300}


def test_what_fresh_memory_holds_does_not_reach_a_gradient(monkeypatch):
    empty = torch.empty
    monkeypatch.setattr(room.torch, "empty", lambda *size, **how: empty(*size, **how).fill_(float("nan")))
    for rows, classes, width in ((70, 9, 13), (68, 85, 4), (75, 81, 19)):
        x = torch.randn(rows, width).bfloat16().requires_grad_()
        w = torch.randn(classes, width).bfloat16().requires_grad_()
        tw.torch.linear_cross_entropy(x, w, torch.randint(classes, (rows,))).backward()
        assert x.grad.isfinite().all()
        assert w.grad.isfinite().all()


def test_autocast_takes_its_dtype():
    x, w, _, target = drawn()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = tw.torch.linear_cross_entropy(x, w, target)
    loss.backward()
    exact = functional.cross_entropy(x @ w.T, target)
    assert (x.grad.dtype, loss.dtype) == (torch.float32, torch.float32)
    torch.testing.assert_close(loss, exact, rtol=5e-2, atol=5e-2)


def test_arguments_that_do_not_fit_are_refused():
    x, w, _, target = drawn()
    with pytest.raises(tw.UsageError, match="reduction='median'"):
        tw.torch.linear_cross_entropy(x, w, target, reduction="median")
    with pytest.raises(tw.ShapeError, match="target is"):
        tw.torch.linear_cross_entropy(x, w, target[1:])
    with pytest.raises(tw.ShapeError, match="input's last extent"):
        tw.torch.linear_cross_entropy(x, w[:, 1:], target)
    with pytest.raises(tw.DtypeError, match="floats of one dtype"):
        tw.torch.linear_cross_entropy(x, w.double(), target)


def test_the_same_graph_gives_its_gradients_twice():
    x, w, b, target = drawn(torch.float64)
    loss = tw.torch.linear_cross_entropy(x, w, target, b)
    once = torch.autograd.grad(loss * 3, (x, w, b), retain_graph=True)
    for g in once:
        g.zero_()  # they are the caller's own
    again = torch.autograd.grad(loss, (x, w, b))
    plain = functional.cross_entropy(functional.linear(x, w, b), target)
    torch.testing.assert_close(again, torch.autograd.grad(plain, (x, w, b)))
