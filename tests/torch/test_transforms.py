"""Every mode in which torch records a program: forward mode, torch.func, any tracing, tensors without memory."""

from __future__ import annotations

import random
from functools import partial

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.flop_counter import FlopCounterMode

import tilewise as tw
from seeds import next_seed

# torch's own forward mode scripts something when it is first used
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")

SOFT = tw.Semiring("soft", add=tw.logaddexp, mul=lambda x, y: x + 2 * y, zero=float("-inf"))


def by_torch(semiring):
    """The same product from torch's own operations."""

    def spread(M, N, mul):
        return mul(M[..., :, :, None], N[..., None, :, :])

    terms = {
        "plus_times": torch.matmul,
        "min_plus": lambda M, N: spread(M, N, torch.add).min(-2).values,
        "max_plus": lambda M, N: spread(M, N, torch.add).max(-2).values,
        "min_times": lambda M, N: spread(M, N, torch.mul).min(-2).values,
        "max_times": lambda M, N: spread(M, N, torch.mul).max(-2).values,
        "min_max": lambda M, N: spread(M, N, torch.fmax).min(-2).values,
        "max_min": lambda M, N: spread(M, N, torch.fmin).max(-2).values,
        "logaddexp_plus": lambda M, N: spread(M, N, torch.add).logsumexp(-2),
        SOFT: lambda M, N: spread(M, N, lambda x, y: x + 2 * y).logsumexp(-2),
    }
    return terms[semiring]


NAMES = [name for name in tw.semirings if name != "lor_land"]
EVERY = [*NAMES, SOFT]


def ours(semiring):
    return lambda M, N: tw.matmul(M, N, semiring=semiring)


@pytest.mark.parametrize("semiring", EVERY, ids=str)
class TestForwardMode:
    M, N, tM, tN = (torch.randn(s, dtype=torch.float64) for s in ((4, 5), (5, 3), (4, 5), (5, 3)))

    def test_jvp(self, semiring):
        for mine, theirs in zip(
            *(torch.func.jvp(f, (self.M, self.N), (self.tM, self.tN)) for f in (ours(semiring), by_torch(semiring))),
            strict=True,
        ):
            torch.testing.assert_close(mine, theirs)

    def test_dual_numbers(self, semiring):
        with forward_ad.dual_level():
            made = ours(semiring)(forward_ad.make_dual(self.M, self.tM), self.N)
            theirs = by_torch(semiring)(forward_ad.make_dual(self.M, self.tM), self.N)
            torch.testing.assert_close(forward_ad.unpack_dual(made).tangent, forward_ad.unpack_dual(theirs).tangent)

    @pytest.mark.parametrize("transform", [torch.func.jacfwd, torch.func.jacrev, torch.func.hessian])
    def test_jacobians(self, semiring, transform):
        def scalar(f):
            return lambda M: f(M, self.N).sin().sum()

        mine, theirs = (transform(scalar(f))(self.M) for f in (ours(semiring), by_torch(semiring)))
        torch.testing.assert_close(mine, theirs)

    def test_the_gradients_of_each_of_a_batch(self, semiring):
        batch = torch.randn(6, 4, 5, dtype=torch.float64)

        def each(f):
            grad = torch.func.grad(lambda M, N: f(M, N).cos().sum(), argnums=(0, 1))
            return torch.vmap(grad, (0, None))(batch, self.N)

        for mine, theirs in zip(each(ours(semiring)), each(by_torch(semiring)), strict=True):
            torch.testing.assert_close(mine, theirs)

    def test_gradcheck_forward(self, semiring):
        M, N = self.M.clone().requires_grad_(), self.N.clone().requires_grad_()
        assert torch.autograd.gradcheck(ours(semiring), (M, N), check_forward_ad=True)


@pytest.mark.parametrize(
    "shapes", [((5,), (5,)), ((5,), (5, 3)), ((4, 5), (5,)), ((2, 1, 3, 4), (3, 4, 2)), ((3, 0), (0, 2))], ids=str
)
@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "logaddexp_plus"])
def test_forward_mode_of_vectors_and_stacks(shapes, semiring):
    M, N = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes)
    assert torch.autograd.gradcheck(ours(semiring), (M, N), check_forward_ad=True)


def test_forward_mode_of_a_layer():
    for on_lines in (True, False):
        layer = tw.torch.Linear(5, 7, on_lines=on_lines)
        x = torch.randn(2, 5)
        jacobian = torch.func.jacfwd(layer)(x)
        torch.testing.assert_close(
            jacobian, torch.func.jacfwd(partial(torch.nn.functional.linear, weight=layer.weight))(x)
        )


