"""The mma.sync kernel on the card: every dtype, layout, stride, edge and tile, with poisoned surroundings."""

from __future__ import annotations

import itertools

import pytest

import tilewise as tw
import tilewise.kernels.mma_gemm.mma_sync.model as model
import tilewise.planning.choose as planning
from tilewise.backends.cuda.device import describe
from tilewise.kernels.mma_gemm.mma_sync.family import MmaSync
from tilewise.kernels.mma_gemm.mma_sync.tiles import TILES

torch = pytest.importorskip("torch")

SHAPES = ((129, 65, 257), (1, 97, 5), (70, 1000, 333), (128, 64, 256), (1153, 40, 1025), (5, 1, 300))
BOUNDS = {"bfloat16": 6e-3, "float16": 1e-3, "float32": 1e-3, "float64": 1e-14}
NAMES = (*BOUNDS, "int8", "uint8")
LAYOUTS = {"NN": (False, False), "NT": (False, True), "TN": (True, False), "TT": (True, True)}
TWINS = ("float16", "uint8")  # of bfloat16 and int8, all but the instruction's name: half of the layouts will do


def matrix(rows, cols, name, transposed=False, extra=0, offset=0):
    """rows×cols inside larger memory that is NaN (99 for integers) elsewhere: a read outside shows."""
    dtype = getattr(torch, name)
    lines, length = (cols, rows) if transposed else (rows, cols)
    lead = length + extra
    memory = torch.full((lines * lead + offset + 64,), poison(name), device="cuda", dtype=dtype)
    view = memory[offset : offset + lines * lead].view(lines, lead)[:, :length]
    if name in BOUNDS:
        view.copy_(torch.randn(lines, length, device="cuda", dtype=torch.float64))
    else:
        view.copy_(torch.randint(-128 if name == "int8" else 0, 127, (lines, length), device="cuda"))
    return (view.T if transposed else view), memory


def poison(name):
    return float("nan") if name in BOUNDS else 99


def is_poison(memory, name):
    return bool(torch.isnan(memory).all() if name in BOUNDS else (memory == 99).all())


def exact_product(M, N, name):
    if name in BOUNDS:
        return M.double() @ N.double()
    return (M.double() @ N.double()).long().to(M.dtype)  # exact, then it wraps


def assert_right(P, exact, name, usual=0.0):
    """`usual`: how large such a product is in the mean; a few cells may be small by chance."""
    if name in BOUNDS:
        assert (P.double() - exact).norm() <= BOUNDS[name] * max(exact.norm().item(), usual)
    else:
        assert torch.equal(P, exact)


def usual_size(M, N):
    return (M.double().norm() * N.double().norm() / M.shape[1] ** 0.5).item()


def multiply_by(config, monkeypatch, M, N, **options):
    """The product by this very way."""
    monkeypatch.setattr(model, "best_config", lambda problem, machine, requested=False: (1e-9, config))
    planning._plan.cache_clear()
    try:
        return tw.matmul(M, N, kernel="mma_sync", precision="tf32", **options)
    finally:
        monkeypatch.undo()
        planning._plan.cache_clear()


@pytest.mark.parametrize(
    ("name", "layouts"),
    [(name, layouts) for name in NAMES for layouts in LAYOUTS if name not in TWINS or layouts in ("NN", "TT")],
)
def test_every_config(name, layouts, monkeypatch):
    """As they lie, realigned, packed, k cut, thin edges: twice, among NaN, the same bits. Each by the smallest tile,
    which is compiled the soonest; `test_every_tile` has the others."""
    machine, layouts = describe("cuda:0"), LAYOUTS[layouts]
    for (m, k, n), (extra, offset) in itertools.product(SHAPES, ((0, 0), (1, 0), (3, 1), (2, 2))):
        M, _ = matrix(m, k, name, layouts[0], extra, offset)
        N, _ = matrix(k, n, name, layouts[1], extra, offset)
        P, around = matrix(m, n, name, False, extra, offset)
        exact, kinds = exact_product(M, N, name), {}
        for config in MmaSync().configurations(tw.plan(M, N, precision="tf32").problem, machine):
            kinds[config.routes, config.parts > 1, config.edge_rows, config.edge_cols] = config
        for config in kinds.values():
            P.fill_(poison(name))
            multiply_by(config, monkeypatch, M, N, out=P)
            assert_right(P, exact, name, usual_size(M, N))
            first = P.clone()
            P.fill_(poison(name))
            assert is_poison(around, name), f"something was written outside P by {config}"
            multiply_by(config, monkeypatch, M, N, out=P)
            assert torch.equal(P, first), f"other bits by {config}"


@pytest.mark.parametrize("name", NAMES)
def test_every_tile(name, monkeypatch):
    machine = describe("cuda:0")
    for extra in (0, 1):
        M, N = matrix(259, 200, name, extra=extra)[0], matrix(200, 300, name, extra=extra)[0]
        found = {
            config.tile: config for config in MmaSync().configurations(tw.plan(M, N, precision="tf32").problem, machine)
        }
        assert set(found) == set(TILES[M.element_size()])
        for config in found.values():
            assert_right(multiply_by(config, monkeypatch, M, N), exact_product(M, N, name), name)


@pytest.mark.parametrize("name", ["float64", "bfloat16"])
def test_accumulate_stacks_and_other_strides(name):
    dtype = getattr(torch, name)
    M, N = torch.randn(3, 1, 65, 33, device="cuda").to(dtype), torch.randn(4, 33, 70, device="cuda").to(dtype)
    assert_right(tw.matmul(M, N, kernel="mma_sync"), M.double() @ N.double(), name)
    wide = torch.randn(100, 120, device="cuda").to(dtype)
    left, right = wide[:, ::2], wide[:60, ::3]
    assert_right(tw.matmul(left, right, kernel="mma_sync"), left.double() @ right.double(), name)
    P = torch.randn(65, 70, device="cuda").to(dtype)
    expected = P.double() + M[0, 0].double() @ N[0].double()
    tw.matmul(M[0, 0], N[0], out=P, accumulate=True, kernel="mma_sync")
    assert_right(P, expected, name)


def test_nan_and_inf_stay_where_they_belong():
    for m, k, n in ((257, 129, 300), (1153, 257, 1025)):
        M, N = matrix(m, k, "float64")[0], matrix(k, n, "float64")[0]
        M[m - 1, k - 1] = float("nan")
        N[k - 1, n - 1] = float("inf")
        P = tw.matmul(M, N, kernel="mma_sync")
        assert torch.isnan(P[m - 1]).all()
        assert not torch.isfinite(P[:, n - 1]).any()
        assert torch.isfinite(P[: m - 1, : n - 1]).all()


@pytest.mark.parametrize("shape", [(300, 257, 129), (128, 8192, 128), (1153, 513, 1025)])
def test_a_graph_replays_the_product(shape):
    m, k, n = shape
    M, N = matrix(m, k, "float64")[0], matrix(k, n, "float64")[0]
    P = torch.empty(m, n, device="cuda", dtype=torch.float64)
    tw.matmul(M, N, out=P)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        tw.matmul(M, N, out=P)
    M.copy_(torch.randn(m, k, device="cuda"))
    P.fill_(float("nan"))
    graph.replay()
    assert_right(P, M @ N, "float64")


@pytest.mark.parametrize("size", [4096, 4097])
def test_float64_is_the_default_config_of_large_products(size):
    M, N = (torch.randn(size, size, device="cuda", dtype=torch.float64) for _ in range(2))
    assert tw.plan(M, N).kernel == "mma_sync"
    assert_right(tw.matmul(M, N), M @ N, "float64")
