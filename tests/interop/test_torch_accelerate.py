"""accelerate(): the program's own products, routed where a plan wins, with an account of it."""

from __future__ import annotations

import json

import pytest
import torch

import tilewise as tw
from tilewise.interop.torch import accelerate as room
from tilewise.interop.torch.vendor import on_sixteen_bytes, vendor_seconds
from tilewise.machine import KNOWN_CARDS
from tilewise.planning import make_plan
from tilewise.problem import problem_of_shape

H200 = KNOWN_CARDS["h200"]


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(33, 65), torch.nn.ReLU(), torch.nn.Linear(65, 7))


def step(model, x):
    model.zero_grad()
    made = model(x)
    made.square().sum().backward()
    return [made.detach(), *(p.grad.clone() for p in model.parameters())]


def test_forward_and_backward_are_routed_and_right():
    net, x = model(), torch.randn(4, 11, 33)
    expected = step(net, x)
    with tw.torch.accelerate("always") as done:
        got = step(net, x)
        batch = torch.bmm(x, x.mT)
        summed = torch.baddbmm(batch, x, x.mT)
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(batch, x @ x.mT)
    torch.testing.assert_close(summed, 2 * (x @ x.mT))
    assert done.routed == 7, "two forward, three backward, two of stacks"
    assert {c.operator for c in done.choices} == {"mm", "addmm", "bmm", "baddbmm"}
    json.dumps(done.to_json())
    assert "44x33x65" in str(done)
    assert "<table>" in done._repr_html_()


def test_outside_the_block_nothing_is_routed():
    with tw.torch.accelerate("always") as done:
        pass
    torch.mm(torch.ones(2, 2), torch.ones(2, 2))
    assert (done.routed, done.left) == (0, 0)


def test_scaled_sums_and_foreign_dtypes_stay_with_torch():
    M = torch.randn(3, 3)
    with tw.torch.accelerate("always") as done:
        scaled = torch.addmm(M, M, M, beta=2, alpha=3)
    torch.testing.assert_close(scaled, 2 * M + 3 * (M @ M))
    assert (done.routed, done.left) == (0, 1)


def test_on_the_cpu_a_plan_claims_nothing():
    with tw.torch.accelerate() as done:
        torch.mm(torch.ones(64, 64), torch.ones(64, 64))
    assert (done.routed, done.left) == (0, 1)


def test_an_unknown_word_is_named():
    with pytest.raises(tw.UsageError, match="when='sometimes'"):
        tw.torch.accelerate("sometimes")


@pytest.mark.parametrize(
    ("shape", "dtype", "wins"),
    [
        ((4096, 4096, 50257), "bfloat16", True),
        ((4097, 4097, 4097), "float16", True),
        ((4096, 4096, 4096), "bfloat16", False),
        ((4096, 4096, 14336), "float16", False),
        ((64, 64, 64), "bfloat16", False),
        ((4097, 4097, 4097), "float32", False),
    ],
)
def test_the_model_of_the_vendor_knows_its_cliff(shape, dtype, wins, monkeypatch):
    plan = make_plan(problem_of_shape(*shape, dtype), H200)
    theirs = vendor_seconds(plan.problem, plan.machine)
    monkeypatch.setattr(room.api, "plan", lambda M, N: plan)
    choice = tw.torch.accelerate()._decide(
        torch.ops.aten.mm.default, *[torch.ones(1, 1)] * 2, [torch.ones(1, 1)] * 2, {}
    )
    assert choice.routed == wins
    assert (choice.ours, choice.theirs) == (plan.predicted, theirs)


def test_on_other_cards_nothing_is_claimed():
    problem = problem_of_shape(4097, 4097, 4097, "bfloat16")
    assert all(vendor_seconds(problem, KNOWN_CARDS[name]) == 0 for name in ("t4", "a100", "rtx4090"))


def test_a_row_is_aligned_by_its_stride_and_its_first_byte():
    aligned = problem_of_shape(16, 16, 16, "bfloat16")
    assert on_sixteen_bytes(aligned)
    assert not on_sixteen_bytes(problem_of_shape(16, 16, 17, "bfloat16"))
    assert not on_sixteen_bytes(problem_of_shape(16, 17, 16, "bfloat16"))
    turned = tw.plan(torch.ones(16, 16, dtype=torch.bfloat16), torch.ones(17, 16, dtype=torch.bfloat16).T[:, :16])
    assert on_sixteen_bytes(turned.problem)
