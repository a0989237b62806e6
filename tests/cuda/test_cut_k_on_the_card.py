"""k cut over the blocks of a cluster, and few rows or columns along odd lines, on the card: random ways among NaN."""

from __future__ import annotations

import math
import random
import time

import pytest

from seeds import next_seed
from tilewise.core.options import Options
from tilewise.dispatch.bind import bind
from tilewise.dispatch.execute import machine_of
from tilewise.kernels.registry import family_named
from tilewise.planning.launchers import launcher_of

torch = pytest.importorskip("torch")

BOUNDS = {"bfloat16": 6e-3, "float16": 2e-3, "tf32": 1.5e-3, "float32": 2e-6}  # of the norm
FAMILIES = ("wgmma_half", "direct_half", "half_dots", "read_once", "bulk_lines")
SECONDS = 6  # of each test


def among_nan(rng, rows, cols, dtype, transposed):
    """Random numbers in rows or columns that start anywhere, NaN between and around them; and all of the memory."""
    lines, length = (cols, rows) if transposed else (rows, cols)
    lead, before = length + rng.choice((0, 0, 1, 2, 3, 8)), rng.choice((0, 0, 1, 3, 8))
    memory = torch.full((before + lines * lead + 64,), math.nan, device="cuda", dtype=dtype)
    view = memory[before : before + lines * lead].view(lines, lead)[:, :length]
    view.copy_(torch.randn(lines, length, device="cuda"))
    return (view.T if transposed else view), memory


def parts_of(config):
    return getattr(config, "splits", getattr(config, "parts", getattr(config, "cluster", 1)))


def configs_of(problem, machine):
    """Those whose sums are added up inside the launch."""
    for name in FAMILIES:
        family = family_named(name)
        if family.refusal(problem, machine) is None:
            for config in family.configurations(problem, machine):
                if name != "wgmma_half" or config.inside:
                    yield family, config


@pytest.mark.parametrize("kind", list(BOUNDS))
def test_random_products_by_random_configs(kind):
    seed = next_seed() % 2**32
    rng, machine = random.Random(seed), machine_of("cuda:0")
    torch.manual_seed(seed)
    dtype, end, made, seen = getattr(torch, kind, torch.float32), time.monotonic() + SECONDS, 0, set()
    precision = "tf32" if kind == "tf32" else "high"
    while time.monotonic() < end + (60 if not any(cut for _, cut in seen) else 0):  # a busy card may draw few
        m, n, k = (max(2, int(math.exp(rng.uniform(0, math.log(top))))) for top in (700, 700, 6000))
        m = rng.choice((m, m, min(m, 8), min(m, 40)))
        M, _ = among_nan(rng, m, k, dtype, rng.random() < 0.5)
        N, _ = among_nan(rng, k, n, dtype, rng.random() < 0.5)
        P, around = among_nan(rng, m, n, dtype, False)
        problem = bind(M, N, Options(out=P, precision=precision)).problem
        choice = list(configs_of(problem, machine))
        if not choice:
            continue
        family, config = rng.choice(choice)
        said = f"seed {seed}: {m}x{k}x{n} {family.name} {config.spec()} {M.stride()} {N.stride()} {P.stride()}"
        launcher = launcher_of(family.pinned(problem, machine, config), "cuda:0")
        scratch = torch.full((max(1, launcher.scratch_bytes),), 255, dtype=torch.uint8, device="cuda")
        places = {name: x.data_ptr() for name, x in (("M", M), ("N", N), ("P", P), ("scratch", scratch))}
        results = []
        for _ in range(2):
            P.fill_(math.nan)
            launcher(torch.cuda.current_stream().cuda_stream, **places)
            results.append(P.clone())
        exact = M.double() @ N.double()
        assert (results[0].double() - exact).norm() <= BOUNDS[kind] * exact.norm(), said
        assert torch.equal(*results), f"other bits, {said}"
        P.fill_(math.nan)
        assert bool(torch.isnan(around).all()), f"written beside P, {said}"
        made += 1
        seen.add((family.name, parts_of(config) > 1))
    print(f"{kind}: {made} products, {sorted(seen)}, seed {seed}")
    assert any(cut for _, cut in seen), "clusters were drawn"
