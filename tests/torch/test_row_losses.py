"""cross_entropy under accelerate(): torch's losses and gradients, in fewer passes over the logits."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional

import tilewise as tw
from host_card import put_on_the_host
from seeds import next_seed
from tilewise.torch import loss_kernels, row_losses
from tilewise.torch.routed_loss import is_taken

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2}


def drawn(dtype=torch.float32, classes=None):
    seed = next_seed() % 2**31
    print("seed", seed)
    torch.manual_seed(seed)
    rows, drawn_classes = int(torch.randint(2, 30, ())), int(torch.randint(2, 90, ()))
    classes = classes or drawn_classes
    logits = (torch.randn(rows, classes) * 3).to(dtype).requires_grad_()
    target = torch.randint(classes, (rows,))
    target[0] = -100 if rows > 2 else target[0]
    return logits, target


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_and_gradients_are_torchs(dtype, reduction):
    logits, target = drawn(dtype)
    counts = torch.rand(len(target)).to(dtype)

    def loss(x):
        made = functional.cross_entropy(x, target, reduction=reduction)
        return (made * counts).sum() if reduction == "none" else made * 3

    exact = logits.detach().double().requires_grad_()
    theirs = loss(exact)
    with tw.torch.accelerate("always") as done:
        ours = loss(logits)
    assert ours.dtype == (torch.float32 if dtype is torch.float32 else dtype)
    assert "RowLosses" in _names(ours.grad_fn)
    torch.testing.assert_close(ours.double(), theirs, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    (got,), (true,) = torch.autograd.grad(ours, logits), torch.autograd.grad(theirs, exact)
    assert got.dtype == dtype
    assert (got.double() - true).norm() <= TOLERANCE[dtype] * true.norm()
    assert [c.operator for c in done.choices] == ["cross_entropy"]
    assert done.routed == 1


def _names(node):
    return str(node) if node is None else node.name() + "".join(_names(before) for before, _ in node.next_functions)


def test_what_is_special_stays_with_torch():
    logits, target = drawn()
    with tw.torch.accelerate("always") as done:
        made = [
            functional.cross_entropy(logits, target, label_smoothing=0.1),
            functional.cross_entropy(logits, target, torch.rand(logits.shape[1])),
            functional.cross_entropy(logits, logits.softmax(-1).detach()),
            functional.cross_entropy(logits[0], torch.tensor(1)),
        ]
    assert all("RowLosses" not in _names(x.grad_fn) for x in made)
    assert done.routed == 0
    with tw.torch.accelerate():  # on a CPU nothing is claimed
        assert "RowLosses" not in _names(functional.cross_entropy(logits, target).grad_fn)
    assert "RowLosses" not in _names(functional.cross_entropy(logits, target).grad_fn)
    assert not is_taken("plan", logits, target)


def test_gradients_of_gradients_and_torch_func_go_on():
    logits, target = drawn(torch.float64, 7)
    with tw.torch.accelerate("always"):
        assert torch.autograd.gradcheck(lambda x: functional.cross_entropy(x, target), logits)
        assert torch.autograd.gradgradcheck(lambda x: functional.cross_entropy(x, target), logits)
        got = torch.func.grad(lambda x: functional.cross_entropy(x, target))(logits)
    (exact,) = torch.autograd.grad(functional.cross_entropy(logits, target), logits)
    torch.testing.assert_close(got, exact)


def test_autocast_returns_float32():
    logits, target = drawn(torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16), tw.torch.accelerate("always"):
        loss = functional.cross_entropy(logits, target)
    assert loss.dtype is torch.float32
    torch.testing.assert_close(loss, functional.cross_entropy(logits.float(), target))


@pytest.mark.parametrize("odd", [False, True])
def test_compiled_it_is_one_operator_forward_and_cell_by_cell_backward_or_another(odd, monkeypatch):
    """Pointwise operations if rows are multiples of 16 bytes, as is assumed on a CPU."""
    if odd:
        monkeypatch.setattr(row_losses, "_is_odd", lambda logits: True)
    logits, target = drawn(torch.float32, 65)
    seen = []

    def backend(graph, inputs):
        from torch._dynamo.backends.common import aot_autograd
        from torch._functorch.aot_autograd import make_boxed_func

        def keep(graph, _):
            seen.extend(str(node.target) for node in graph.graph.nodes)
            return make_boxed_func(graph.forward)

        return aot_autograd(fw_compiler=keep, bw_compiler=keep)(graph, inputs)

    with tw.torch.accelerate("always"):
        loss = torch.compile(lambda x: functional.cross_entropy(x * 2, target), backend=backend, fullgraph=True)(logits)
        (got,) = torch.autograd.grad(loss, logits)
    exact = functional.cross_entropy(logits * 2, target)
    torch.testing.assert_close(loss, exact)
    torch.testing.assert_close(got, torch.autograd.grad(exact, logits)[0])
    ours = ["tilewise.row_losses.default", "tilewise.row_losses_gradient.default"]
    assert [name for name in seen if "tilewise" in name] == ours[: 1 + odd]
    assert not any(part in name for name in seen for part in ("log_softmax", "scatter"))


def test_the_operator_is_sound():
    logits, target = drawn()
    torch.library.opcheck(torch.ops.tilewise.row_losses, (logits, target, -100))
    logits, counts = logits.detach(), torch.rand(len(logits))
    given = logits, target, logits.logsumexp(-1), counts, -100
    torch.library.opcheck(torch.ops.tilewise.row_losses_gradient, given)
    expected = torch.ops.tilewise.row_losses_gradient(*given)
    torch.library.opcheck(torch.ops.tilewise.row_losses_gradient_, given)
    torch.ops.tilewise.row_losses_gradient_(*given)
    assert torch.equal(logits, expected)


@pytest.mark.parametrize(("columns", "odd"), [(50257, True), (50264, False), ("s1", False)])
def test_which_rows_are_odd(columns, odd):
    logits = SimpleNamespace(
        is_cuda=True, dtype=torch.bfloat16, shape=(9, columns), numel=lambda: 9, element_size=lambda: 2
    )
    assert row_losses._is_odd(logits) == odd
    assert not row_losses._is_odd(torch.ones(3, 7, dtype=torch.bfloat16)), "no kernel of ours goes over a CPU's rows"


@pytest.fixture
def on_the_host(monkeypatch, tmp_path_factory):
    """Run CPU tensors by the kernels, compiled as C++."""
    put_on_the_host(monkeypatch, tmp_path_factory.mktemp("built"))
    loss_kernels._launcher.cache_clear()
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=0))
    for module in (loss_kernels, row_losses):
        monkeypatch.setattr(module, "is_taken", lambda x: x.dtype in loss_kernels.KERNELS)
    yield
    loss_kernels._launcher.cache_clear()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_the_kernels_get_what_they_need(on_the_host, monkeypatch):
    def on_lines(x):
        return torch.empty_strided(x.shape, (-(-x.shape[1] // 64) * 64, 1), dtype=x.dtype)

    monkeypatch.setattr(row_losses, "_empty_gradient", on_lines)
    logits, target = drawn(torch.bfloat16)
    with tw.torch.accelerate("always"):
        loss = functional.cross_entropy(logits, target)
        (got,) = torch.autograd.grad(loss, logits)
    exact = logits.detach().double().requires_grad_()
    theirs = functional.cross_entropy(exact, target)
    torch.testing.assert_close(loss.double(), theirs, rtol=1e-2, atol=1e-2)
    (true,) = torch.autograd.grad(theirs, exact)
    assert (got.double() - true).norm() <= 1e-2 * true.norm()
    x, w = torch.randn(9, 16, requires_grad=True), torch.randn(64, 16, requires_grad=True)  # rows on 16 bytes
    target = torch.randint(64, (9,))
    for bands in (1 << 28, 1024):
        monkeypatch.setattr("tilewise.torch.loss_bands.BAND_BYTES", bands)
        loss = tw.torch.linear_cross_entropy(x, w, target)
        made = torch.autograd.grad(loss * 3, (x, w))
        plain = functional.cross_entropy(x @ w.T, target)
        torch.testing.assert_close(loss, plain)
        torch.testing.assert_close(made, torch.autograd.grad(plain * 3, (x, w)), rtol=1e-4, atol=1e-5)
