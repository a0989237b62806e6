"""The tensor-core kernel on the card: every layout, stride, edge and tile, with poisoned surroundings."""

from __future__ import annotations

import itertools

import pytest

import tilewise as tw
import tilewise.kernels.wgmma_gemm.wgmma_half.model as tensor_tiles
import tilewise.planning.choose as planning
from tilewise.backends.cuda.device import describe
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import TILES, TensorConfig

torch = pytest.importorskip("torch")

SHAPES = (
    (1, 1, 1), (1, 8, 8), (64, 64, 64), (128, 64, 256), (129, 65, 257), (127, 63, 255), (333, 555, 777), (1, 4097, 3),
    (1000, 520, 776), (2047, 64, 130), (5, 1, 700), (130, 1000, 1), (513, 100, 511),
)  # fmt: skip


def matrix(rows, cols, *, dtype=torch.bfloat16, transposed=False, extra=0, offset=0):
    """rows×cols inside larger memory that is all NaN elsewhere: a read outside shows."""
    lines, length = (cols, rows) if transposed else (rows, cols)
    lead = length + extra
    memory = torch.full((lines * lead + offset + 64,), float("nan"), device="cuda", dtype=dtype)
    view = memory[offset : offset + lines * lead].view(lines, lead)[:, :length]
    view.copy_(torch.randn(lines, length, device="cuda"))
    return (view.T if transposed else view), memory


def assert_close(P, M, N, bound=6e-3):
    exact = M.double() @ N.double()
    assert torch.isfinite(P).all()
    assert (P.double() - exact).norm() <= bound * exact.norm() + 1e-6


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
@pytest.mark.parametrize("layouts", list(itertools.product((False, True), repeat=2)), ids=["NN", "NT", "TN", "TT"])
def test_layouts_and_edges(shape, layouts):
    m, k, n = shape
    for extra, offset in ((0, 0), (1, 0), (3, 1), (8, 8)):
        M, _ = matrix(m, k, transposed=layouts[0], extra=extra, offset=offset)
        N, _ = matrix(k, n, transposed=layouts[1], extra=extra, offset=offset)
        P, around = matrix(m, n, extra=extra, offset=offset)
        P.fill_(float("nan"))
        tw.matmul(M, N, out=P, kernel="wgmma_half")
        assert_close(P, M, N)
        P.fill_(float("nan"))
        assert torch.isnan(around).all(), "something was written outside P"


def multiply_by(config, monkeypatch, M, N, **options):
    """The product by this very way."""
    monkeypatch.setattr(tensor_tiles, "best_config", lambda problem, machine: (1e-9, config))
    planning._plan.cache_clear()
    try:
        return tw.matmul(M, N, kernel="wgmma_half", **options)
    finally:
        monkeypatch.undo()
        planning._plan.cache_clear()


@pytest.mark.parametrize("tile", TILES, ids=lambda t: f"{t.rows}x{t.cols}c{t.cluster}x{t.beside}")
def test_every_tile(tile, monkeypatch):
    for dtype, (m, k, n) in ((torch.bfloat16, (520, 264, 392)), (torch.float16, (131, 72, 264))):
        M, N = matrix(m, k, dtype=dtype)[0], matrix(k, n, dtype=dtype)[0]
        P = multiply_by(TensorConfig(tile, ("as it is", "as it is")), monkeypatch, M, N)
        assert_close(P, M, N)


