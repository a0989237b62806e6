"""The tensor-core kernel on the card: every layout, stride, edge and tile, with poisoned surroundings."""

from __future__ import annotations

import itertools

import pytest

import tilewise as tw
from tilewise.tensor_tiles import TILES

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
        tw.matmul(M, N, out=P, kernel="tensor_cores")
        assert_close(P, M, N)
        P.fill_(float("nan"))
        assert torch.isnan(around).all(), "something was written outside P"


@pytest.mark.parametrize("tile", TILES[::3], ids=lambda t: f"{t.rows}x{t.cols}")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_every_tile(tile, dtype, monkeypatch):
    import tilewise.planning as planning

    monkeypatch.setattr(planning, "best_tile", lambda problem, machine: (tile, 1e-9))
    planning._plan.cache_clear()
    for m, k, n in ((520, 264, 392), (131, 77, 263)):
        M, N = matrix(m, k, dtype=dtype)[0], matrix(k, n, dtype=dtype)[0]
        assert_close(tw.matmul(M, N, kernel="tensor_cores"), M, N)
    planning._plan.cache_clear()


def test_accumulate():
    for extra in (0, 1):
        M, N = matrix(200, 300, extra=extra)[0], matrix(300, 100, extra=extra)[0]
        P = matrix(200, 100, extra=extra)[0]
        expected = P.double() + M.double() @ N.double()
        tw.matmul(M, N, out=P, accumulate=True, kernel="tensor_cores")
        assert (P.double() - expected).norm() <= 6e-3 * expected.norm()


def test_nan_and_inf_stay_where_they_belong():
    M, N = matrix(257, 129)[0], matrix(129, 300)[0]
    M[256, 128] = float("nan")
    N[128, 299] = float("inf")
    P = tw.matmul(M, N, kernel="tensor_cores")
    assert torch.isnan(P[256]).all()
    assert not torch.isfinite(P[:, 299]).any()
    assert torch.isfinite(P[:256, :299]).all()


def test_stacks_vectors_and_other_strides():
    M, N = torch.randn(3, 1, 65, 33, device="cuda").bfloat16(), torch.randn(4, 33, 70, device="cuda").bfloat16()
    P = tw.matmul(M, N, kernel="tensor_cores")
    assert (P.double() - M.double() @ N.double()).norm() <= 6e-3 * P.double().norm()
    v = torch.randn(33, device="cuda").bfloat16()
    assert_close(tw.matmul(v, N[0], kernel="tensor_cores")[None], v[None], N[0])
    wide = torch.randn(100, 120, device="cuda").half()
    left, right = wide[:, ::2], wide[:60, ::3]
    assert_close(tw.matmul(left, right, kernel="tensor_cores"), left, right)


def test_the_same_bits_from_run_to_run():
    M, N = matrix(1000, 777)[0], matrix(777, 555)[0]
    first = tw.matmul(M, N, kernel="tensor_cores")
    for _ in range(5):
        assert torch.equal(tw.matmul(M, N, kernel="tensor_cores"), first)


@pytest.mark.parametrize("size", [4096, 4097])
def test_large(size):
    M, N = torch.randn(size, size, device="cuda").bfloat16(), torch.randn(size, size, device="cuda").bfloat16()
    assert_close(tw.matmul(M, N), M, N)
