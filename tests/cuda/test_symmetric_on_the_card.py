"""X·Xᵀ on the card: the upper tiles stored twice, by every config that does, among poison."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed, sample_size
from tilewise.algebra.dtypes import dtype_of
from tilewise.backends.cuda.device import describe
from tilewise.core.problem import Layout, problem_of_shape
from tilewise.kernels.by_configs import timed
from tilewise.kernels.registry import family_of
from tilewise.kernels.shared.layouts import BY_CLASSES
from tilewise.kernels.wgmma_gemm.wgmma_half.routes import options
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import TILES, TensorConfig
from tilewise.planning.choose import make_plan
from tilewise.planning.launchers import launcher_of

torch = pytest.importorskip("torch")

FAMILIES = [
    ("wgmma_half", torch.bfloat16),
    ("wgmma_half", torch.float16),
    ("mma_sync", torch.bfloat16),
    ("mma_sync", torch.float64),
    ("k_major", torch.float32),
    ("plain", torch.float32),
]
PRECISIONS = {"k_major": "tf32", "plain": "ieee"}


def matrix(stack, rows, cols, dtype, transposed=False, extra=0):
    """A stack inside memory that is NaN elsewhere."""
    lines, length = (cols, rows) if transposed else (rows, cols)
    memory = torch.full((stack, lines, length + extra), float("nan"), device="cuda", dtype=dtype)
    memory[:, :, :length] = torch.randint(-3, 4, (stack, lines, length), device="cuda").to(dtype)
    view = memory[:, :, :length]
    return (view.mT if transposed else view), memory


def layout_of(x):
    return Layout(x.stride(1), x.stride(2), (x.stride(0),), x.data_ptr() % 16)


def problem_of(X, P, accumulate, family):
    stack, m, k = X.shape
    name = str(X.dtype).removeprefix("torch.")
    of_n = Layout(X.stride(2), X.stride(1), (X.stride(0),), X.data_ptr() % 16)
    precision = PRECISIONS.get(family.name, "high")
    whole = problem_of_shape(m, k, m, name, accumulate=accumulate, precision=precision)
    return replace(whole, stack=(stack,), layout_m=layout_of(X), layout_n=of_n, layout_p=layout_of(P), symmetric=True)


def check(family, config, X, P, around, accumulate):
    """Right everywhere, once, and nothing beside P."""
    plan = family.planned(problem_of(X, P, accumulate, family), describe("cuda:0"), family.name, None, 0.0, config)
    launcher = launcher_of(plan, "cuda:0")
    scratch = torch.full((max(1, launcher.scratch_bytes),), 255, dtype=torch.uint8, device="cuda")
    wanted = X.double() @ X.double().mT + (P.double() if accumulate else 0)
    stream = torch.cuda.current_stream().cuda_stream
    launcher(stream, M=X.data_ptr(), N=X.data_ptr(), P=P.data_ptr(), scratch=scratch.data_ptr())
    case = f"{tuple(X.shape)} {X.dtype} {X.stride()} {P.stride()} {config} accumulate={accumulate}"
    assert torch.equal(P, wanted.to(P.dtype)), case
    P.fill_(float("nan"))
    assert torch.isnan(around).all(), f"{case}: something was written outside P"


def drawn(rng, dtype, stack, m, k):
    extra = int(rng.choice([0, -m % 8, 3]))
    X, _ = matrix(stack, m, k, dtype, bool(rng.integers(2)), int(rng.choice([0, 1, 8])))
    P, around = matrix(stack, m, m, dtype, False, extra)
    return X, P, around


def symmetric_configs(family, problem):
    if family.name == "mma_sync":
        return family.configurations(problem, describe("cuda:0"))
    if family.name == "plain":
        return [family.best(problem, describe("cuda:0"))[1]]
    if family.name == "k_major":
        every = (
            config for table in family_of("k_major").tables(problem, describe("cuda:0")) for config, _ in timed([table])
        )
        return [config for config in every if config.symmetric]
    routes = list(product(*([how for how in each if how != BY_CLASSES] for each in options(problem))))
    return [TensorConfig(tile, both, symmetric=True) for tile, both in product(TILES, routes)]


@pytest.mark.parametrize(("name", "dtype"), FAMILIES)
def test_every_config_of_drawn_products(name, dtype):
    seed = next_seed() % 2**32
    print("seed", seed)
    rng, family, seen = np.random.default_rng(seed), family_of(name), set()
    for _ in range(sample_size(24)):
        stack, m, k = int(rng.choice([1, 1, 3])), int(rng.integers(1, 700)), int(rng.integers(1, 300))
        X, P, around = drawn(rng, dtype, stack, m, k)
        accumulate = bool(rng.integers(2))
        configs = symmetric_configs(family, problem_of(X, P, accumulate, family))
        if configs:
            config = configs[int(rng.integers(len(configs)))]
            seen.add(str(config))
            check(family, config, X, P, around, accumulate)
    print(len(seen), "configs")


@pytest.mark.parametrize(("name", "dtype"), FAMILIES)
def test_one_of_each_tile(name, dtype):
    """Few and small: for compute-sanitizer."""
    rng, family = np.random.default_rng(1), family_of(name)
    X, P, around = drawn(rng, dtype, 1, 392, 72)
    tiles = {}
    for config in symmetric_configs(family, problem_of(X, P, False, family)):
        tiles.setdefault(config.tile, config)
    for config in tiles.values():
        check(family, config, X, P, around, False)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("shape", [(4096, 1024), (4096, 4096), (2048, 2048), (1001, 333), (1600, 6400)])
def test_large_ones_as_people_call_them(shape, dtype):
    X = torch.randint(-2, 3, shape, device="cuda").to(dtype)
    out = torch.full((shape[0], shape[0]), float("nan"), device="cuda", dtype=dtype)
    wanted = (X.double() @ X.double().mT).to(dtype)
    assert "symmetric" in str(tw.plan(X, X.mT).notes) or shape == (1001, 333)
    for _ in range(2):
        out.fill_(float("nan"))
        assert torch.equal(tw.matmul(X, X.mT, out=out), wanted)
        assert torch.equal(tw.matmul(X, X.mT), wanted)
        assert torch.equal(tw.matmul(X, X.clone().mT), wanted)  # the same signature, other memory
    other = torch.randint(-2, 3, shape, device="cuda").to(dtype)
    assert torch.equal(tw.matmul(X, other.mT), (X.double() @ other.double().mT).to(dtype))
    tw.matmul(X, X.mT, out=out, accumulate=True)
    assert torch.equal(out, (2 * wanted.double()).to(dtype)) or dtype is not torch.float64


def test_a_plan_of_the_whole_has_no_note():
    problem = problem_of_shape(4096, 1024, 4096, "bfloat16")
    assert dtype_of(problem.dtype.numpy) == problem.dtype
    assert "symmetric" not in str(make_plan(problem, describe("cuda:0")).notes)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_newton_schulz_beside_torch(dtype):
    shapes = [(768, 2304), (768, 768), (3072, 768), (768, 3072), (33, 70), (1001, 333), (1, 9), (760, 2300)]
    given = [torch.randn(shape, device="cuda") for shape in shapes]
    for x, made in zip(given, tw.torch.newton_schulz(given, dtype=dtype), strict=True):
        exact, rounded = (iterated(x, kind) for kind in (torch.float64, dtype))
        error, theirs = ((y.double() - exact).norm() / exact.norm() for y in (made, rounded))
        assert error <= 1.5 * theirs + 1e-3, (x.shape, float(error), float(theirs))


def iterated(x, dtype):
    """As `torch.optim.Muon` has it."""
    wide = (x.mT if x.shape[0] > x.shape[1] else x).to(dtype)
    wide = wide / wide.norm()
    for _ in range(5):
        gram = wide @ wide.mT
        wide = torch.addmm(wide, torch.addmm(gram, gram, gram, beta=-4.775, alpha=2.0315), wide, beta=3.4445)
    return wide.mT if x.shape[0] > x.shape[1] else wide