@pytest.mark.parametrize(
    "shape",
    [
        (129, 65, 257),
        (260, 77, 516),
        (513, 100, 511),
        (2049, 200, 1025),
        (4097, 77, 2305),
        (64, 1000, 64),
        (333, 520, 1032),
    ],
)
@pytest.mark.parametrize("layouts", list(itertools.product((False, True), repeat=2)), ids=["NN", "NT", "TN", "TT"])
def test_every_config(shape, layouts, monkeypatch):
    """Realigned, by classes, with thin edges, with k cut: each that the planner may choose, twice, among NaN."""
    m, k, n = shape
    machine = describe("cuda:0")
    for extra, offset in ((0, 0), (1, 0), (3, 1), (4, 0), (0, 3)):
        M, _ = matrix(m, k, transposed=layouts[0], extra=extra, offset=offset)
        N, _ = matrix(k, n, transposed=layouts[1], extra=extra, offset=offset)
        P, around = matrix(m, n, extra=extra, offset=offset)
        kinds = {}
        for config in tensor_tiles.configs(tw.plan(M, N).problem, machine):
            key = (
                config.routes,
                config.splits > 1,
                config.classes,
                config.edge_rows,
                config.edge_cols,
                config.transposed and config.tile.cluster,
            )
            if not config.transposed or not (extra or offset):  # that one wants whole boxes of P
                kinds.setdefault(key, config)
        for config in kinds.values():
            P.fill_(float("nan"))
            multiply_by(config, monkeypatch, M, N, out=P)
            assert_close(P, M, N)
            first = P.clone()
            P.fill_(float("nan"))
            assert torch.isnan(around).all(), f"something was written outside P by {config}"
            multiply_by(config, monkeypatch, M, N, out=P)
            assert torch.equal(P, first), f"other bits by {config}"


@pytest.mark.parametrize("shape", [(300, 257, 129), (256, 256, 256), (128, 8192, 128), (4097, 513, 257)])
def test_a_graph_replays_the_product(shape):
    m, k, n = shape
    M, N = matrix(m, k)[0], matrix(k, n)[0]
    P = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    tw.matmul(M, N, out=P)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        tw.matmul(M, N, out=P)
    for _ in range(3):
        M.copy_(torch.randn(m, k, device="cuda"))
        P.fill_(float("nan"))
        graph.replay()
        assert_close(P, M, N)


def test_accumulate():
    for extra in (0, 1):
        M, N = matrix(200, 300, extra=extra)[0], matrix(300, 100, extra=extra)[0]
        P = matrix(200, 100, extra=extra)[0]
        expected = P.double() + M.double() @ N.double()
        tw.matmul(M, N, out=P, accumulate=True, kernel="wgmma_half")
        assert (P.double() - expected).norm() <= 6e-3 * expected.norm()


@pytest.mark.parametrize("shape", [(257, 129, 300), (2049, 257, 1025)])
def test_nan_and_inf_stay_where_they_belong(shape):
    m, k, n = shape
    M, N = matrix(m, k)[0], matrix(k, n)[0]
    M[m - 1, k - 1] = float("nan")
    N[k - 1, n - 1] = float("inf")
    P = tw.matmul(M, N, kernel="wgmma_half")
    assert torch.isnan(P[m - 1]).all()
    assert not torch.isfinite(P[:, n - 1]).any()
    assert torch.isfinite(P[: m - 1, : n - 1]).all()


def test_stacks_vectors_and_other_strides():
    M, N = torch.randn(3, 1, 65, 33, device="cuda").bfloat16(), torch.randn(4, 33, 70, device="cuda").bfloat16()
    P = tw.matmul(M, N, kernel="wgmma_half")
    assert (P.double() - M.double() @ N.double()).norm() <= 6e-3 * P.double().norm()
    v = torch.randn(33, device="cuda").bfloat16()
    assert_close(tw.matmul(v, N[0], kernel="wgmma_half")[None], v[None], N[0])
    wide = torch.randn(100, 120, device="cuda").half()
    left, right = wide[:, ::2], wide[:60, ::3]
    assert_close(tw.matmul(left, right, kernel="wgmma_half"), left, right)


def test_the_same_bits_from_run_to_run():
    M, N = matrix(1000, 777)[0], matrix(777, 555)[0]
    first = tw.matmul(M, N, kernel="wgmma_half")
    for _ in range(5):
        assert torch.equal(tw.matmul(M, N, kernel="wgmma_half"), first)


@pytest.mark.parametrize("size", [4096, 4097])
def test_large(size):
    M, N = torch.randn(size, size, device="cuda").bfloat16(), torch.randn(size, size, device="cuda").bfloat16()
    assert_close(tw.matmul(M, N), M, N)
