"""tf32 and 8-bit elements on tensor cores, on the card: every layout, stride, edge and tile, among poison."""

from __future__ import annotations

import itertools

import pytest

import tilewise as tw
import tilewise.planning.choose as planning
from tilewise.kernels.wgmma_gemm.family import KMajor
from tilewise.kernels.wgmma_gemm.k_major.model import (
    ACROSS,
    ACROSS_TILES,
    BY_CLASSES,
    TILES,
    KMajorConfig,
    KMajorTile,
    routes,
)
from tilewise.kernels.wgmma_gemm.k_major.model import KINDS as ELEMENTS

torch = pytest.importorskip("torch")

SHAPES = (
    (1, 1, 1), (1, 16, 16), (64, 64, 64), (128, 128, 256), (129, 65, 257), (127, 31, 255), (333, 555, 777),
    (1, 4097, 3), (1000, 520, 776), (5, 1, 700), (130, 1000, 1),
)  # fmt: skip
LAYOUTS = list(itertools.product((False, True), repeat=2))
KINDS = ("float32", "int8", "uint8", "float8_e4m3fn", "float8_e5m2")
BOUNDS = {"float32": 1e-3, "float8_e4m3fn": 1e-3, "float8_e5m2": 1e-3}  # of the operands as they are


def matrix(rows, cols, kind, *, transposed=False, extra=0, offset=0):
    """rows×cols inside larger memory that is NaN (or the largest integer) elsewhere: a read outside shows."""
    lines, length = (cols, rows) if transposed else (rows, cols)
    lead, dtype = length + extra, getattr(torch, kind)
    poison = float("nan") if dtype.is_floating_point else torch.iinfo(dtype).max
    memory = torch.full((lines * lead + offset + 64,), poison, device="cuda", dtype=torch.float32).to(dtype)
    view = memory[offset : offset + lines * lead].view(lines, lead)[:, :length]
    if dtype.is_floating_point:
        view.copy_(torch.randn(lines, length, device="cuda").to(dtype))
    else:
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max + 1
        view.copy_(torch.randint(low, high, (lines, length), device="cuda").to(dtype))
    return (view.T if transposed else view), memory


def exact(M, N):
    return M.double() @ N.double()  # exact for 8-bit integers


def check(P, M, N, kind):
    expected = exact(M, N)
    if kind in BOUNDS:
        assert torch.isfinite(P.double()).all()
        bound = max(BOUNDS[kind], {torch.bfloat16: 4e-3, torch.float16: 1e-3}.get(P.dtype, 0))
        usual = M.double().norm() * N.double().norm() / M.shape[1] ** 0.5  # of few cells all may be small by chance
        assert (P.double() - expected).norm() <= bound * max(usual, expected.norm()) + 1e-6
    elif P.dtype == torch.int32:
        assert torch.equal(P.double(), expected)
    else:
        assert torch.equal(P, expected.to(torch.int64).to(P.dtype))  # it wraps


def options_of(kind):
    made = [{"precision": "tf32"}] if kind == "float32" else [{}]
    if kind in ("int8", "uint8"):
        made.append({"dtype": "int32"})
    if kind.startswith("float8"):
        made += [{"dtype": torch.bfloat16}, {"dtype": "float16"}]
    return made


def multiply_by(config, monkeypatch, M, N, **options):
    """The product by this very way."""
    monkeypatch.setattr(KMajor, "best", lambda family, problem, machine, kernel=None: (1e-9, config))
    planning._plan.cache_clear()
    try:
        return tw.matmul(M, N, kernel="k_major", **options)
    finally:
        monkeypatch.undo()
        planning._plan.cache_clear()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layouts", LAYOUTS, ids=["NN", "NT", "TN", "TT"])
