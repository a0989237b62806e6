"""float32 on tensor cores, on the card: every layout, stride, edge and tile among poison, and what is not safe."""

from __future__ import annotations

import itertools

import pytest

import tilewise as tw
import tilewise.kernels.recipes as recipes
import tilewise.kernels.wgmma_gemm.bf16x6.recipe as recipe
import tilewise.planning.choose as planning
import tilewise.planning.launchers as launchers
from tilewise.bench.card_dtypes import DATA, operands
from tilewise.kernels.wgmma_gemm.bf16x6.model import TILES, SplitConfig, SplitTile
from tilewise.kernels.wgmma_gemm.family import BF16x6

torch = pytest.importorskip("torch")

SHAPES = (
    (1, 1, 1), (1, 8, 8), (64, 64, 64), (128, 32, 256), (129, 65, 257), (127, 31, 255), (333, 555, 777), (1, 4097, 3),
    (1000, 520, 776), (2047, 64, 130), (5, 1, 700), (130, 1000, 1), (70, 8225, 90),
)  # fmt: skip
LAYOUTS = list(itertools.product((False, True), repeat=2))


@pytest.fixture(autouse=True)
def plain_float32(monkeypatch):
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)


def matrix(rows, cols, *, transposed=False, extra=0, offset=0, wild=False):
    """rows×cols inside larger memory that is all NaN elsewhere: a read outside shows."""
    lines, length = (cols, rows) if transposed else (rows, cols)
    lead = length + extra
    memory = torch.full((lines * lead + offset + 64,), float("nan"), device="cuda")
    view = memory[offset : offset + lines * lead].view(lines, lead)[:, :length]
    numbers = torch.randn(lines, length, device="cuda")
    view.copy_(numbers * torch.exp2(torch.rand_like(numbers) * 40 - 20) if wild else numbers)
    return (view.T if transposed else view), memory


def error(P, M, N):
    exact = M.double() @ N.double()
    assert torch.isfinite(P).all()
    return float((P.double() - exact).norm() / exact.norm().clamp_min(1e-300))


def multiply_by(config, monkeypatch, M, N, **options):
    """The product by this very way."""
    monkeypatch.setattr(BF16x6, "best", lambda family, problem, machine, kernel=None: (1e-9, config))
    planning._plan.cache_clear()
    try:
        return tw.matmul(M, N, kernel="bf16x6", **options)
    finally:
        monkeypatch.undo()
        planning._plan.cache_clear()


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
@pytest.mark.parametrize("layouts", LAYOUTS, ids=["NN", "NT", "TN", "TT"])
def test_layouts_and_edges(shape, layouts):
    m, k, n = shape
    for extra, offset in ((0, 0), (1, 0), (3, 1), (8, 8)):
        M, _ = matrix(m, k, transposed=layouts[0], extra=extra, offset=offset)
        N, _ = matrix(k, n, transposed=layouts[1], extra=extra, offset=offset)
        P, around = matrix(m, n, extra=extra, offset=offset)
        P.fill_(float("nan"))
        tw.matmul(M, N, out=P, kernel="bf16x6")
        assert error(P, M, N) < 6e-7
        P.fill_(float("nan"))
        assert torch.isnan(around).all(), "something was written outside P"


@pytest.mark.parametrize("tile", TILES, ids=lambda t: f"{t.rows}x{t.cols}")
def test_every_tile_twice_with_the_same_bits(tile, monkeypatch):
    for m, k, n in ((520, 264, 392), (131, 72, 265)):
        M, N = matrix(m, k)[0], matrix(k, n)[0]
        P = multiply_by(SplitConfig(tile), monkeypatch, M, N)
        assert error(P, M, N) < 4e-7
        assert torch.equal(P, multiply_by(SplitConfig(tile), monkeypatch, M, N))


