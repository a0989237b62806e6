"""Repeated calls of CPU tensors: the same products, and changed tensors are detected."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
import torch

import tilewise as tw
from seeds import next_seed
from tilewise import api
from tilewise.arrays.torch_exchange import exchange_functions
from tilewise.dispatch import product
from tilewise.dispatch.prepared import PREPARED, signature_for
from tilewise.dispatch.route import ROUTES

DTYPES = [torch.float32, torch.float64, torch.float16, torch.int32, torch.int8, torch.uint8, torch.bool, torch.bfloat16]

BEST = tw.Semiring("best_chance", tw.maximum, lambda x, y: x * y, 0)
SHAPES = [
    ((5, 7), (7, 3)), ((7,), (7,)), ((7,), (7, 3)), ((2, 1, 3, 4), (3, 4, 2)), ((4, 0), (0, 3)), ((0, 4), (4, 3)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_second_call_is_the_first(dtype):
    torch.manual_seed(next_seed() % 2**31)
    for shapes in SHAPES:
        for _ in range(3):
            M, N = (torch.randn(s).mul(3).to(dtype) for s in shapes)
            made = tw.matmul(M, N)
            theirs = torch.matmul(M.double(), N.double())
            if not dtype.is_floating_point:
                theirs = theirs.bool() if dtype == torch.bool else theirs.to(torch.int64).to(dtype)
            assert made.dtype == dtype
            tolerance = 5e-2 if dtype in (torch.float16, torch.bfloat16) else 1e-4
            torch.testing.assert_close(made.double(), theirs.double(), rtol=tolerance, atol=tolerance)


def test_it_is_kept_and_views_are_their_own():
    memory = torch.randn(40, 50)
    PREPARED.clear()
    for view in (memory[:20, :20], memory.T[:20, :20], memory[::2, 3:23], memory[:20, 5:25]):
        for _ in range(2):
            torch.testing.assert_close(tw.matmul(view, view), view @ view)
    assert len(PREPARED) == (4 if exchange_functions() else 3)  # keys from DLPack's table contain alignments


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_gradients_modes_and_autocast_are_not_served_from_it():
    M, N = torch.randn(6, 6), torch.randn(6, 6)
    for _ in range(2):
        tw.matmul(M, N)
    assert tw.matmul(M.clone().requires_grad_(), N).requires_grad
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert tw.matmul(M, N).dtype == torch.bfloat16
    assert torch.func.jvp(lambda M: tw.matmul(M, N), (M,), (M,))[1].abs().sum() > 0
    with torch.no_grad():
        assert not tw.matmul(M.clone().requires_grad_(), N).requires_grad
    torch.testing.assert_close(tw.matmul(M, N, semiring="min_plus"), (M[:, :, None] + N).amin(1))


def test_a_storage_that_is_gone_is_refused():
    M, N, gone = torch.randn(6, 6), torch.randn(6, 6), torch.randn(6, 6)
    tw.matmul(M, N)
    gone.untyped_storage().resize_(8)
    with pytest.raises(tw.ShapeError, match="bytes of a storage that has 8"):
        tw.matmul(gone, N)


def test_a_lazy_negation():
    negated = torch.randn(6, 6, dtype=torch.complex128).conj().imag
    assert negated.is_neg()
    for _ in range(2):
        torch.testing.assert_close(tw.matmul(negated, negated), negated @ negated)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_calls_are_kept_and_conjugates_are_not_mistaken_for_them(dtype):
    torch.manual_seed(next_seed() % 2**31)
    M, N, out = (torch.randn(8, 8, dtype=dtype) for _ in range(3))
    PREPARED.clear()
    tw.matmul(M, N)
    assert len(PREPARED) == 1, "1.7 ms a call when it is planned each time, 12 µs when it is kept"
    for _ in range(2):
        for left in (M, M.conj(), M.mH, M.mT):
            for right in (N, N.conj(), N.mH):
                torch.testing.assert_close(tw.matmul(left, right), left @ right)
                torch.testing.assert_close(tw.matmul(left, right, out=out), left @ right)
    with pytest.raises(tw.UsageError, match="out is a view that is conjugated when it is read"):
        tw.matmul(M, N, out=out.conj())
    with pytest.raises(tw.UsageError, match="out is a view that is negated when it is read"):
        tw.matmul(M.real, N.real, out=out.conj().imag)


def test_a_dtype_that_numpy_does_not_have_is_right_again_and_again():
    for dtype in (torch.int8, torch.bfloat16, torch.float32):
        for shape in ((8, 8), (300, 300)):
            M = torch.randint(0, 3, shape).to(dtype)
            for _ in range(3):
                made = tw.matmul(M, M, dtype="bfloat16")
                assert made.dtype == torch.bfloat16
                torch.testing.assert_close(made.double(), M.double() @ M.double(), rtol=1e-2, atol=0)


def test_signatures_by_machine_code_match_their_products():
    """8-bit floats, complex and negated tensors, outs and watched calls: two calls of one signature, both right."""
    base = torch.arange(1, 17.0).reshape(4, 4)
    negated = torch._neg_view(base)
    conjugated = torch.complex(base, -base).conj()
    kinds = [base, base.to(torch.float8_e5m2), base.to(torch.bfloat16), negated, conjugated, conjugated.imag, base.mT]
    for _ in range(3):
        for M in kinds:
            wide = torch.complex128 if M.is_complex() else torch.float64
            made = tw.matmul(M, M)
            torch.testing.assert_close(made.to(wide), M.to(wide) @ M.to(wide), rtol=2e-2, atol=0)
        out = torch.zeros(4, 4)
        assert tw.matmul(base, base, out=out) is out
        torch.testing.assert_close(out, base @ base)
        mine = base.clone()
        tw.matmul(mine, mine, out=mine)
        torch.testing.assert_close(mine, base @ base)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert tw.matmul(base, base).dtype == torch.bfloat16


KEYWORDS = {
    "return_arg": {"semiring": "min_plus", "return_arg": True}, "alpha": {"alpha": 2.5}, "bias": {"bias": True},
    "relu": {"activation": "relu"}, "all three": {"alpha": -0.5, "bias": True, "activation": "gelu"},
    "out": {"out": True}, "accumulate": {"out": True, "accumulate": True}, "numbers": {"scales": (2.0, 0.5)},
    "rows and columns": {"scales": "rows and columns"}, "out over max_min": {"out": True, "semiring": "max_min"},
}  # fmt: skip


def all_of(product):
    return product if isinstance(product, tuple) else (product,)


@pytest.mark.parametrize("name", KEYWORDS)
def test_the_second_call_with_keywords_is_a_prepared_one(name, monkeypatch):
    """On tensors of other values, with the same bits as a first call."""
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = random.Random(seed)
    torch.manual_seed(seed)
    kinds = ("float32",) if "scales" in KEYWORDS[name] else ("float32", "float64", "float16", "int32")
    kinds = (
        kinds[:3] if "alpha" in KEYWORDS[name] or "bias" in KEYWORDS[name] or "activation" in KEYWORDS[name] else kinds
    )
    for kind in kinds:
        dtype = getattr(torch, kind)
        m, k, n = (rng.choice((1, 3, 8, 70)) for _ in range(3))
        stack = (3,) if rng.random() < 0.3 and "scales" not in KEYWORDS[name] else ()
        transposed = rng.random() < 0.3

        def drawn(shapes=((*stack, m, k), (k, n)), dtype=dtype, transposed=transposed):
            M, N = (torch.randn(s).mul(5).to(dtype) for s in shapes)
            return M, N.mT.contiguous().mT if transposed else N

        def given(stack=stack, m=m, n=n, dtype=dtype):
            made = dict(KEYWORDS[name])
            made |= {"bias": torch.randn(n).to(dtype)} if "bias" in made else {}
            made |= {"out": torch.ones(*stack, m, n, dtype=dtype)} if "out" in made else {}
            rows = isinstance(made.get("scales"), str)
            return made | ({"scales": (torch.rand(m), torch.rand(n))} if rows else {})

        PREPARED.clear()
        tw.matmul(*drawn(), **given())
        (M, N), keywords = drawn(), given()
        again = {key: x.clone() if key == "out" else x for key, x in keywords.items()}
        with monkeypatch.context() as never:
            never.setattr(api, "first_call", lambda *_: pytest.fail("the call was bound again"))
            made = all_of(tw.matmul(M, N, **keywords))
        PREPARED.clear()
        for one, two in zip(made, all_of(tw.matmul(M, N, **again)), strict=True):
            assert one.dtype == two.dtype
            assert torch.equal(one, two), (kind, m, k, n, stack, transposed)
        assert "out" not in keywords or made[0] is keywords["out"]


def test_an_out_among_the_operands_or_without_memory_is_noticed_each_time():
    memory = torch.randn(12, 6)
    M, N, apart = memory[:6].clone(), torch.randn(6, 6), torch.empty(12, 6)
    for _ in range(2):
        tw.matmul(M, N, out=apart[:6])
    memory[:6] = M
    want = M @ N
    torch.testing.assert_close(tw.matmul(memory[:6], N, out=memory[3:9]), want)
    gone = torch.empty(6, 6)
    gone.untyped_storage().resize_(8)
    with pytest.raises(tw.ShapeError, match="bytes of a storage that has 8"):
        tw.matmul(M, N, out=gone)
    bias = torch.zeros(6)
    for _ in range(2):
        tw.matmul(M, N, bias=bias)
    bias = torch.zeros(6)
    bias.untyped_storage().resize_(8)
    with pytest.raises(tw.ShapeError, match="bytes of a storage that has 8"):
        tw.matmul(M, N, bias=bias)


def test_the_first_product_with_gradients_has_them():
    """A signature by machine code does not say that torch follows nothing."""
    PREPARED.clear()
    M = torch.randn(8, 8, requires_grad=True)
    assert tw.matmul(M, M.detach()).requires_grad
    assert tw.matmul(M.detach(), M).requires_grad


def test_a_second_product_with_gradients_is_two_look_ups(monkeypatch):
    M, N = torch.randn(8, 8, requires_grad=True), torch.randn(8, 8)
    PREPARED.clear()
    tw.matmul(M, N)
    with torch.no_grad():
        tw.matmul(M, N)
    monkeypatch.setattr(api, "first_call", None)
    monkeypatch.setattr(torch.Tensor, "detach", None)
    assert tw.matmul(M, N).requires_grad


@pytest.mark.parametrize("semiring", ["min_plus", "max_times", "plus_times", BEST], ids=str)
def test_later_products_with_gradients_are_the_first_over_every_choice(semiring, monkeypatch):
    """Values, gradients, their gradients; third calls too, whose forward product is no longer looked up."""
    M, N = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((9, 8), (8, 7)))

    def followed():
        P = tw.matmul(M, N, semiring=semiring)
        first = torch.autograd.grad(P.sin().sum(), (M, N), create_graph=True)
        return [P, *first, *torch.autograd.grad(first[0].square().sum() + first[1].sum(), (M, N))]

    PREPARED.clear()
    expected = followed()
    monkeypatch.setattr(api, "ALL_ROUTES", ROUTES)  # without the operator that differentiates
    for _ in range(3):
        for ours, theirs in zip(followed(), expected, strict=True):
            torch.testing.assert_close(ours, theirs)
    small = torch.randn(9, 8, dtype=torch.float64, requires_grad=True)
    small.untyped_storage().resize_(16)
    monkeypatch.undo()
    with pytest.raises(tw.ShapeError, match="bytes of a storage that has 16"):
        tw.matmul(small, N, semiring=semiring)


def test_memory_is_the_hosts_whatever_torchs_default_device_is():
    M, N = torch.randn(4, 8), torch.randn(8, 3)
    for keywords in ({}, {"alpha": 2.0}, {"semiring": "min_plus", "return_arg": True}, {"semiring": "max_plus"}):
        want = [all_of(tw.matmul(M, N, **keywords)) for _ in range(2)][1]
        with torch.device("meta"):
            for _ in range(2):
                for mine, before in zip(all_of(tw.matmul(M, N, **keywords)), want, strict=True):
                    assert torch.equal(mine, before)


WATCHED_FIRST = """
import torch, tilewise as tw
M = torch.ones(3, 3)
{}
assert tw.matmul(M, M).sum() == 27
from tilewise.dispatch.prepared import SIGNATURES
from tilewise.dispatch.route import ROUTES
print(type(SIGNATURES[torch.Tensor](M, M, {{}})).__name__)
"""


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    "watched",
    [
        "assert torch.func.grad(lambda x: tw.matmul(x, M).sum())(M).sum() == 27",
        "with torch.device('meta'): assert tw.matmul(M, M).sum() == 27",
        "with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True): tw.matmul(M, M)",
    ],
    ids=["grad", "device", "fake"],
)
def test_the_first_call_of_a_program_may_be_watched(watched):
    """And what machine code was tried on has its memory: calls after it are signed by machine code all the same."""
    done = subprocess.run([sys.executable, "-c", WATCHED_FIRST.format(watched)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    M = torch.ones(3, 3)
    assert done.stdout.strip() == type(signature_for(M)(M, M, {})).__name__


@pytest.mark.parametrize("view", [torch.conj, torch._neg_view, lambda x: x.mH])
def test_lazy_views_are_multiplied_by_prepared_calls(view, monkeypatch):
    A, B = (torch.randn(4, 4, dtype=torch.complex64) for _ in range(2))
    with pytest.raises(tw.TilewiseError, match="out is a view that is"):
        tw.matmul(A, B, out=view(torch.empty(4, 4, dtype=torch.complex64)))
    for planned in (True, False):
        if not planned:
            monkeypatch.setattr(product, "bind", lambda *_: pytest.fail("bound again"))
        torch.testing.assert_close(tw.matmul(view(A), B), torch.matmul(view(A), B))
        torch.testing.assert_close(tw.matmul(B, view(A)), torch.matmul(B, view(A)))
        out = torch.empty(4, 4, dtype=torch.complex64)
        torch.testing.assert_close(tw.matmul(view(A), B, out=out), torch.matmul(view(A), B))
