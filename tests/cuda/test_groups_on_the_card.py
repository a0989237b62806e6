"""Groups of rows on the card: every way among poison, gradients, graphs with other offsets, bad offsets, no waiting."""

from __future__ import annotations

import math
import random
import warnings
from itertools import pairwise

import pytest

import tilewise as tw
import tilewise.kernels.wgmma_gemm.wgmma_half.model as model
import tilewise.planning.choose as planning
from seeds import next_seed

torch = pytest.importorskip("torch")


def poisoned(shape, dtype, extra):
    *stack, rows, cols = shape
    memory = torch.full((math.prod(stack) * rows * (cols + extra) + 8,), math.nan, dtype=dtype, device="cuda")
    made = memory[:-8].view(*stack, rows, cols + extra)[..., :cols]
    made.copy_(torch.randint(-3, 4, made.shape, device="cuda").to(dtype))
    return made, memory


def by_a_loop(x, w, ends, along):
    ends = [0, *ends]
    if along == "k":
        return torch.stack([x[a:b].double().T @ w[a:b].double() for a, b in pairwise(ends)])
    made = torch.zeros(len(x), w.shape[2], dtype=torch.float64, device="cuda")
    for group, (a, b) in enumerate(pairwise(ends)):
        made[a:b] = x[a:b].double() @ w[group].double()
    return made


