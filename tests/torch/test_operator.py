"""`tilewise::matmul` among torch's own operators: opcheck, torch.compile, autocast, vmap, strides without copies."""

from __future__ import annotations

import copy
import gc
import subprocess
import sys

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import tilewise as tw
import tilewise.torch  # registers the operator
from tilewise.torch import operator

SHAPES = [((5, 7), (7, 3)), ((7,), (7, 3)), ((2, 1, 3, 4), (3, 4, 2)), ((4, 0), (0, 3))]


@pytest.mark.drawn(6)
@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "logaddexp_plus", "lor_land"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_opcheck(semiring, shapes):
    M, N = (torch.randn(shape, requires_grad=True) for shape in shapes)
    found = torch.library.opcheck(torch.ops.tilewise.matmul.default, (M, N, semiring, "high"))
    assert set(found.values()) == {"SUCCESS"}
    if semiring == "min_plus":
        found = torch.library.opcheck(torch.ops.tilewise.matmul_arg.default, (M, N, semiring, "high"))
        assert set(found.values()) == {"SUCCESS"}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int32, torch.bool, torch.complex64])
def test_opcheck_of_other_dtypes(dtype):
    M, N = torch.randn(5, 7).mul(3).to(dtype), torch.randn(3, 7).mul(3).to(dtype).T
    found = torch.library.opcheck(torch.ops.tilewise.matmul.default, (M, N, "plus_times", "high"))
    assert set(found.values()) == {"SUCCESS"}


def test_opcheck_of_products_with_aligned_rows():
    M, N = torch.randn(3, 5, requires_grad=True), torch.randn(5, 7, requires_grad=True)
    how = ("plus_times", "high", False, True)
    torch.library.opcheck(torch.ops.tilewise.matmul.default, (M, N, *how))
    made = torch.ops.tilewise.matmul(M, N, *how)
    assert made.stride() == (64, 1)
    torch.testing.assert_close(made, M @ N)
    double = [x.detach().double().requires_grad_() for x in (M, N)]
    assert torch.autograd.gradcheck(lambda M, N: torch.ops.tilewise.matmul(M, N, *how), double)


class Step(torch.nn.Module):
    def __init__(self, semiring):
        super().__init__()
        self.semiring = semiring
        self.weight = torch.nn.Parameter(torch.randn(6, 7))

    def forward(self, x):
        return tw.matmul(x * 2, self.weight.mT, semiring=self.semiring).sin()


REGISTERED = tw.Semiring("best_chance", add=tw.maximum, mul=lambda x, y: x * y, zero=0)


@pytest.mark.drawn(2)  # 3 s each
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "logaddexp_plus", REGISTERED], ids=str)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
def test_compiled_without_a_graph_break_it_gives_the_eager_results(backend, semiring):
    if backend == "inductor" and semiring != "plus_times":
        pytest.skip("one C++ compilation is enough")
    torch._dynamo.reset()
    torch.manual_seed(0)
    step = Step(semiring)
    compiled = torch.compile(step, fullgraph=True, backend=backend)
    for rows in (5, 8):  # the second call has other sizes
        x = torch.randn(rows, 7)
        grads = []
        for run in (step, compiled):
            step.zero_grad()
            made = run(x)
            made.square().sum().backward()
            grads.append((made.detach(), step.weight.grad.clone()))
        for eager, other in zip(*grads, strict=True):
            torch.testing.assert_close(other, eager)


FIRST_OF_ALL = """
import torch, tilewise as tw
M = torch.rand(5, 5)
compiled = torch.compile(lambda M, **how: tw.matmul(M, M, **how), fullgraph=True, backend="aot_eager")
torch.testing.assert_close(compiled(M%(how)s), (M[:, :, None] * M).amax(1) if "%(how)s" else M @ M)
torch.testing.assert_close(tw.matmul(M, M), M @ M)
torch.testing.assert_close(compiled(M%(how)s), compiled(M.clone()%(how)s))
"""


@pytest.mark.drawn(1)  # each is a process that imports torch and its compiler
@pytest.mark.parametrize("how", ["", ", semiring=tw.Semiring('best', tw.maximum, lambda x, y: x * y, 0)"])
def test_a_programs_first_call_may_be_a_compiled_one(how):
    program = [sys.executable, "-W", "ignore", "-c", FIRST_OF_ALL % {"how": how}]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
def test_another_semiring_of_ones_own_is_noticed_by_what_is_compiled():
    torch._dynamo.reset()
    step = Step(REGISTERED)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    x = torch.randn(5, 7)
    for mul in (lambda x, y: x * y, lambda x, y: x + y):
        step.semiring = copy.deepcopy(tw.Semiring("best_chance", add=tw.maximum, mul=mul, zero=tw.smallest))
        torch.testing.assert_close(compiled(x), step(x))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
