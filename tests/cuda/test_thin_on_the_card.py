"""Thin products of float32 on the card: every number of warps and cluster among poison, stacks too."""

from __future__ import annotations

import math
import random
import time

import pytest

from tilewise.api import Options, understand
from tilewise.execution import machine_of
from tilewise.kernels.thin.family import Thin
from tilewise.kernels.thin.model import CELLS, FEWEST
from tilewise.prepared import launcher_of

torch = pytest.importorskip("torch")

SECONDS = 6


def lying(rng, shape):
    """Elements in rows or columns, some of them in wider memory that is NaN elsewhere."""
    *stack, rows, cols = shape
    turned = rng.random() < 0.5
    lines, length = (cols, rows) if turned else (rows, cols)
    memory = torch.full((*stack, lines, length + rng.choice((0, 0, 1, 3))), math.nan, device="cuda")
    memory[..., :length] = torch.randn(*stack, lines, length, device="cuda")
    view = memory[..., :length]
    return view.mT if turned else view


def test_random_products_by_random_ways():
    seed = time.time_ns() % 2**32
    rng, machine, family = random.Random(seed), machine_of("cuda:0"), Thin()
    torch.manual_seed(seed)
    end, clusters = time.monotonic() + SECONDS, set()
    while time.monotonic() < end:
        short = rng.randint(FEWEST, CELLS[-1])
        long, k = (int(math.exp(rng.uniform(math.log(least), math.log(4000)))) for least in (short, 1))
        m, n = (long, short) if rng.random() < 0.5 else (short, long)
        stack = (rng.randint(2, 5),) if rng.random() < 0.3 else ()
        M, N = lying(rng, (*stack, m, k)), lying(rng, (*stack, k, n))
        around = torch.full((*stack, m + 2, n + 3), 7.0, device="cuda")
        P = around[..., 1 : m + 1, rng.randint(0, 3) :][..., :n]
        if not stack and rng.random() < 0.3:
            around = torch.full((n + 2, m + 3), 7.0, device="cuda")
            P = around[1 : n + 1, 1 : m + 1].T
        problem = understand(M, N, Options(out=P, precision="ieee")).problem
        if (problem.m, problem.n) != (m, n):  # seen turned
            continue
        way = rng.choice(family.configurations(problem, machine))
        clusters.add(way.cluster)
        launcher = launcher_of(family.pinned(problem, machine, way), "cuda:0")
        launcher(torch.cuda.current_stream().cuda_stream, M=M.data_ptr(), N=N.data_ptr(), P=P.data_ptr())
        said = f"seed {seed}: {stack} {m}x{k}x{n} {way.words()} {M.stride()} {N.stride()} {P.stride()}"
        exact = M.double() @ N.double()
        assert (P.double() - exact).abs().max() <= 3e-6 * exact.abs().max(), said
        P.fill_(7.0)
        assert bool((around == 7.0).all()), f"written beside P, {said}"
    assert max(clusters) == 8, "clusters were drawn"