def test_layouts_and_edges(kind, layouts):
    for m, k, n in SHAPES:
        for extra, offset in ((0, 0), (1, 0), (3, 1), (16, 16)):
            M, _ = matrix(m, k, kind, transposed=layouts[0], extra=extra, offset=offset)
            N, _ = matrix(k, n, kind, transposed=layouts[1], extra=extra, offset=offset)
            for options in options_of(kind):
                P = tw.matmul(M, N, kernel="k_major", **options)
                check(P, M, N, kind)
                memory = torch.full((m * (n + extra) + offset + 64,), 77, device="cuda", dtype=torch.float32).to(
                    P.dtype
                )
                view = memory[offset : offset + m * (n + extra)].view(m, n + extra)[:, :n]
                tw.matmul(M, N, kernel="k_major", out=view, **options)
                check(view, M, N, kind)
                view.fill_(77)
                assert (memory == 77).all(), "something was written outside P"


@pytest.mark.parametrize(
    ("kind", "tile"),
    [
        *((kind, t) for kind in ("float32", "int8", "float8_e4m3fn") for t in TILES if t.takes(ELEMENTS[kind])),
        *(("uint8", tile) for tile in TILES[:2]),  # but for the instruction's name it is int8
    ],
    ids=lambda x: x if isinstance(x, str) else f"{x.rows}x{x.cols}c{x.cluster}{'beside' * x.beside}",
)
def test_every_tile_twice_with_the_same_bits(tile, kind, monkeypatch):
    options = options_of(kind)[-1]
    for m, k, n in ((520, 272, 528), (131, 72, 265)):
        M, N = matrix(m, k, kind)[0], matrix(k, n, kind, transposed=True)[0]
        how = routes(tw.plan(M, N, **options).problem)
        P = multiply_by(KMajorConfig(tile, how), monkeypatch, M, N, **options)
        check(P, M, N, kind)
        assert torch.equal(P, multiply_by(KMajorConfig(tile, how), monkeypatch, M, N, **options))


@pytest.mark.parametrize("tile", ACROSS_TILES, ids=lambda t: f"{t.rows}x{t.cols}c{t.cluster}{'beside' * t.beside}")
def test_N_from_registers_wherever_its_lines_start(tile, monkeypatch):
    for (m, k, n), (extra, offset), of_p in itertools.product(
        ((520, 272, 528), (131, 72, 265), (5, 7, 700), (301, 1001, 131)), ((0, 0), (1, 0), (2, 3), (3, 1)), (0, 1)
    ):
        N, _ = matrix(k, n, "float32", extra=extra, offset=offset)
        memory = torch.full((m * (n + of_p) + 64,), 77.0, device="cuda")
        P = memory[: m * (n + of_p)].view(m, n + of_p)[:, :n]
        for transposed, by_classes in ((False, False), (False, True), (True, False)):
            if by_classes and not tile.beside:
                continue  # never planned
            M, _ = matrix(m, k, "float32", transposed=transposed, extra=extra, offset=offset)
            how = BY_CLASSES if by_classes else routes(tw.plan(M, N, precision="tf32").problem)[0]
            multiply_by(KMajorConfig(tile, (how, ACROSS)), monkeypatch, M, N, out=P, precision="tf32")
            check(P, M, N, "float32")
            P.fill_(77)
            assert (memory == 77).all(), "something was written outside P"


@pytest.mark.parametrize("how", ["transposed", BY_CLASSES])
def test_N_from_registers_onto_what_P_holds(how, monkeypatch):
    M, N = matrix(700, 75, "float32", extra=2)[0], matrix(75, 301, "float32")[0]
    config = KMajorConfig(ACROSS_TILES[0], (how, ACROSS))
    P = multiply_by(config, monkeypatch, M, N, precision="tf32")
    check(P, M, N, "float32")
    onto = P.clone()
    multiply_by(config, monkeypatch, M, N, out=onto, accumulate=True, precision="tf32")
    assert torch.equal(onto, P + P)


