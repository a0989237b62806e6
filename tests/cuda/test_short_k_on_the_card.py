"""Products of a short k on tensor cores on the card: every way among poison, P's rows starting anywhere, stacks too."""

from __future__ import annotations

import math
import random
import time

import pytest

from seeds import next_seed
from tilewise.core.options import Options
from tilewise.dispatch.bind import bind
from tilewise.dispatch.execute import machine_of
from tilewise.kernels.mma_gemm.family import ShortK
from tilewise.kernels.mma_gemm.short_k.model import DEEPEST
from tilewise.planning.launchers import launcher_of

torch = pytest.importorskip("torch")

BOUNDS = {"tf32": 2e-3, "bfloat16": 1e-2, "float16": 2e-3}
SECONDS = 5  # of each test


def lying(rng, shape, dtype, transposed):
    """Elements in rows or columns, some of them in wider memory that is NaN elsewhere."""
    *stack, rows, cols = shape
    lines, length = (cols, rows) if transposed else (rows, cols)
    memory = torch.full((*stack, lines, length + rng.choice((0, 0, 1, 2, 3, 4))), math.nan, device="cuda", dtype=dtype)
    memory[..., :length] = torch.randn(*stack, lines, length, device="cuda", dtype=torch.float32)
    view = memory[..., :length]
    return view.mT if transposed else view


@pytest.mark.parametrize("kind", list(BOUNDS))
def test_random_products_by_random_configs(kind):
    seed = next_seed() % 2**32
    rng, machine, family = random.Random(seed), machine_of("cuda:0"), ShortK()
    torch.manual_seed(seed)
    dtype, precision = (torch.float32, "tf32") if kind == "tf32" else (getattr(torch, kind), "high")
    end, made = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        m, n = (int(math.exp(rng.uniform(0, math.log(4000)))) for _ in range(2))
        k = rng.randint(1, DEEPEST[dtype.itemsize])
        stack = (rng.randint(2, 5),) if rng.random() < 0.3 and m * n < 10**6 else ()
        M = lying(rng, (*stack, m, k), dtype, rng.random() < 0.5)
        N = lying(rng, (*stack, k, n), dtype, rng.random() < 0.5)
        around = torch.full((*stack, m + 2, n + rng.choice((3, 8, 16))), 7.0, device="cuda", dtype=dtype)
        P = around[..., 1 : m + 1, rng.randint(0, 3) :][..., :n]
        problem = bind(M, N, Options(out=P, precision=precision)).problem
        config = rng.choice(family.configurations(problem, machine))
        launcher = launcher_of(family.pinned(problem, machine, config), "cuda:0")
        scratch = torch.full((max(1, launcher.scratch_bytes),), 255, device="cuda", dtype=torch.uint8)
        addresses = {"M": M.data_ptr(), "N": N.data_ptr(), "P": P.data_ptr(), "scratch": scratch.data_ptr()}
        launcher(torch.cuda.current_stream().cuda_stream, **addresses)
        exact = M.double() @ N.double()
        said = f"seed {seed}: {stack} {m}x{k}x{n} {config.spec()} {M.stride()} {N.stride()} {P.stride()}"
        assert (P.double() - exact).abs().max() <= BOUNDS[kind] * (M.double().abs() @ N.double().abs()).max(), said
        P.fill_(7.0)
        assert bool((around == 7.0).all()), f"written beside P, {said}"
        made += 1
    print(f"{kind}: {made} products, seed {seed}")