@pytest.mark.parametrize("splits", [2, 5, 16])
def test_k_in_parts(splits, monkeypatch):
    M, N = matrix(130, 5000, extra=1)[0], matrix(5000, 201)[0]
    config = SplitConfig(SplitTile(64), splits)
    P = multiply_by(config, monkeypatch, M, N)
    assert error(P, M, N) < 4e-7
    assert torch.equal(P, multiply_by(config, monkeypatch, M, N))
    before = torch.randn_like(P)
    onto = multiply_by(config, monkeypatch, M, N, out=before.clone(), accumulate=True)
    assert torch.allclose(onto, before + P, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("k", [16, 256, 1000, 4096, 16384, 65536])
def test_errors_beside_the_vendors(data, k):
    m = n = 1024
    M, N = operands(torch, data, m, k, n)
    ours, theirs = error(tw.matmul(M, N, kernel="bf16x6"), M, N), error(M @ N, M, N)
    assert ours <= (1.0 if data in ("normal", "uniform") else 1.5) * theirs


@pytest.mark.parametrize("shape", [(257, 129, 300), (2049, 257, 1025)])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 3.4e38])
def test_what_is_not_safe_gives_what_ieee_gives(shape, bad):
    m, k, n = shape
    for where in "MN":
        M, N = matrix(m, k)[0], matrix(k, n)[0]
        (M if where == "M" else N)[-1, -1] = bad
        ours, plain = tw.matmul(M, N, kernel="bf16x6"), tw.matmul(M, N, precision="ieee")
        assert torch.equal(torch.isnan(ours), torch.isnan(plain))
        assert torch.equal(torch.isinf(ours), torch.isinf(plain))
        assert torch.allclose(ours, plain, rtol=1e-4, atol=1e-3, equal_nan=True)
        again = matrix(m, k)[0], matrix(k, n)[0]
        assert error(tw.matmul(*again, kernel="bf16x6"), *again) < 4e-7  # the verdict is of one call alone


