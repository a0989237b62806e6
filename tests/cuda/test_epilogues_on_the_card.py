"""alpha, bias and activation on the card: applied exactly once on every way of every kernel."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import tilewise as tw
import tilewise.planning.choose as planning
from tilewise.backends.cuda.device import describe
from tilewise.kernels.registry import family_of

torch = pytest.importorskip("torch")
F = torch.nn.functional

ACTIVATIONS = {
    None: lambda x: x,
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
}
BOUNDS = {"bfloat16": 6e-3, "float16": 1e-3, "float32": 1e-3, "float64": 1e-14}
CHOOSERS = {
    "wgmma_half": "tilewise.kernels.wgmma_gemm.wgmma_half.model.best_config",
    "mma_sync": "tilewise.kernels.mma_gemm.mma_sync.model.best_config",
}


def matrix(rows, cols, dtype, extra=0, offset=0):
    memory = torch.full((rows * (cols + extra) + offset + 64,), float("nan"), device="cuda", dtype=dtype)
    view = memory[offset : offset + rows * (cols + extra)].view(rows, cols + extra)[:, :cols]
    view.copy_(torch.randn(rows, cols, device="cuda", dtype=torch.float64))
    return view, memory


def kind(config):
    """Ways that differ in where sums become elements of P."""
    cut = getattr(config, "splits", 1) > 1 or getattr(config, "parts", 1) > 1
    return (
        config.routes,
        getattr(config, "classes", 1),
        config.edge_rows > 0,
        config.edge_cols > 0,
        cut,
        config.tile.rows,
    )


@pytest.mark.parametrize(
    ("kernel", "name", "activation", "alpha", "bias_name", "accumulate"),
    [
        ("wgmma_half", "bfloat16", "gelu", 1.0, "bfloat16", False),
        ("wgmma_half", "float16", "silu", 0.5, None, True),
        ("wgmma_half", "bfloat16", "relu", 1.0, "float32", False),
        ("wgmma_half", "bfloat16", "gelu_tanh", -2.0, None, False),
        ("mma_sync", "bfloat16", "gelu_tanh", 1.0, "bfloat16", False),
        ("mma_sync", "float64", "gelu", -2.0, "float64", True),
        ("mma_sync", "float32", "silu", 1.0, "float32", False),
        ("mma_sync", "float16", None, 3.0, "float16", False),
    ],
)
@pytest.mark.parametrize("shape", [(129, 65, 257), (64, 1000, 64), (2049, 72, 1025), (4097, 64, 520)])
def test_every_config(kernel, name, activation, alpha, bias_name, accumulate, shape, monkeypatch):
    dtype, (m, k, n), chooser = getattr(torch, name), shape, CHOOSERS[kernel]
    if kernel == "wgmma_half" and not describe("cuda:0").arch.startswith("sm_90"):
        pytest.skip("made for Hopper")
    bias = None if bias_name is None else torch.randn(n, device="cuda").to(getattr(torch, bias_name))
    how = {"alpha": alpha, "bias": bias, "activation": activation, "precision": "tf32"}
    for extra, offset in ((0, 0), (1, 1)):
        M, N = matrix(m, k, dtype, extra, offset)[0], matrix(k, n, dtype, extra, offset)[0]
        P, around = matrix(m, n, dtype, extra, offset)
        before = torch.randn(m, n, device="cuda").to(dtype)
        x = alpha * (M.double() @ N.double()) + (0 if bias is None else bias.double())
        exact = ACTIVATIONS[activation](x + before.double() if accumulate else x)
        problem = replace(tw.plan(M, N, **how).problem, accumulate=accumulate)
        kinds = {
            kind(config): config for config in family_of(kernel).configurations(problem, describe("cuda:0"))
        }  # the smallest tile of each
        for config in kinds.values():
            P.copy_(before) if accumulate else P.fill_(float("nan"))
            monkeypatch.setattr(chooser, lambda problem, machine, requested=False, config=config: (1e-9, config))
            planning._plan.cache_clear()
            tw.matmul(M, N, out=P, kernel=kernel, accumulate=accumulate, **how)
            assert (P.double() - exact).norm() <= BOUNDS[name] * exact.norm(), config
            P.fill_(float("nan"))
            assert torch.isnan(around).all(), f"something was written outside P by {config}"
    monkeypatch.undo()
    planning._plan.cache_clear()


@pytest.mark.parametrize("name", ["bfloat16", "float32", "float64"])
def test_as_people_call_it(name):
    """Stacks, strided biases, `out=` a second time, host arrays on the card, kernels that fuse nothing."""
    dtype = getattr(torch, name)
    M, N = torch.randn(3, 70, 65, device="cuda").to(dtype), torch.randn(65, 90, device="cuda").to(dtype)
    bias = torch.randn(180, device="cuda").to(dtype)[::2]
    bound = {"float32": 1e-5}.get(name, BOUNDS[name])
    for kernel, activation in itertools.product((None, "plain", "tiled_edges"), ACTIVATIONS):
        exact = ACTIVATIONS[activation](0.3 * (M.double() @ N.double()) + bias.double())
        P = torch.empty(3, 70, 90, device="cuda", dtype=dtype)
        for _ in range(2):
            P.fill_(float("nan"))
            tw.matmul(M, N, out=P, alpha=0.3, bias=bias, activation=activation, kernel=kernel)
            assert (P.double() - exact).norm() <= bound * exact.norm()
    if name == "float32":
        host = tw.matmul(M.cpu().numpy(), N.cpu().numpy(), device="cuda", bias=bias.cpu().numpy(), activation="gelu")
        exact = F.gelu(M.double() @ N.double() + bias.double()).cpu().numpy()
        assert np.linalg.norm(host - exact) <= bound * np.linalg.norm(exact)


def test_another_bias_is_another_call():
    """A call that was made before is only queued again: a bias elsewhere must not be taken for the first."""
    M, N = torch.randn(70, 65, device="cuda").bfloat16(), torch.randn(65, 90, device="cuda").bfloat16()
    P, biases = torch.empty(70, 90, device="cuda").bfloat16(), torch.zeros(2, 90, device="cuda").bfloat16()
    biases[1] = 100
    for _ in range(2):
        for bias in biases:
            tw.matmul(M, N, out=P, bias=bias)
            assert (P.double() - M.double() @ N.double() - bias.double()).abs().max() < 1
    plain = tw.matmul(M, N, out=P).clone()
    assert (plain.double() - M.double() @ N.double()).abs().max() < 1
