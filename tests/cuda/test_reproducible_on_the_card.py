"""`reproducible=` on the card: the bits of the CPU, and rows that do not depend on the rows beside them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed, sample_size
from tilewise.arrays.card import default_stream
from tilewise.backends.cuda.builders import build, workers_for
from tilewise.backends.cuda.compile import missing
from tilewise.backends.cuda.device import describe
from tilewise.functions.fingerprint import known_products
from tilewise.kernels.by_configs import timed
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.registry import family_named
from tilewise.kernels.wgmma_gemm.k_major import model as k_major
from tilewise.kernels.wgmma_gemm.wgmma_half import model as wgmma_half
from tilewise.planning.launchers import run_plan

torch = pytest.importorskip("torch")

KINDS = [
    ("float32", "plus_times"), ("float64", "plus_times"), ("bfloat16", "plus_times"), ("float16", "plus_times"),
    ("complex64", "plus_times"), ("float32", "min_plus"), ("float32", "max_times"), ("float16", "max_plus"),
    ("float64", "min_max"),
]  # fmt: skip
ROWS = (1, 2, 3, 5, 8, 13, 16, 31, 33, 64, 65, 100, 128, 200, 256, 333, 512)


def numbers(rng, shape, dtype):
    """Of many exponents, −0 and sometimes NaN and infinities among them, on the host."""
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-9, 9, shape)
    x[rng.random(shape) < 0.1] = -0.0
    if rng.random() < 0.2:
        x[rng.random(shape) < 0.01] = rng.choice([np.nan, -np.inf])
    made = torch.from_numpy(x).to(getattr(torch, dtype))
    return torch.complex(made.real, made.real.flip(-1)) if dtype == "complex64" else made


def laid(rng, x, device):
    """Row-major, column-major, or the part of a larger matrix, perhaps misaligned."""
    which, (rows, cols) = rng.integers(4), x.shape[-2:]
    if which == 1:
        return x.mT.contiguous().to(device).mT
    if which == 2:
        wide = torch.zeros((*x.shape[:-2], rows + 1, cols + 5), dtype=x.dtype, device=device)
        wide[..., 1:, 1 : cols + 1] = x.to(device)
        return wide[..., 1:, 1 : cols + 1]
    return x.to(device)


def drawn_product(rng, dtype, ring, device="cuda"):
    """A product on the host and on the card, from operands that lie differently."""
    m, n = (int(2 ** rng.uniform(0, 8)) for _ in "mn")
    k = int(rng.choice([0, 1, 31, 512, 513, int(2 ** rng.uniform(0, 12))]))
    while m * k * n > 4e7:
        m, n = max(1, m // 2), max(1, n // 2)
    stack = (int(rng.integers(1, 4)),) if rng.random() < 0.3 else ()
    M, N = (numbers(rng, (*stack, *shape), dtype) for shape in ((m, k), (k, n)))
    how = {"semiring": ring, "reproducible": "everywhere"}
    onto = numbers(rng, (*stack, m, n), dtype) if rng.random() < 0.25 else None
    A, B = laid(rng, M, device), laid(rng, N, device)
    if onto is None:
        return tw.matmul(M, N, **how), tw.matmul(A, B, **how), (m, k, n, stack)
    here, there = onto.clone(), laid(rng, onto, device).clone()
    tw.matmul(M, N, out=here, accumulate=True, **how)
    tw.matmul(A, B, out=there, accumulate=True, **how)
    return here, there, (m, k, n, stack, "accumulate")


def bits(x):
    """The bytes of a tensor of any dtype."""
    x = x.detach().cpu().contiguous()
    return torch.view_as_real(x).numpy().tobytes() if x.is_complex() else x.view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize(("dtype", "ring"), KINDS)
def test_the_card_has_the_bits_of_the_host(dtype, ring):
    rng = np.random.default_rng(next_seed())
    for _ in range(sample_size(100)):
        here, there, shape = drawn_product(rng, dtype, ring)
        assert bits(here) == bits(there), (dtype, ring, shape)


@pytest.mark.parametrize(("dtype", "ring"), KINDS)
def test_nothing_is_added_with_k_of_0(dtype, ring):
    rng = np.random.default_rng(5)
    for m, n in ((13, 4), (79, 1), (45, 2), (130, 200)):
        M, N, onto = (numbers(rng, shape, dtype) for shape in ((m, 0), (0, n), (m, n)))
        onto.view(-1)[:4] = torch.tensor([-0.0, float("nan"), -float("inf"), 0.0])
        here, there = onto.clone(), onto.cuda()
        for P, left, right in ((here, M, N), (there, M.cuda(), N.cuda())):
            tw.matmul(left, right, out=P, accumulate=True, semiring=ring, reproducible="everywhere")
        assert bits(here) == bits(there), (dtype, ring, m, n)


def test_known_products_have_their_bits_on_the_card():
    different = [known for known in known_products() if known.made(device="cuda") != known.fingerprint]
    assert not different


def rows_that_differ(M, N, rows, rng, **how):
    """Of products of some rows of M, how many have other bits than in the product of all of them."""
    whole, found, seen = tw.matmul(M, N, **how), 0, 0
    for count in rows:
        first = int(rng.integers(M.shape[0] - count + 1))
        part = laid(rng, M[first : first + count].cpu(), "cuda") if rng.random() < 0.5 else M[first : first + count]
        right = laid(rng, N.cpu(), "cuda") if rng.random() < 0.3 else N
        made = tw.matmul(part, right, **how)
        if count % 4 == 0 and rng.random() < 0.3:
            made = tw.matmul(part.reshape(4, count // 4, -1), right, **how).reshape(count, -1)
        same = (made.view(torch.uint8) == whole[first : first + count].contiguous().view(torch.uint8)).all(-1)
        found, seen = found + int((~same).sum()), seen + count
    return found, seen


@pytest.mark.parametrize(
    ("dtype", "precision"),
    [("bfloat16", "high"), ("float16", "high"), ("float32", "high"), ("float32", "tf32"), ("float8_e4m3fn", "high")],
)
@pytest.mark.parametrize("shape", [(4096, 1024), (1024, 4096), (777, 333), (512, 4097), (2049, 512), (2080, 64)])
def test_a_row_does_not_depend_on_the_rows_beside_it(dtype, precision, shape):
    k, n = shape
    rng = np.random.default_rng(next_seed())
    generator = torch.Generator("cuda").manual_seed(next_seed() % 2**31)
    M, N = (torch.randn(s, device="cuda", generator=generator) for s in ((600, k), (k, n)))
    M[::7] *= torch.exp2(torch.randint(-20, 12, (1, k), device="cuda", generator=generator))
    M[5, 3], M[11] = float("inf"), 1e-39
    M, N = (x.to(getattr(torch, dtype)) for x in (M, N))
    how = {"reproducible": "batch", "precision": precision}
    found, seen = rows_that_differ(M, N, ROWS, rng, **how)
    assert (found, seen) == (0, sum(ROWS))


@pytest.mark.parametrize("level", ["batch", "everywhere"])
@pytest.mark.parametrize(("dtype", "precision"), [("bfloat16", "high"), ("float32", "tf32"), ("float32", "high")])
def test_a_captured_graph_has_the_bits_of_calls(dtype, precision, level):
    """Of a product with parts of k, of few rows and of many."""
    generator, number = torch.Generator("cuda").manual_seed(2), getattr(torch, dtype)
    how = {"reproducible": level, "precision": precision}
    for rows in (1, 5, 70, 600):
        M, N = (torch.randn(s, device="cuda", generator=generator).to(number) for s in ((rows, 2100), (2100, 520)))
        P = torch.empty(rows, 520, dtype=number, device="cuda")
        tw.matmul(M, N, out=P, **how)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            tw.matmul(M, N, out=P, **how)
        for _ in range(2):
            M.copy_(torch.randn(M.shape, device="cuda", generator=generator))
            want = tw.matmul(M, N, **how)
            P.fill_(float("nan"))
            graph.replay()
            assert bits(P) == bits(want), rows


@pytest.mark.parametrize(
    ("shape", "dtype", "model"),
    [
        ((4096, 1024), "bfloat16", wgmma_half), ((2000, 200), "float16", wgmma_half),
        ((1000, 2096), "float32", k_major), ((2000, 200), "float32", k_major),
        ((2000, 200), "float8_e4m3fn", k_major), ((777, 333), "float8_e5m2", k_major),
    ],
)  # fmt: skip
def test_every_configuration_of_a_batch_has_the_same_bits(shape, dtype, model):
    """Those that some number of rows may get, in both layouts of both operands, over numbers of many exponents; of tf32
    half of the operands lie between two numbers of it."""
    k, n = shape
    generator, machine, cases = torch.Generator("cuda").manual_seed(3), describe("cuda:0"), []
    how = {"reproducible": "batch", "precision": "tf32"}
    M, N = (torch.randn(s, device="cuda", generator=generator) for s in ((6000, k), (k, n)))
    M *= torch.exp2(torch.randint(-8, 8, M.shape, device="cuda", generator=generator))
    if dtype == "float32":
        M, N = ((x.view(torch.int32) & ~0xFFF).view(torch.float32) for x in (M, N))
    M, N = M.to(getattr(torch, dtype)), N.to(getattr(torch, dtype))
    for rows, m_across, n_across in product((1, 30, 300, 6000), (False, True), (False, True)):
        left, right = M[:rows].mT.contiguous().mT if m_across else M[:rows], N.mT.contiguous().mT if n_across else N
        best = tw.plan(left, right, **how)
        family = family_named(best.family)
        for config, _ in timed(model.tables(best.problem, machine)):
            if config.in_order and config.splits == best.config.splits:
                cases.append((family.pinned(best.problem, machine, config), left, right))
    texts = {step.source for plan, *_ in cases for step in recipe_of(plan).steps if hasattr(step, "source")}
    build(missing(texts, machine.arch), machine.arch, workers_for(len(texts)), lambda *_: None)
    assert len(cases) > 10
    want = tw.matmul(M, N, **how)
    for plan, left, right in cases:
        made = torch.empty_like(want[: plan.problem.m])
        torch.cuda.synchronize()
        places = {name: x.data_ptr() for name, x in (("M", left), ("N", right), ("P", made))}
        run_plan(plan, "cuda:0", default_stream("cuda:0"), **places)
        torch.cuda.synchronize()
        assert bits(made) == bits(want[: plan.problem.m]), (plan.config, left.stride(), right.stride())


def test_without_the_keyword_rows_do_depend_on_them():
    rng = np.random.default_rng(1)
    generator = torch.Generator("cuda").manual_seed(1)
    M, N = (torch.randn(s, device="cuda", generator=generator).bfloat16() for s in ((600, 4096), (4096, 1024)))
    assert rows_that_differ(M, N, ROWS, rng)[0] > 0