def test_a_vector_jacobian_product():
    M, N = torch.randn(4, 5), torch.randn(5, 3)
    _, pull = torch.func.vjp(ours("plus_times"), M, N)
    torch.testing.assert_close(pull(torch.ones(4, 3))[0], torch.ones(4, 3) @ N.T)


def test_functional_call_with_per_sample_gradients():
    layer = tw.torch.Linear(5, 2)
    weights = {k: v.detach() for k, v in layer.named_parameters()}

    def loss(weights, x):
        return torch.func.functional_call(layer, weights, (x,)).square().sum()

    x = torch.randn(6, 5)
    each = torch.vmap(torch.func.grad(loss), (None, 0))(weights, x)
    alone = torch.stack([torch.func.grad(loss)(weights, row)["weight"] for row in x])
    torch.testing.assert_close(each["weight"], alone)


class TestTracing:
    M, N, new = torch.randn(4, 5), torch.randn(5, 3), torch.randn(4, 5)

    @pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
    @pytest.mark.parametrize("semiring", ["plus_times", "min_plus"])
    def test_make_fx_holds_the_operator(self, mode, semiring):
        graph = make_fx(ours(semiring), tracing_mode=mode)(self.M, self.N)
        assert "tilewise.matmul" in graph.code
        torch.testing.assert_close(graph(self.new, self.N), by_torch(semiring)(self.new, self.N))

    def test_make_fx_through_a_gradient(self):
        graph = make_fx(torch.func.grad(lambda M: tw.matmul(M, self.N).sin().sum()))(self.M)
        theirs = torch.func.grad(lambda M: (M @ self.N).sin().sum())(self.new)
        torch.testing.assert_close(graph(self.new), theirs)

    def test_make_fx_with_an_epilogue(self):
        graph = make_fx(lambda M, b: tw.matmul(M, self.N, alpha=2.0, bias=b, activation="relu"))(self.M, torch.ones(3))
        torch.testing.assert_close(graph(self.new, torch.zeros(3)), (2 * self.new @ self.N).relu())

    @pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
    @pytest.mark.parametrize("requires", [True, False])
    def test_jit_trace_holds_the_operator(self, requires):
        M = self.M.clone().requires_grad_(requires)
        traced = torch.jit.trace(lambda M: tw.matmul(M, self.N).sin(), (M,))
        assert "tilewise.matmul" in traced.code or "tilewise::matmul" in str(traced.graph)
        torch.testing.assert_close(traced(self.new), (self.new @ self.N).sin())

    def test_tensors_without_memory(self):
        made = tw.matmul(self.M.to("meta"), self.N.to("meta"))
        assert made.is_meta
        assert made.shape == (4, 3)
        with FakeTensorMode() as fake:
            held = tw.matmul(fake.from_tensor(self.M), fake.from_tensor(self.N), semiring="min_plus")
            fresh = tw.matmul(torch.empty(7, 4), torch.empty(4, 2))
        assert held.shape == (4, 3)
        assert fresh.shape == (7, 2)

    def test_operations_are_counted(self):
        for f in (tw.matmul, ours("min_plus"), lambda M, N: tw.matmul(M, N, semiring="min_plus", return_arg=True)):
            with FlopCounterMode(display=False) as counter:
                f(self.M, self.N)
            assert counter.get_total_flops() == 2 * 4 * 5 * 3
        with FlopCounterMode(display=False) as counter:
            tw.matmul(self.M.expand(6, 4, 5), self.N[:, 0])
        assert counter.get_total_flops() == 2 * 6 * 4 * 5
        weight = self.N.clone().requires_grad_()
        with FlopCounterMode(display=False) as counter:
            tw.matmul(self.M, weight).sum().backward()
        assert counter.get_total_flops() == 2 * 2 * 4 * 5 * 3

    @pytest.mark.filterwarnings("ignore::UserWarning")
    @pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
    def test_nested_tensors_are_refused(self, layout):
        nested = torch.nested.nested_tensor([self.M, self.M], layout=layout)
        with pytest.raises(tw.UsageError, match="nested tensor, whose matrices have many shapes: unbind"):
            tw.matmul(nested, self.N)

    def test_out_is_a_copy_in_the_graph(self):
        traced = make_fx(lambda M, N: tw.matmul(M, N, out=torch.empty(4, 3)))(self.M, self.N)
        torch.testing.assert_close(traced(self.new, self.N), self.new @ self.N)

    @pytest.mark.parametrize("strict", [True, False])
    def test_exported(self, strict):
        class Step(torch.nn.Module):
            def forward(self, M, N):
                return tw.matmul(M, N, semiring="max_plus").sin()

        exported = torch.export.export(Step(), (self.M, self.N), strict=strict)
        assert "tilewise.matmul" in str(exported.graph)
        torch.testing.assert_close(exported.module()(self.new, self.N), by_torch("max_plus")(self.new, self.N).sin())

    @pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
    @pytest.mark.slow  # 10 s each; test_fullgraph.py and test_operator.py compile gradients of both
    @pytest.mark.parametrize("semiring", ["plus_times", "min_plus"])
    def test_compiled_gradients_of_torch_func(self, semiring):
        torch._dynamo.reset()
        step = torch.func.grad(lambda M: ours(semiring)(M, self.N).sin().sum())
        made = torch.compile(step, backend="aot_eager")(self.M)
        torch.testing.assert_close(made, torch.func.grad(lambda M: by_torch(semiring)(M, self.N).sin().sum())(self.M))