def test_a_semiring_that_is_made_anew_in_every_call_is_compiled_once():
    torch._dynamo.reset()
    graphs = []

    def counted(graph, _):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(lambda M, N, own: tw.matmul(M, N, semiring=own), fullgraph=True, backend=counted)
    M, N = torch.rand(5, 6), torch.rand(6, 7)
    for scale, known in ((2, 1), (2, 1), (3, 2), (2, 2), (3, 2)):
        own = tw.Semiring("scaled", tw.maximum, lambda x, y, scale=scale: x * y * scale, 0)
        torch.testing.assert_close(compiled(M, N, own), (M[:, :, None] * N).amax(1) * scale)
        del own
        gc.collect()
        assert len(graphs) == known


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype):
    M, N = torch.randn(4, 5, requires_grad=True), torch.randn(5, 3)
    with torch.autocast("cpu", dtype=dtype):
        P, Q = tw.matmul(M, N), tw.matmul(M.detach(), N)
        assert P.dtype == Q.dtype == torch.matmul(M, N).dtype == dtype
        assert tw.matmul(M.double(), N.double()).dtype == torch.float64
        assert tw.matmul(M, N, semiring="min_plus").dtype == torch.float32
        for on_lines in (True, False):
            assert tw.torch.Linear(5, 3, on_lines=on_lines)(M).dtype == dtype
    P.float().sum().backward()
    assert M.grad.dtype == torch.float32
    torch.testing.assert_close(P, M.to(dtype) @ N.to(dtype), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("axes", [(0, 0), (1, None), (None, 2), (2, 1)])
@pytest.mark.parametrize("shapes", [((4, 5), (5, 3)), ((5,), (5, 3)), ((4, 5), (5,))], ids=str)
def test_vmap(axes, shapes):
    if any(axis is not None and axis > len(shape) for axis, shape in zip(axes, shapes, strict=True)):
        pytest.skip("no such axis")
    M, N = (torch.randn(*s[:a], 6, *s[a:]) if a is not None else torch.randn(s)
            for s, a in zip(shapes, axes, strict=True))  # fmt: skip
    torch.testing.assert_close(torch.vmap(tw.matmul, axes)(M, N), torch.vmap(torch.matmul, axes)(M, N))
    arg = torch.vmap(lambda M, N: tw.matmul(M, N, semiring="max_plus", return_arg=True), axes)(M, N)[1]
    assert arg.shape[0] == 6


class Copies(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **kwargs or {})


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_strides_of_every_kind_are_read_in_place(dtype):
    memory = torch.randn(40, 50).to(dtype)
    views = [(memory[:17, 1:34], memory[:33, 3:8]), (memory.T[:20], memory[:, ::3][:40]), (memory[::2], memory.T)]
    for M, N in views:
        before = memory.clone()
        with Copies() as copies:
            P = tw.matmul(M, N)
        assert not [name for name in copies.seen if any(part in name for part in ("copy", "clone", "contiguous"))]
        assert torch.equal(memory, before)
        torch.testing.assert_close(
            P.float(), M.float() @ N.float(), rtol=2e-2, atol=2e-1 if dtype != torch.float32 else 1e-4
        )


def test_the_promise_of_nonnegative_operands_reaches_the_product(monkeypatch):
    seen = []
    multiply = operator.dispatch.matmul
    monkeypatch.setattr(operator.dispatch, "matmul", lambda *given, **how: seen.append(how) or multiply(*given, **how))
    M, N = torch.rand(3, 4), torch.rand(4, 5)
    for promise in (True, False):
        P = tw.torch.matmul(M, N, semiring="min_plus", nonnegative=promise)
        assert torch.equal(P, (M[:, :, None] + N).amin(1))
    assert [how["nonnegative"] for how in seen] == [True, False]
    torch.library.opcheck(torch.ops.tilewise.matmul, (M, N, "min_plus", "high", True))


def test_keywords_without_gradients_are_refused():
    M = torch.randn(3, 3, requires_grad=True)
    with pytest.raises(tw.UsageError, match="out= has no gradient"):
        tw.matmul(M, M, out=torch.empty(3, 3))
    with pytest.raises(tw.UsageError, match="tile= pins a launch"):
        tw.matmul(M, M, tile=4)
    with pytest.raises(tw.DeviceError, match="device='cuda'"):
        tw.matmul(M, M, device="cuda")
    with pytest.raises(tw.ShapeError, match="3 columns of M do not meet the 2 rows of N"):
        tw.matmul(M, torch.randn(2, 2))
    with pytest.raises(tw.UsageError, match="semiring='plus'"):
        tw.matmul(M, M, semiring="plus")
    with pytest.raises(tw.UsageError, match="N is of numpy"):
        tw.matmul(M, [[1.0]])


def test_a_saved_and_loaded_program_still_knows_the_operator():
    exported = torch.export.export(Step("plus_times"), (torch.randn(5, 7),), strict=True)
    assert "tilewise.matmul" in str(exported.graph)


class TestLinear:
    @pytest.mark.parametrize("shape", [(5,), (4, 5), (2, 3, 5), (0, 5)])
    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize("on_lines", [True, False])
    def test_is_torchs_layer(self, shape, bias, on_lines):
        ours = tw.torch.Linear(5, 7, bias=bias, on_lines=on_lines)
        theirs = torch.nn.Linear(5, 7, bias=bias)
        theirs.load_state_dict(ours.state_dict())
        x, y = torch.randn(shape, requires_grad=True), None
        grads = []
        for layer in (ours, theirs):
            x.grad = None
            y = layer(x)
            if layer is ours and on_lines and len(shape) > 1:
                assert y.stride(-2) == 64
            y.square().sum().backward()
            grads.append((y.detach(), x.grad, *(p.grad for p in layer.parameters())))
        for a, b in zip(*grads, strict=True):
            torch.testing.assert_close(a, b)

    def test_shares_the_weights_of_a_layer_that_is_there(self):
        theirs = torch.nn.Linear(5, 7)
        ours = tw.torch.Linear.of(theirs)
        assert ours.weight is theirs.weight
        assert ours.bias is theirs.bias
        torch.testing.assert_close(ours(torch.ones(2, 5)), theirs(torch.ones(2, 5)))

    def test_a_stack_that_does_not_fold_is_not_copied(self):
        x = torch.randn(3, 2, 5).transpose(0, 1)
        layer = tw.torch.Linear(5, 7, bias=False, when="always")
        with Copies() as copies, torch.no_grad():
            y = layer(x)
        assert not [name for name in copies.seen if "clone" in name or "copy" in name]
        torch.testing.assert_close(y, torch.nn.functional.linear(x, layer.weight))
