"""Cross entropy on the card, accelerate()'s and linear_cross_entropy, beside torch in float32."""

from __future__ import annotations

import pytest

import tilewise as tw
from seeds import next_seed

torch = pytest.importorskip("torch")
pytest.importorskip("tilewise.torch")
functional = torch.nn.functional

DTYPES = {torch.bfloat16: 1e-2, torch.float16: 2e-3, torch.float32: 1e-4}


def seeded():
    seed = next_seed() % 2**31
    print("seed", seed)
    torch.manual_seed(seed)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("words", [1025, 4096, 50257])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_losses_under_accelerate_are_torchs(dtype, words, reduction):
    seeded()
    rows = 257
    logits = (torch.randn(rows, words, device="cuda") * 3).to(dtype).requires_grad_()
    target = torch.randint(words, (rows,), device="cuda")
    target[torch.rand(rows, device="cuda") < 0.1] = -100
    counts = torch.rand(rows, device="cuda")

    def loss(x):
        made = functional.cross_entropy(x, target, reduction=reduction)
        return (made.float() * counts).sum() if reduction == "none" else made.float() * 3

    with tw.torch.accelerate("always") as done:
        (got,) = torch.autograd.grad(ours := loss(logits), logits)
    assert done.routed == 1
    exact = logits.detach().float().requires_grad_()
    (true,) = torch.autograd.grad(theirs := loss(exact), exact)
    assert float((ours - theirs).detach().abs() / theirs.detach().abs()) < DTYPES[dtype]
    assert got.dtype is dtype
    assert got.stride(0) * got.element_size() % 128 == 0
    assert float((got.float() - true).norm() / true.norm()) < DTYPES[dtype]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("bands", [1, 2, 5])
def test_linear_cross_entropy_in_bands(dtype, bands, monkeypatch):
    seeded()
    rows, width, words = 640, 136, 5001
    monkeypatch.setattr("tilewise.torch.loss_bands.BAND_BYTES", -(-rows // bands) * words * dtype.itemsize)
    x = torch.randn(rows, width, device="cuda").to(dtype).requires_grad_()
    w = (torch.randn(words, width, device="cuda") * 0.1).to(dtype).requires_grad_()
    target = torch.randint(words, (rows,), device="cuda")
    target[7] = -100
    loss = tw.torch.linear_cross_entropy(x, w, target)
    once = torch.autograd.grad(loss, (x, w), retain_graph=True)
    thrice = torch.autograd.grad(loss * 3, (x, w))
    X, W = (t.detach().float().requires_grad_() for t in (x, w))
    plain = functional.cross_entropy(X @ W.T, target)
    torch.testing.assert_close(loss, plain, rtol=DTYPES[dtype], atol=DTYPES[dtype])
    for got, more, true in zip(once, thrice, torch.autograd.grad(plain, (X, W)), strict=True):
        assert float((got.float() - true).norm() / true.norm()) < 2 * DTYPES[dtype]
        assert float((more.float() - 3 * true).norm() / true.norm()) < 6 * DTYPES[dtype]
