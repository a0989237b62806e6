"""torch.compile: products are chosen in the joint graph and called directly from its code; graphs do not break."""

from __future__ import annotations

import pytest
import torch

import tilewise as tw
import tilewise.torch
from tilewise.torch import choice

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.up, self.down = torch.nn.Linear(33, 65), torch.nn.Linear(65, 7)

    def forward(self, x):
        return self.down(torch.nn.functional.silu(self.up(x)))


def batch(rows):
    return torch.randn(rows, 33, generator=torch.Generator().manual_seed(rows))


def step(run, net, x):
    net.zero_grad()
    made = run(x)
    made.square().sum().backward()
    return [made.detach(), *(p.grad.clone() for p in net.parameters())]


def close(got, expected):
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@pytest.fixture(autouse=True)
def fresh():
    """Every graph goes through the passes again; C++ that is compiled, and its headers, are kept."""
    torch._dynamo.reset()
    passes = torch._inductor.config.patch(fx_graph_cache=False, joint_custom_pre_pass=None)
    with passes, torch._functorch.config.patch(enable_autograd_cache=False):
        yield
    torch._dynamo.reset()


@pytest.fixture
def graphs():
    """The graphs that Inductor writes code for."""
    seen = []
    with torch._inductor.config.patch(post_grad_custom_post_pass=lambda graph: seen.append(_named(graph))):
        yield seen


def _named(graph):
    return [str(node.target) for node in graph.nodes if node.op == "call_function"]


def _count(graphs, name):
    return sum(names.count(name) for names in graphs)


def test_a_block_takes_forward_and_backward_and_other_sizes_do_not_recompile(graphs):
    net = Net()
    compiled = torch.compile(net, fullgraph=True, dynamic=True)
    expected = {rows: step(net, net, batch(rows)) for rows in (4, 9)}
    step(compiled, net, torch.randn(4, 33))
    assert _count(graphs, "tilewise.matmul.default") == 0
    del graphs[:]
    with tw.torch.accelerate("always") as done:
        for rows in (4, 9, 4):
            close(
                step(compiled, net, batch(rows)),
                expected[rows],
            )
    assert _count(graphs, "tilewise.matmul.default") == 5
    assert len(graphs) == 2, "one forward, one backward: the second size compiled nothing"
    assert (done.routed, done.left) == (5, 0)
    assert {c.operator for c in done.choices} == {"addmm, compiled", "mm, compiled"}
    close(step(compiled, net, batch(4)), expected[4])


def test_products_that_are_not_faster_stay_and_are_reported(graphs):
    net = Net()
    compiled = torch.compile(net, fullgraph=True)
    with tw.torch.accelerate() as done:
        step(compiled, net, torch.randn(4, 33))
    assert _count(graphs, "tilewise.matmul.default") == 0
    assert (done.routed, done.left) == (0, 5)
    assert "nothing is known of torch's kernel here" in str(done)


def test_layers_of_a_patched_model_are_settled_each_for_itself(graphs, monkeypatch):
    real = choice.Account._decide

    def wide_ones_win(self, operator, lie, *more):
        made = real(self, operator, lie, *more)
        made.routed = 65 in (*lie[0], *lie[1]) and 33 in (*lie[0], *lie[1])
        return made

    monkeypatch.setattr(choice.Account, "_decide", wide_ones_win)
    monkeypatch.setattr(choice.ACCOUNTS["plan"], "_choices", {})
    net, x = Net(), torch.randn(4, 33)
    expected = step(net, net, x)
    close(step(torch.compile(tw.torch.patch(net), fullgraph=True), net, x), expected)
    assert _count(graphs, "tilewise.matmul.default") == 2, "the first layer's product and the gradient of its weight"
    assert _count(graphs, "tilewise.routed_matmul.default") == 0
    assert _count(graphs, "aten.addmm.default") == 1, "a product that stays keeps its bias"
    assert _count(graphs, "aten.mm.default") == 2


def test_the_code_calls_the_product_straight_and_keeps_its_epilogue_in_one_kernel():
    from torch._inductor.utils import run_and_get_code

    weight, bias = torch.randn(33, 65), torch.randn(65)
    compiled = torch.compile(lambda x: torch.nn.functional.gelu(tw.matmul(x, weight) + bias) + 1, fullgraph=True)
    x = torch.randn(4, 33)
    made, codes = run_and_get_code(compiled, x)
    torch.testing.assert_close(made, torch.nn.functional.gelu(x @ weight + bias) + 1, rtol=1e-4, atol=1e-4)
    called = [line for line in codes[0].splitlines() if "extern_kernels.tilewise_matmul(" in line]
    assert len(called) == 1
    assert "torch.ops.tilewise" not in codes[0].partition("def call")[2]
    assert codes[0].count("async_compile.cpp_pybinding(") == 1, "bias, gelu and sum are one kernel"


def test_other_semirings_and_a_pass_that_was_there_before():
    seen = []
    with torch._inductor.config.patch(joint_custom_pre_pass=lambda graph: seen.append(graph)):
        compiled = torch.compile(lambda M, N: tw.matmul(M, N, semiring="min_plus") * 2, fullgraph=True)
        M, N = torch.randn(5, 7), torch.randn(7, 3)
        torch.testing.assert_close(compiled(M, N), 2 * (M[:, :, None] + N).amin(1))
        assert seen


@pytest.mark.parametrize("dims", [2, 3])
def test_opcheck_of_a_product_whose_kernel_is_not_chosen_yet(dims):
    M, N = torch.randn(*(2, 5, 7)[-dims:], requires_grad=True), torch.randn(*(2, 7, 3)[-dims:], requires_grad=True)
    for when in ("plan", "always"):
        torch.library.opcheck(torch.ops.tilewise.routed_matmul.default, (M, N, when))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.ops.tilewise.routed_matmul(M, N, "always").dtype == torch.bfloat16
