"""Compiled products whose matrices Inductor may still lay out: aligned rows, padding of P, and no copy of what the
graph makes itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import tilewise as tw
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Layout
from tilewise.core.tuning import table_for
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import takes_boxes
from tilewise.torch import buffers, call_sites, choice
from tilewise.torch.row_alignment import (
    Arrangement,
    aligned_layout,
    aligned_leading_dimension,
    best_arrangement,
)

H200 = replace(KNOWN_CARDS["h200"], arch="sm_90a", tuned=table_for("NVIDIA H200"))
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
)


def wherever_it_can_be(p, machine, computed, pads_p):
    """Patch the choice, so that small products get aligned rows too."""
    wide = aligned_layout(p.layout_p, p.m, p.n, 2) if pads_p else None
    sides = aligned_layout(p.layout_m, p.m, p.k, 2), aligned_layout(p.layout_n, p.k, p.n, 2)
    if wide:
        p = replace(p, layout_p=Layout(-(-p.n // 8) * 8, 1, spare=True))
    p = replace(p, layout_m=sides[0] or p.layout_m, layout_n=sides[1] or p.layout_n)
    return Arrangement(p, 1.0, (sides[0] is not None, sides[1] is not None))


@pytest.fixture
def calls(monkeypatch):
    """Record the layouts of each call's matrices, and overwrite the padding of P's rows, as on a card."""
    seen = []

    def launch_for(M, N, out, spare):
        def launch(M, N, out):
            seen.append((M.stride(), N.stride(), out.stride(), spare))
            if spare:
                room = torch.as_strided(out, (out.shape[0] - 1, out.stride(0)), out.stride())
                room.fill_(float("nan"))
            out.copy_(M.float() @ N.float())  # torch's bfloat16 on a CPU reads past the end of a row
            return True

        return launch

    monkeypatch.setattr(call_sites, "_launch_for", launch_for)
    monkeypatch.setattr(buffers, "is_on_card", lambda value: True)
    monkeypatch.setattr(buffers, "best_arrangement", wherever_it_can_be)
    for module in (buffers, choice):
        monkeypatch.setattr(module, "machine_of", lambda device: H200)
    choice.expected.cache_clear()
    torch._dynamo.reset()
    # no graph is taken from a cache, which would know nothing of what is patched here; C++ kernels are, by their text
    with (
        torch._functorch.config.patch(enable_autograd_cache=False),
        torch._inductor.config.patch(fx_graph_cache=False, joint_custom_pre_pass=None, post_grad_custom_post_pass=None),
    ):
        yield seen
    torch._dynamo.reset()
    choice.expected.cache_clear()


def step(run, leaves, *given):
    made = run(*given)
    grads = torch.autograd.grad(made.float().square().sum(), leaves)
    return [made.detach(), *grads]


def close(got, expected):
    for a, b in zip(got, expected, strict=True):
        assert a.shape == b.shape
        torch.testing.assert_close(a.float(), b.float(), rtol=3e-2, atol=3e-2 * float(b.float().abs().max()))


class Net(torch.nn.Module):
    """Widths that are no multiple of 8, a stack of tokens, a residual."""

    def __init__(self, width=301, hidden=523):
        super().__init__()
        torch.manual_seed(0)
        self.norm = torch.nn.LayerNorm(width)
        self.up, self.down = torch.nn.Linear(width, hidden), torch.nn.Linear(hidden, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def test_values_of_the_graph_are_aligned_and_weights_and_gradients_stay_dense(calls):
    net = Net().bfloat16()
    x = torch.randn(3, 67, 301, generator=torch.Generator().manual_seed(1)).bfloat16().requires_grad_()
    leaves = [x, *net.parameters()]
    expected = step(net, leaves, x)
    with tw.torch.accelerate("always"):
        close(step(torch.compile(net, fullgraph=True), leaves, x), expected)
    assert len(calls) == 6
    wide, wider = aligned_leading_dimension(301, 2), aligned_leading_dimension(523, 2)
    up, down = calls[:2]
    assert up[0] == (wide, 1), "what the norm made"
    assert up[2:] == ((528, 1), True), "16 bytes are enough for stores"
    assert down[0] == (wider, 1), "what gelu made"
    assert down[2:] == ((304, 1), True), "the sum with x is another value"
    assert any(out == (301, 1) and not spare for _, _, out, spare in calls[2:]), "a gradient that the program sees"
    for M, N, _, _ in calls:
        assert all(max(strides) in (wide, wider, 301, 523) for strides in (M, N))


def test_a_product_saved_for_backward_keeps_its_layout(calls):
    layer = torch.nn.Linear(301, 523, bias=False).bfloat16()
    x = torch.randn(67, 301, generator=torch.Generator().manual_seed(1)).bfloat16()

    def f(x):
        return layer(x).sin()  # whose gradient is of what sin was given

    expected = step(f, [layer.weight], x)
    with tw.torch.accelerate("always"):
        made = torch.compile(f, fullgraph=True)(x)
        kept = {tensor.stride() for tensor in made.grad_fn.saved_tensors if tensor.shape == (67, 523)}
        (grad,) = torch.autograd.grad(made.float().square().sum(), [layer.weight])
    close([made.detach(), grad], expected)
    assert kept == {(528, 1)}, "a dense copy beside it is a pass over all of P"


@pytest.mark.drawn(1)  # Inductor compiles for seconds
@pytest.mark.parametrize("again", [False, True])
def test_the_gradient_overwrites_the_logits(calls, monkeypatch, again):
    from torch._inductor.utils import run_and_get_code

    from tilewise.torch import row_losses

    monkeypatch.setattr(row_losses, "_is_odd", lambda logits: logits.shape[1] % 8 != 0)
    torch.manual_seed(0)
    layer = torch.nn.Linear(301, 523, bias=False).bfloat16()
    x, y = torch.randn(67, 301).bfloat16(), torch.randint(523, (67,))

    def f(x):
        logits = layer(x)
        loss = torch.nn.functional.cross_entropy(logits, y).float()
        return loss + logits.float().square().mean() if again else loss  # backward reads the logits a second time

    def once():
        with tw.torch.accelerate("always"):
            return step(torch.compile(f, fullgraph=True), [layer.weight], x)

    expected = step(f, [layer.weight], x)
    got, texts = run_and_get_code(once)
    close(got, expected)
    assert any("row_losses_gradient_.default" in text for text in texts) == (not again)
    assert any("row_losses_gradient.default(" in text for text in texts) == again


def test_what_the_program_sees_is_dense(calls):
    weight = torch.randn(301, 523).bfloat16()

    def f(x):
        made = tw.matmul(x * 2, weight)
        return made, made.view(4, -1), (x * 2)

    x = torch.randn(12, 301).bfloat16()
    for got, expected in zip(torch.compile(f, fullgraph=True)(x), f(x), strict=True):
        assert got.stride() == expected.stride()
        torch.testing.assert_close(got.float(), expected.float(), rtol=2e-2, atol=1.0)
    assert calls[0][2:] == ((523, 1), False)


def test_products_in_a_cat_and_of_a_product_keep_their_neighbours(calls):
    a, b = torch.randn(301, 523).bfloat16(), torch.randn(523, 301).bfloat16()

    def f(x):
        first, second = tw.matmul(x, a), tw.matmul(x + 1, a)
        return torch.cat((first, second), 1) * 2, tw.matmul(first, b).sum(0)

    x = torch.randn(12, 301).bfloat16()
    for got, expected in zip(torch.compile(f, fullgraph=True)(x), f(x), strict=True):
        torch.testing.assert_close(got.float(), expected.float(), rtol=2e-2, atol=8.0)
    assert all(spare for *_, spare in calls)


def test_the_copy_engine_stores_rows_that_end_between_16_bytes_only_where_there_is_room():
    assert takes_boxes(Layout(64, 1, spare=True), 5, 57)
    assert not takes_boxes(Layout(64, 1), 5, 57)
    assert not takes_boxes(Layout(57, 1, spare=True), 5, 57), "rows start anywhere"
    assert not takes_boxes(Layout(64, 1, spare=True), 1, 57), "nothing is known of what follows a single row"


def test_a_problem_is_laid_out_only_where_that_is_quicker():
    lie = ((8184, 770), (770, 2310), (770, 1), (1, 770))
    given = choice.problem_of(lie, "bfloat16", (0, 0))
    laid = best_arrangement(given, H200, (True, False), True)
    assert laid.moved[0]
    assert laid.problem.layout_m == Layout(832, 1)
    assert laid.problem.layout_p == Layout(2312, 1, spare=True)
    assert laid.seconds < best_arrangement(given, H200, (False, False), False).seconds
    even = choice.problem_of(((8192, 768), (768, 2304), (768, 1), (1, 768)), "bfloat16", (0, 0))
    assert best_arrangement(even, H200, (True, True), True).problem == even
    assert aligned_layout(Layout(30, 1), 500, 30, 2) is None, "a short row would become four times as long"
    assert aligned_layout(Layout(1, 770), 770, 9, 2) == Layout(1, 832)
