"""accelerate(): the program's own products, routed where a plan wins, with an account of it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
import torch

import tilewise as tw
from seeds import next_seed
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import problem_of_shape
from tilewise.errors import ShapeError
from tilewise.planning.choose import make_plan
from tilewise.torch import choice as room
from tilewise.torch.acceleration import REPLACEMENTS
from tilewise.torch.vendor import on_sixteen_bytes, padded_seconds, vendor_seconds

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
    assert {c.operator for c in done.choices} == {"linear", "mm", "bmm", "baddbmm"}
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


EQUATIONS = ["ij,jk->ik", "bij,bjk->bik", "bhqd,bhkd->bhqk", "ij,jk->ki", "bij,kj->bik", "ij,ij->", "bii,bij->bj"]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum_of_two_is_one_product_or_left_alone(equation):
    seed = next_seed() % 2**31
    print("seed", seed)
    torch.manual_seed(seed)
    size = dict(zip("bhijkqd", torch.randint(2, 7, (7,)).tolist(), strict=True))
    left, right = equation.partition("->")[0].split(",")
    M, N = (torch.randn([size[c] for c in labels], requires_grad=True) for labels in (left, right))
    expected = torch.einsum(equation, M, N)
    moved = torch.randn_like(expected)
    theirs = torch.autograd.grad(expected, (M, N), moved)
    with tw.torch.accelerate("always") as done:
        made = torch.einsum(equation, M, N)
        ours = torch.autograd.grad(made, (M, N), moved)
    torch.testing.assert_close(made, expected)
    torch.testing.assert_close(ours, theirs)
    assert done.routed == (0 if equation in EQUATIONS[-1:] else 3)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_gradients_of_gradients_and_modes_go_on():
    torch.manual_seed(0)
    M, N = (torch.randn(4, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    with tw.torch.accelerate("always") as done:
        assert torch.autograd.gradcheck(torch.matmul, (M, N))
        assert torch.autograd.gradgradcheck(torch.matmul, (M, N))
        assert torch.autograd.gradcheck(torch.nn.functional.linear, (M, N, M[0].detach().clone().requires_grad_()))
        along = torch.func.jvp(lambda M: M @ N, (M,), (N,))[1]
        each = torch.vmap(torch.mv)(torch.stack([M, N]), torch.stack([M[0], N[0]]))
        rows = torch.vmap(torch.matmul)(torch.stack([M, N]), torch.stack([N, M]))
    torch.testing.assert_close(along, N @ N)
    torch.testing.assert_close(each, torch.stack([M @ M[0], N @ N[0]]))
    torch.testing.assert_close(rows, torch.stack([M @ N, N @ M]))
    assert done.routed


def test_a_layer_whose_products_all_stay_runs_as_torchs_own():
    net, x = model(), torch.randn(4, 33)
    with tw.torch.accelerate() as done:
        made = net(x)
    assert "Addmm" in made.grad_fn.name(), "torch's own function runs"
    assert (done.routed, done.left) == (0, 5)
    assert all("nothing is known" in c.why for c in done.choices)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_is_kept(dtype):
    net, x = model(), torch.randn(4, 33)
    with torch.autocast("cpu", dtype=dtype):
        expected = step(net, x)
        with tw.torch.accelerate("always") as done:
            got = step(net, x)
    assert done.routed == 5
    assert [a.dtype for a in got] == [b.dtype for b in expected]
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=5e-2, atol=5e-1)


def test_an_unknown_value_of_when_is_named():
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
def test_the_vendor_model_has_the_cliff(shape, dtype, wins, monkeypatch):
    plan = make_plan(problem_of_shape(*shape, dtype), H200)
    theirs = vendor_seconds(plan.problem, plan.machine)
    monkeypatch.setattr(room, "machine_of", lambda device: H200)
    room.expected.cache_clear()
    m, k, n = shape
    kind = getattr(torch, dtype)
    account = room.Account()
    with monkeypatch.context() as patched:
        if (not wins and not theirs) or on_sixteen_bytes(plan.problem):
            patched.setattr(room, "make_plan", None)  # torch keeps it whatever our time: no plan is made
        chosen = account.choice_of("mm", ((m, k), (k, n), (k, 1), (n, 1)), (kind, kind), "cuda:0")
    chosen.calls = 1
    assert account.choices == [chosen]
    room.expected.cache_clear()
    assert chosen.routed == wins
    assert (chosen.ours, chosen.theirs) == (plan.predicted, theirs)
    assert chosen.why.endswith("by the models") == wins


def test_torch_compile_may_pad_so_less_is_taken_from_it():
    ragged, even = (problem_of_shape(*shape, "bfloat16") for shape in ((8192, 770, 771), (8192, 768, 768)))
    assert padded_seconds(ragged, H200) < vendor_seconds(ragged, H200)
    assert padded_seconds(even, H200) == pytest.approx(vendor_seconds(even, H200))
    assert padded_seconds(ragged, H200) > padded_seconds(even, H200)


def test_on_other_cards_nothing_is_claimed():
    problem = problem_of_shape(4097, 4097, 4097, "bfloat16")
    assert all(vendor_seconds(problem, KNOWN_CARDS[name]) == 0 for name in ("t4", "a100", "rtx4090"))


def test_a_row_is_aligned_by_its_stride_and_its_first_byte():
    aligned = problem_of_shape(16, 16, 16, "bfloat16")
    assert on_sixteen_bytes(aligned)
    assert not on_sixteen_bytes(problem_of_shape(16, 16, 17, "bfloat16"))
    assert not on_sixteen_bytes(problem_of_shape(16, 17, 16, "bfloat16"))
    transposed = tw.plan(torch.ones(16, 16, dtype=torch.bfloat16), torch.ones(17, 16, dtype=torch.bfloat16).T[:, :16])
    assert on_sixteen_bytes(transposed.problem)


@pytest.mark.parametrize(("rows", "taken"), [(300, False), (8184, True)])
def test_few_rows_are_not_worth_the_hosts_time(rows, taken, monkeypatch):
    monkeypatch.setattr(room, "machine_of", lambda device: KNOWN_CARDS["h200"])
    lie = ((rows, 770), (770, 2310), (770, 1), (1, 770))
    found = room.Account().choice_of("linear", lie, (torch.bfloat16, torch.bfloat16), "cuda:7")
    assert found.routed == taken
    assert found.ours < found.theirs or not taken


def replaced():
    return [(owner, name, vars(owner).get(name)) for owner, name, _ in REPLACEMENTS]


def test_torchs_functions_come_back_and_blocks_may_overlap():
    before = replaced()
    outer, inner = tw.torch.accelerate("always"), tw.torch.accelerate("always")
    M = torch.randn(3, 3)
    with outer:
        with inner:
            M @ M
        torch.mm(M, M)
        assert (outer.routed, inner.routed) == (1, 1)
        with pytest.raises(ShapeError):
            torch.mm(M, torch.randn(2, 3))
        torch.mm(M, M)
        assert outer.left == 0, "a refusal leaves the block at work"
    assert replaced() == before
    first, second = tw.torch.accelerate("always"), tw.torch.accelerate("always")
    first.__enter__()
    second.__enter__()
    first.__exit__()
    M.mm(M)
    second.__exit__()
    assert (first.routed, second.routed) == (0, 1)
    assert replaced() == before


def test_tensor_methods_stay_replaced_from_the_third_block_on(monkeypatch):
    from tilewise.torch import replacements as rooms

    made, torchs = rooms.Replacements(), {name: getattr(torch.Tensor, name) for name in ("mm", "__matmul__")}
    called = []
    functions = [
        (torch.Tensor, "mm", lambda *args: called.append("mm") or torchs["mm"](*args)),
        (torch, "mm", lambda *args: called.append("torch.mm") or torchs["mm"](*args)),
    ]
    own, before = torch.mm, vars(torch.Tensor).get("mm")
    M = torch.randn(3, 3)
    try:
        for number in range(rooms.PATIENCE + 2):
            with made:
                made.install(functions)
            M.mm(M), torch.mm(M, M)
            with made:
                made.restore()
            assert called == ["mm", "torch.mm"]
            called.clear()
            assert torch.mm is own
            M.mm(M)
            torch_keeps = number + 1 >= rooms.PATIENCE
            assert called == (["mm"] if torch_keeps else [])
            called.clear()
    finally:
        delattr(torch.Tensor, "mm") if before is None else setattr(torch.Tensor, "mm", before)
    for _ in range(rooms.PATIENCE + 1):
        with tw.torch.accelerate("always") as done:
            M @ M
        assert done.routed == 1
        (M @ M).sum(), M.matmul(M)
        assert done.routed == 1, "outside the block they are torch's"


def test_other_threads_keep_torchs_own():
    M, found = torch.randn(5, 5), []
    with tw.torch.accelerate("always") as done:
        other = threading.Thread(target=lambda: found.append(M @ M))
        other.start()
        other.join()
        assert done.routed == 0
        torch.testing.assert_close(M @ M, found[0])
    assert done.routed == 1


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_tables_that_torch_makes_in_a_block_know_torchs_functions():
    torch.overrides.get_testing_overrides.cache_clear()
    with tw.torch.accelerate("always"):
        assert torch.overrides.get_testing_overrides()
        scripted = torch.jit.script(model())
        made = scripted(torch.ones(2, 33))
    torch.testing.assert_close(made, model()(torch.ones(2, 33)))
    assert torch.mm in torch.overrides.get_testing_overrides()


def test_torch_needs_rows_that_end_on_16_bytes_too():
    lie = ((8192, 50257), (50257, 768), (50304, 1), (768, 1))
    problem = room.problem_of(lie, "bfloat16", (0, 0))
    assert not on_sixteen_bytes(problem)
    assert vendor_seconds(problem, H200) > 2 * make_plan(problem, H200).predicted
    whole = room.problem_of(((8192, 50304), (50304, 768), (50304, 1), (768, 1)), "bfloat16", (0, 0))
    assert on_sixteen_bytes(whole)


FRESH = """
import torch, tilewise.torch
with tilewise.torch.accelerate("always") as done:
    torch.nn.functional.linear(torch.ones(5, 7), torch.ones(3, 7))
    made = torch.compile(lambda a, b: (a @ b).relu())(torch.ones(5, 7), torch.ones(7, 3))
    assert float(made.sum()) == 105
    print("routed", done.routed)
"""


@pytest.mark.slow
def test_code_that_torch_keeps_on_disk_finds_our_call(tmp_path):
    """The second process runs no pass (before torch 2.7 it does): what its code calls is registered all the same."""
    environment = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=str(tmp_path))
    command = [sys.executable, "-c", FRESH]
    printed = [
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout for _ in range(2)
    ]
    assert printed[0] == "routed 2\n"
    assert printed[1] in ("routed 1\n", "routed 2\n")