@pytest.mark.parametrize("along", ["rows", "k"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("number", range(4))
def test_random_groups_by_random_configs(monkeypatch, along, dtype, number):
    seed = next_seed() + number
    rng = random.Random(seed)
    monkeypatch.setattr(model, "best_config", lambda p, machine: (1e-9, rng.choice(model.configs(p, machine))))
    for _ in range(6):
        planning._plan.cache_clear()
        groups = rng.randint(1, 40)
        rows, k, n = (round(math.exp(rng.uniform(0, math.log(most)))) for most in (3000, 500, 700))
        n = n if rng.random() < 0.5 else -(-n // 8) * 8
        x, _ = poisoned((rows, k), dtype, rng.choice([0, -k % 8, 3]))
        w, _ = poisoned((rows, n) if along == "k" else (groups, k, n), dtype, rng.choice([0, -n % 8, 1]))
        P, memory = poisoned((groups, k, n) if along == "k" else (rows, n), dtype, rng.choice([0, 0, 5]))
        ends = sorted(rng.randint(0, rows) for _ in range(groups))
        offsets = torch.tensor(ends, dtype=rng.choice([torch.int32, torch.int64]), device="cuda")
        before, wanted = memory.clone(), by_a_loop(x, w, ends, along)
        tw.grouped_matmul(x, w, offsets, along=along, out=P)
        torch.cuda.synchronize()
        words = f"seed {seed}: {rows}x{k}x{n} {ends} {tw.grouped_plan(x, w, offsets, along=along)!r}"
        assert (P.double() - wanted).abs().max() <= 0.5 + 8e-3 * wanted.abs().max(), words
        P.zero_()
        after = memory.clone()
        memory.copy_(before)
        P.zero_()
        assert torch.equal(after.view(torch.int16), memory.view(torch.int16)), f"{words}: written beside P"
    planning._plan.cache_clear()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_mixture_of_experts_forward_and_backward(dtype):
    torch.manual_seed(0)
    tokens, k, n, experts, chosen = 300, 96, 80, 7, 2
    x = torch.randn(tokens, k, device="cuda").to(dtype).requires_grad_()
    w = torch.randn(experts, k, n, device="cuda").to(dtype).requires_grad_()
    expert = torch.randint(0, experts, (tokens * chosen,), device="cuda")
    order = expert.argsort(stable=True)
    rows, offsets = order // chosen, torch.bincount(expert, minlength=experts).cumsum(0)
    weights = torch.rand(tokens * chosen, device="cuda").requires_grad_()

    def layer():
        return tw.scatter_rows(tw.grouped_matmul(x, w, offsets, rows=rows), rows, tokens, weights=weights)

    made = layer()
    assert torch.equal(layer(), made)  # the same bits each time
    flow = torch.randn_like(made)
    ours = torch.autograd.grad(made, (x, w, weights), flow)
    xs, ws, scales = (t.detach().double().requires_grad_() for t in (x, w, weights))
    ends = [0, *offsets.tolist()]
    parts = torch.cat([xs[rows][a:b] @ ws[g] for g, (a, b) in enumerate(pairwise(ends))])
    wanted = torch.zeros(tokens, n, device="cuda", dtype=torch.float64).index_add(0, rows, parts * scales[:, None])
    theirs = torch.autograd.grad(wanted, (xs, ws, scales), flow.double())
    for found, exact in ((made, wanted), *zip(ours, theirs, strict=True)):
        assert (found.double() - exact).norm() <= 2e-2 * exact.norm()


def test_a_captured_graph_finds_other_offsets():
    x, w = torch.randn(512, 128, device="cuda").bfloat16(), torch.randn(8, 128, 96, device="cuda").bfloat16()
    offsets, out = torch.arange(64, 513, 64, dtype=torch.int32, device="cuda"), x.new_empty(512, 96)
    tw.grouped_matmul(x, w, offsets, out=out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tw.grouped_matmul(x, w, offsets, out=out)
    for ends in ([0, 0, 100, 101, 200, 400, 400, 512], [512] * 8, [1, 2, 3, 4, 5, 6, 7, 300]):
        offsets.copy_(torch.tensor(ends, dtype=torch.int32))
        out.fill_(math.nan)
        graph.replay()
        wanted = by_a_loop(x, w, ends, "rows")
        assert (out.double() - wanted).norm() <= 6e-3 * wanted.norm()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_bad_offsets_write_nothing_beside_the_product(dtype):
    x, w = torch.randn(512, 128, device="cuda").to(dtype), torch.randn(8, 128, 96, device="cuda").to(dtype)
    room = torch.full((514, 96), 7.0, device="cuda", dtype=dtype)
    for ends in ([900, -5, 7, 3, 2**31 - 1, -(2**31), 0, 5], [-1] * 8, [2**31 - 1] * 8):
        offsets = torch.tensor(ends, dtype=torch.int32, device="cuda")
        tw.grouped_matmul(x, w, offsets, out=room[1:-1])
        y, dw = torch.randn(512, 96, device="cuda").to(dtype), torch.full((10, 128, 96), 7.0, device="cuda").to(dtype)
        tw.grouped_matmul(x, y, offsets, along="k", out=dw[1:-1])
        torch.cuda.synchronize()
        for around in (room, dw):
            assert (around[0] == 7).all()
            assert (around[-1] == 7).all()


def test_the_host_waits_for_nothing():
    x, w = torch.randn(512, 128, device="cuda").bfloat16(), torch.randn(8, 128, 96, device="cuda").bfloat16()
    offsets = torch.arange(64, 513, 64, dtype=torch.int32, device="cuda")
    tw.grouped_matmul(x, w, offsets)
    torch.cuda.synchronize()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls that mode a prototype
        torch.cuda.set_sync_debug_mode("error")
        try:
            found = tw.grouped_matmul(x, w, offsets)  # a synchronization raises RuntimeError
            tw.grouped_matmul(x, torch.empty_like(x), offsets, along="k")
        finally:
            torch.cuda.set_sync_debug_mode("default")
    torch.testing.assert_close(found, torch.bmm(x.view(8, 64, 128), w).view(512, 96))


@pytest.mark.parametrize("semiring", ["min_plus", "max_plus", "max_min"])
def test_groups_over_semirings(semiring):
    x, w = torch.rand(200, 30, device="cuda"), torch.rand(5, 30, 50, device="cuda")
    offsets = torch.tensor([20, 20, 90, 91, 200], device="cuda")
    found = tw.grouped_matmul(x, w, offsets, semiring=semiring)
    assert torch.equal(found.cpu(), tw.grouped_matmul(x.cpu(), w.cpu(), offsets.cpu(), semiring=semiring))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_lists_of_unrelated_products(dtype):
    seed = next_seed()
    rng, pairs = random.Random(seed), []
    for _ in range(100):
        m, k, n = (round(math.exp(rng.uniform(0, math.log(300)))) for _ in range(3))
        pairs.append(tuple(torch.randint(-3, 4, sides, device="cuda").to(dtype) for sides in ((m, k), (k, n))))
    for (M, N), P in zip(pairs, tw.matmul_many(pairs), strict=True):
        wanted = M.double() @ N.double()
        assert torch.equal(P.double(), wanted.to(dtype).double()), f"seed {seed}: {M.shape} {N.shape}"