def test_under_autocast_backward_multiplies_in_its_dtype_too():
    M, N = torch.randn(4, 5, requires_grad=True), torch.randn(5, 3, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        P = tw.matmul(M, N)
    assert [x.dtype for x in P.grad_fn.saved_tensors if x is not None] == [torch.bfloat16, torch.bfloat16]
    P.float().sum().backward()
    assert M.grad.dtype == torch.float32


class Program:
    """A random program over two matrices, the same for ours and for torch's products."""

    def __init__(self, random):
        self.steps = []
        for _ in range(random.randint(2, 5)):
            kind = random.choice(["product", "product", "torch", "mix"])
            what = {
                "product": lambda: random.choice(EVERY),
                "torch": lambda: random.choice([torch.tanh, torch.sin, lambda x: x.mT, lambda x: 0.5 * x + 0.1]),
                "mix": lambda: random.choice([torch.add, torch.mul, torch.logaddexp]),
            }[kind]()
            self.steps.append((kind, what, random.randrange(9), random.randrange(9)))

    def run(self, how, *values):
        values = list(values)
        for kind, what, i, j in self.steps:
            x, y = values[i % len(values)], values[j % len(values)]
            made = how(what)(x, y) if kind == "product" else what(x) if kind == "torch" else what(x, y)
            values.append(torch.tanh(made) if kind == "product" else made)
        return sum((v * w).sum() for w, v in enumerate(values[2:], 1)) / 8


@pytest.mark.parametrize("count", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_random_programs_have_torchs_derivatives(count):
    seed = next_seed() % 2**32
    print("seed", seed)
    chance = random.Random(seed)
    torch.manual_seed(seed)
    for _ in range(count):
        program = Program(chance)
        n = chance.randint(1, 5)
        A, B, tA, tB = (torch.randn(n, n, dtype=torch.float64) for _ in range(4))
        results = []
        for how in (ours, by_torch):
            f = partial(program.run, how)
            leaf, other = A.clone().requires_grad_(), B.clone().requires_grad_()
            value = f(leaf, other)
            first = torch.autograd.grad(value, (leaf, other), create_graph=True, materialize_grads=True)
            second = torch.autograd.grad(
                sum((g * t).sum() for g, t in zip(first, (tA, tB), strict=True)) + 0 * (leaf.sum() + other.sum()),
                (leaf, other),
            )
            forward = torch.func.jvp(f, (A, B), (tA, tB))
            over = torch.func.jvp(torch.func.grad(f), (A, B), (tA, tB))
            results.append((value, *first, *second, *forward, *over))
        for mine, theirs in zip(*results, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-7, atol=1e-7)


def test_torch_func_takes_no_path_that_inspects_signatures(monkeypatch):
    """`Function.apply` would cost each level of a transform more than a small product."""

    def refused(*_):
        raise AssertionError("Function.apply was called")

    M, N = torch.randn(3, 4, 5), torch.randn(3, 5, 2)
    monkeypatch.setattr(torch.autograd.Function, "apply", refused)
    wanted = torch.func.vmap(torch.func.grad(lambda x, y: (x @ y).sin().sum()))(M, N)
    found = torch.func.vmap(torch.func.grad(lambda x, y: tw.matmul(x, y).sin().sum()))(M, N)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(
        torch.func.jvp(lambda x: tw.matmul(x, N[0]), (M[0],), (M[1],)), (M[0] @ N[0], M[1] @ N[0])
    )