def test_accumulate_where_it_is_not_safe():
    M, N, P = (
        torch.randn(200, 300, device="cuda"),
        torch.randn(300, 100, device="cuda"),
        torch.randn(200, 100, device="cuda"),
    )
    M[5, 7] = float("inf")
    expected = P + M @ N
    tw.matmul(M, N, out=P, accumulate=True, kernel="bf16x6")
    assert torch.equal(torch.isfinite(P), torch.isfinite(expected))
    finite = torch.isfinite(expected)
    assert torch.allclose(P[finite], expected[finite], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("exponent", [-149, -126, -110, -95, -70, -45, 50, 62, 100])
def test_every_magnitude_is_as_accurate_as_float32(exponent):
    M, N = torch.randn(300, 200, device="cuda") * 2.0**exponent, torch.randn(200, 100, device="cuda")
    assert error(tw.matmul(M, N, kernel="bf16x6"), M, N) <= max(3e-7, 1.1 * error(M @ N, M, N))


def test_overflow_is_ieees():
    M, N = torch.full((200, 300), 2.0**64, device="cuda"), torch.full((300, 100), 2.0**60, device="cuda")
    assert torch.isinf(tw.matmul(M, N, kernel="bf16x6")).all()
    M[:, 1::2] *= -1
    assert (tw.matmul(M, N, kernel="bf16x6") == 0).all()


def test_zeros_are_zero():
    M, N = torch.zeros(100, 100, device="cuda"), torch.randn(100, 100, device="cuda") * 2.0**-120
    assert (tw.matmul(M, N, kernel="bf16x6") == 0).all()


@pytest.mark.parametrize("shape", [(300, 257, 129), (256, 256, 256), (128, 8192, 128)])
def test_a_graph_replays_the_product_safe_or_not(shape):
    m, k, n = shape
    M, N = matrix(m, k)[0], matrix(k, n)[0]
    P = torch.empty(m, n, device="cuda")
    tw.matmul(M, N, out=P, kernel="bf16x6")
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        tw.matmul(M, N, out=P, kernel="bf16x6")
    for turn in range(4):
        M.copy_(torch.randn(m, k, device="cuda"))
        if turn == 2:
            M[0, 0] = float("inf")
        P.fill_(float("nan"))
        graph.replay()
        assert error(P[1:], M[1:], N) < 6e-7
        assert torch.isfinite(P[0]).all() == (turn != 2)


def forget():
    """Recipes that were laid out for another slab."""
    recipes.recipe_of.cache_clear()
    launchers.launcher_of.cache_clear()


@pytest.mark.parametrize("bad", [False, True])
def test_k_in_slabs(bad, monkeypatch, request):
    """Planes of a part of k at a time; the verdict is of all of it, before anything is written."""
    monkeypatch.setattr(recipe, "slab_of", lambda m, k, n: 320)
    forget()
    request.addfinalizer(forget)
    M, N = matrix(130, 1000, extra=1)[0], matrix(1000, 201, transposed=True)[0]
    if bad:
        M[3, 999] = float("inf")
    before = torch.randn(130, 201, device="cuda")
    P = tw.matmul(M, N, out=before.clone(), accumulate=True, kernel="bf16x6")
    rows = [row for row in range(130) if row != 3]
    exact = before.double() + M.double() @ N.double()
    assert (P[rows].double() - exact[rows]).norm() <= 6e-7 * exact[rows].norm()
    assert torch.isfinite(P[3]).all() != bad
    if not bad:
        assert error(tw.matmul(M, N, kernel="bf16x6"), M, N) < 4e-7
        assert error(multiply_by(SplitConfig(SplitTile(64), 3), monkeypatch, M, N), M, N) < 4e-7


def test_accumulate():
    for extra in (0, 1):
        M, N = matrix(200, 9000, extra=extra)[0], matrix(9000, 100, extra=extra)[0]
        P = matrix(200, 100, extra=extra)[0]
        expected = P.double() + M.double() @ N.double()
        tw.matmul(M, N, out=P, accumulate=True, kernel="bf16x6")
        assert (P.double() - expected).norm() <= 4e-7 * expected.norm()


def test_stacks_vectors_and_other_strides():
    M, N = torch.randn(3, 1, 65, 33, device="cuda"), torch.randn(4, 33, 70, device="cuda")
    P = tw.matmul(M, N, kernel="bf16x6")
    assert (P.double() - M.double() @ N.double()).norm() <= 4e-7 * P.double().norm()
    v = torch.randn(33, device="cuda")
    assert error(tw.matmul(v, N[0], kernel="bf16x6")[None], v[None], N[0]) < 4e-7
    wide = torch.randn(100, 120, device="cuda")
    assert error(tw.matmul(wide[:, ::2], wide.T[::2], kernel="bf16x6"), wide[:, ::2], wide.T[::2]) < 4e-7
    half = torch.randn(60, 50, device="cuda").half()
    assert error(tw.matmul(wide[:, :60], half, kernel="bf16x6"), wide[:, :60], half) < 4e-7
    out = torch.empty(100, 200, device="cuda")[:, ::2]
    tw.matmul(wide, wide.T, out=out, kernel="bf16x6")
    assert error(out, wide, wide.T) < 4e-7


@pytest.mark.parametrize("shared", ["neither", "M", "N"])
def test_members_of_a_stack_together(shared):
    torch.manual_seed(3)
    for members, (m, k, n) in ((70, (130, 65, 200)), (3, (200, 3000, 90)), (1500, (33, 40, 35))):
        M, N = torch.randn(members, m, k, device="cuda"), torch.randn(members, k, n, device="cuda")
        M, N = M[:1] if shared == "M" else M, N[:1] if shared == "N" else N
        if shared != "neither":
            N = N.expand(members, k, n)
        P = torch.full((members, m, n + 3), float("nan"), device="cuda")[:, :, :n]
        tw.matmul(M.expand(members, m, k), N, out=P, kernel="bf16x6")
        assert (P.double() - M.double() @ N.double()).norm() <= 4e-7 * P.double().norm()


@pytest.mark.parametrize("odd", [2.0**-110, float("inf")])
def test_a_member_that_planes_cannot_hold(odd):
    M, N = torch.rand(300, 50, 60, device="cuda") + 1, torch.rand(300, 60, 40, device="cuda") + 1
    M[177] *= odd
    P = tw.matmul(M, N, kernel="bf16x6")
    wanted = M.double() @ N.double()
    torch.testing.assert_close(P.double(), wanted, rtol=1e-6, atol=0)


def test_it_is_what_float32_runs_on():
    M = torch.randn(2048, 2048, device="cuda")
    assert tw.plan(M, M).kernel == "bf16x6"
    assert tw.plan(M, M, precision="ieee").kernel == "plain"
