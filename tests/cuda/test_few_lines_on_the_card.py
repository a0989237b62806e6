"""Few rows or columns of halves on the card: each tile, layout and cluster, with what an epilogue can ask for."""

from __future__ import annotations

import itertools

import pytest

import tilewise as tw
import tilewise.kernels.wgmma_gemm.wgmma_half.model as search
import tilewise.planning.choose as planning
from tilewise.backends.cuda.device import describe
from tilewise.kernels.wgmma_gemm.wgmma_half.model import configs

torch = pytest.importorskip("torch")
F = torch.nn.functional

LAYOUTS = list(itertools.product((False, True), repeat=2))
AFTER = [
    {},
    {"accumulate": True},
    {"bias": torch.bfloat16, "activation": "gelu"},
    {"bias": torch.float32, "alpha": 0.5, "accumulate": True},
    {"alpha": -2.0, "activation": "relu"},
]


def matrix(rows, cols, transposed, dtype):
    """Among NaN, its lines on 16 bytes."""
    lines, length = (cols, rows) if transposed else (rows, cols)
    lead = -(-length // 8) * 8
    memory = torch.full((lines * lead + 64,), float("nan"), device="cuda", dtype=dtype)
    view = memory[: lines * lead].view(lines, lead)[:, :length]
    view.copy_(torch.randn(lines, length, device="cuda"))
    return view.T if transposed else view


def wanted_of(M, N, P, alpha=1.0, accumulate=False, bias=None, activation=None):
    exact = alpha * (M.double() @ N.double()) + (P.double() if accumulate else 0)
    exact = exact if bias is None else exact + bias.double()
    return {None: lambda x: x, "gelu": F.gelu, "relu": F.relu}[activation](exact)


def by(config, monkeypatch, M, N, **options):
    monkeypatch.setattr(search, "best_config", lambda problem, machine: (1e-9, config))
    planning._plan.cache_clear()
    try:
        tw.matmul(M, N, kernel="wgmma_half", **options)
    finally:
        monkeypatch.undo()
        planning._plan.cache_clear()


@pytest.mark.parametrize("transposed", LAYOUTS, ids=["NN", "NT", "TN", "TT"])
@pytest.mark.parametrize("rows", [True, False], ids=["few rows", "few columns"])
def test_every_form(transposed, rows, monkeypatch):
    """A tile and cluster here has one epilogue, in another layout the next: all of them would take minutes to build."""
    at = LAYOUTS.index(transposed)
    few = (3, 13, 8, 29)[at if rows else 3 - at]
    m, k, n = (few, 600, 264) if rows else (264, 600, few)
    M, N = matrix(m, k, transposed[0], torch.bfloat16), matrix(k, n, transposed[1], torch.bfloat16)
    kinds = {}
    for config in configs(tw.plan(M, N).problem, describe("cuda:0")):
        if config.inside:
            kinds.setdefault((config.tile.rows, config.tile.cols, config.splits), config)
    assert len({config.splits for config in kinds.values()}) > 1, "clusters are among them"
    for number, config in enumerate(list(kinds.values())[rows::2]):
        how = dict(AFTER[(number + at) % len(AFTER)])
        if "bias" in how:
            how["bias"] = torch.randn(n, device="cuda").to(how["bias"])
        around = torch.full((m * n + 128,), 7.0, device="cuda", dtype=torch.bfloat16)
        P = around[64 : 64 + m * n].view(m, n)
        P.copy_(torch.randn(m, n, device="cuda"))
        wanted = wanted_of(M, N, P, **how)
        by(config, monkeypatch, M, N, out=P, **how)
        assert torch.isfinite(P).all(), (config.spec(), how)
        assert (P.double() - wanted).norm() <= 6e-3 * wanted.norm(), (config.spec(), how)
        P.fill_(7.0)
        assert (around == 7).all(), f"something was written beside P by {config.spec()}"
