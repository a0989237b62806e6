"""torch.compile with fullgraph=True: every public function and keyword is one graph, values and gradients as eager."""

from __future__ import annotations

import pytest
import torch

import tilewise as tw
import tilewise.torch

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
)

G = torch.rand(4, 4, generator=torch.Generator().manual_seed(1))
COUNTS, CLASSES, ENDS = torch.ones(4, 4, dtype=torch.int64), torch.tensor([0, 1, 3, -100]), torch.tensor([2, 4])
REGISTERED = tw.Semiring("best", add=tw.maximum, mul=lambda x, y: x * y, zero=0)
OWN_FIELDS = tw.Semiring(
    "shorter", zero=(tw.largest, 0), fields=("length", "paths"),
    add=lambda x, y: (tw.minimum(x.length, y.length),
                      tw.where(x.length <= y.length, x.paths, 0) + tw.where(y.length <= x.length, y.paths, 0)),
    mul=lambda x, y: (x.length + y.length, x.paths * y.paths),
)  # fmt: skip
CALLS = {
    "closure": lambda a: tw.closure(a),
    "closure from sources": lambda a: tw.closure(a, semiring="max_min", sources=[1, 2]),
    "einsum": lambda a: tw.einsum("ij,jk,kl->il", a, G, a),
    "einsum of one": lambda a: tw.einsum("ii->i", a) + tw.einsum("ij->j", a),
    "einsum over min": lambda a: tw.einsum("ij,jk,kl->il", a, G, a, semiring="min_plus"),
    "einsum without a sum": lambda a: tw.einsum("ij,ij->ij", a, G, semiring=REGISTERED),
    "einsum of a dtype": lambda a: tw.einsum("ij,jk->ik", a, G, dtype="float64"),
    "the power 0": lambda a: tw.power(a, 0) + a,
    "power": lambda a: tw.power(a, 3, semiring="min_plus"),
    "chain": lambda a: tw.chain([a, G, a], semiring="max_plus"),
    "matvec": lambda a: tw.matvec(a, G[0]),
    "tensordot": lambda a: tw.tensordot(a, G, axes=1),
    "lists of products": lambda a: tw.matmul_many([(a, G), (G, a)])[1],
    "dtype": lambda a: tw.matmul(a, G, dtype="float64"),
    "own semiring": lambda a: tw.matmul(a, G, semiring=REGISTERED, precision="ieee", device="cpu"),
    "arg": lambda a: tw.matmul(a, G, semiring="min_plus", return_arg=True)[0],
    "epilogue": lambda a: tw.matmul(a, G, alpha=2.0, bias=G[0], activation="gelu"),
    "fields": lambda a: tw.matmul((a, COUNTS), (G, COUNTS), semiring="min_count")[0],
    "own fields": lambda a: tw.matmul((a, COUNTS), (G, COUNTS), semiring=OWN_FIELDS)[0],
    "mean loss": lambda a: tw.torch.linear_cross_entropy(a, G, CLASSES, G[0]),
    "loss of each": lambda a: tw.torch.linear_cross_entropy(a, G, CLASSES, reduction="none"),
    "groups": lambda a: tw.grouped_matmul(a, torch.stack([G, G]), ENDS),
    "groups along k": lambda a: tw.grouped_matmul(a, G, ENDS, along="k"),
    "rows": lambda a: tw.scatter_rows(a, torch.tensor([0, 1, 1, 0]), 2),
}
INTO = {
    "out": lambda a, out: tw.matmul(a, G, out=out),
    "onto": lambda a, out: tw.matmul(a, G, out=out, accumulate=True, semiring="min_plus"),
    "with an activation": lambda a, out: tw.matmul(a, G, out=out, accumulate=True, alpha=-1.0, activation="relu"),
    "out of einsum": lambda a, out: tw.einsum("ij,jk->ik", a, G, out=out),
    "out of groups": lambda a, out: tw.grouped_matmul(a, torch.stack([G, G]), ENDS, out=out),
}


def compiled(call):
    torch._dynamo.reset()
    return torch.compile(call, backend="aot_eager", fullgraph=True)


@pytest.mark.drawn(4)  # each starts the compiler twice
@pytest.mark.parametrize("name", CALLS)
def test_one_graph_with_its_gradient(name):
    call = CALLS[name]
    a = torch.rand(4, 4, generator=torch.Generator().manual_seed(2), requires_grad=True)
    made, want = compiled(lambda a: call(a) * 2)(a), call(a) * 2
    torch.testing.assert_close(made, want)
    torch.testing.assert_close(*(torch.autograd.grad(x.square().sum(), a)[0] for x in (made, want)))
    with torch.no_grad():
        torch.testing.assert_close(compiled(call)(a), call(a))


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", INTO)
def test_what_is_given_is_written(name):
    call, a = INTO[name], torch.rand(4, 4, generator=torch.Generator().manual_seed(2))
    given, want = torch.full((4, 4), 0.5), torch.full((4, 4), 0.5)
    call(a, want)
    made = compiled(call)(a, given)
    assert made is given
    torch.testing.assert_close(given, want)


def test_one_graph_serves_many_sizes():
    run = compiled(lambda a: tw.einsum("ij,jk->ik", a, a.mT, semiring="max_plus") + tw.closure(a))
    for n in (3, 5, 6, 7):
        a = torch.rand(n, n, generator=torch.Generator().manual_seed(n))
        torch.testing.assert_close(run(a), tw.matmul(a, a.mT, semiring="max_plus") + tw.closure(a))


def test_what_needs_a_look_at_the_values_breaks_the_graph_once():
    torch._dynamo.reset()
    a = torch.rand(4, 4)

    def call(a):
        return tw.einsum("ij,jk,kl->il", a, G, a, semiring="min_times") * 2

    torch.testing.assert_close(torch.compile(call, backend="aot_eager")(a), call(a))
    with pytest.raises(tw.UsageError, match="not below 0"):
        torch.compile(call, backend="aot_eager")(-a)


def test_gradients_of_fields_are_those_of_their_definition():
    a = torch.rand(3, 5, dtype=torch.float64, requires_grad=True)
    b, da, db = (torch.rand(*shape, dtype=torch.float64) for shape in ((5, 2), (3, 5), (5, 2)))
    value, slope = tw.matmul((a, da), (b, db), semiring="dual")
    torch.testing.assert_close(value, a @ b)
    (slope * 3).sum().backward()
    torch.testing.assert_close(a.grad, 3 * torch.ones(3, 2, dtype=torch.float64) @ db.T)
    W = torch.rand(4, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda W: tw.matmul((W, COUNTS), (W, COUNTS), semiring="min_count")[0], (W,))
    batch = torch.rand(3, 4, 4)
    made = torch.func.vmap(lambda W: tw.matmul((W, COUNTS), (W, COUNTS), semiring="min_count")[0])(batch)
    torch.testing.assert_close(made, tw.matmul(batch, batch, semiring="min_plus"))