def test_k_in_parts(monkeypatch):
    M, N = matrix(130, 5000, "float32")[0], matrix(5000, 201, "float32")[0]
    config = KMajorConfig(KMajorTile(64), ("as it is", "transposed"), 7)
    P = multiply_by(config, monkeypatch, M, N, precision="tf32")
    check(P, M, N, "float32")
    assert torch.equal(P, multiply_by(config, monkeypatch, M, N, precision="tf32"))


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_accumulate_stacks_and_graphs(kind):
    options = options_of(kind)[-1]
    M, N = matrix(200, 304, kind)[0], matrix(304, 112, kind)[0]
    P = tw.matmul(M, N, kernel="k_major", **options)
    onto = P.clone()
    tw.matmul(M, N, out=onto, accumulate=True, kernel="k_major", **options)
    assert torch.equal(onto, P + P)
    stack = torch.stack([M, M + 1 if kind == "float32" else M])
    made = tw.matmul(stack, N, kernel="k_major", **options)
    assert torch.equal(made[0], P)
    check(made[1], stack[1], N, kind)
    graph = torch.cuda.CUDAGraph()
    tw.matmul(M, N, out=P, kernel="k_major", **options)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        tw.matmul(M, N, out=P, kernel="k_major", **options)
    M.copy_(matrix(200, 304, kind)[0])
    P.fill_(0)
    graph.replay()
    check(P, M, N, kind)


@pytest.mark.parametrize("dtype", [None, "bfloat16"])
@pytest.mark.parametrize("shape", [(128, 256, 192), (131, 77, 265)])
def test_scales_of_8_bit_floats(shape, dtype):
    m, k, n = shape
    M, N = matrix(m, k, "float8_e4m3fn")[0], matrix(k, n, "float8_e5m2", transposed=True)[0]
    rows, cols = torch.rand(m, device="cuda"), torch.rand(1, n, device="cuda")
    one = torch.full((), 0.25, device="cuda")
    for scales, factor in (
        ((rows, cols), rows[:, None].double() * cols.double()),
        ((one, 3.0), 0.75),
        ((rows[:, None], one), rows[:, None].double() * 0.25),
    ):
        P = tw.matmul(M, N, scales=scales, dtype=dtype)
        expected = exact(M, N) * factor
        assert (P.double() - expected).norm() <= (4e-3 if dtype else 1e-3) * expected.norm()
        out = torch.empty(m, 2 * n, device="cuda", dtype=P.dtype)[:, ::2]
        assert torch.equal(tw.matmul(M, N, scales=scales, dtype=dtype, out=out), P)


def test_nan_and_inf_stay_where_they_belong(monkeypatch):
    M, N = matrix(257, 129, "float32")[0], matrix(129, 300, "float32")[0]
    M[256, 128] = float("nan")
    N[128, 299] = float("inf")
    P = tw.matmul(M, N, precision="tf32", kernel="k_major")
    assert torch.isnan(P[256]).all()
    assert not torch.isfinite(P[:, 299]).any()
    assert torch.isfinite(P[:256, :299]).all()
    M[252, 128] = M[254, 126] = float("inf")  # just before rows that come one and three elements early
    P = multiply_by(KMajorConfig(ACROSS_TILES[0], (BY_CLASSES, ACROSS)), monkeypatch, M, N, precision="tf32")
    assert torch.isnan(P[256]).all()
    assert not torch.isfinite(P[:, 299]).any()
    fine = [row for row in range(256) if row not in (252, 254)]
    assert torch.isfinite(P[fine, :299]).all()


def test_tf32_is_rounded_to_the_nearest():
    for transposed in (False, True):
        M, N = matrix(512, 512, "float32")[0], matrix(512, 512, "float32", transposed=transposed)[0]
        P, expected = tw.matmul(M, N, precision="tf32", kernel="k_major"), exact(M, N)
        assert (P.double() - expected).norm() <= 3.3e-4 * expected.norm()


def test_they_are_what_runs():
    M = torch.randn(2048, 2048, device="cuda")
    made = tw.plan(M, M, precision="tf32")
    assert made.kernel == "k_major"
    assert made.config.routes == ("as it is", ACROSS)
    small = torch.randint(-9, 9, (2048, 2048), device="cuda", dtype=torch.int8)
    assert tw.plan(small, small).kernel == "k_major"
    tiny = matrix(40, 40, "float8_e4m3fn")[0]
    check(tw.matmul(tiny, tiny), tiny, tiny, "float8_e4m3fn")  # whichever kernel it is
