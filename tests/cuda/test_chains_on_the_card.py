"""Small products on the card in a chain that each start early."""

from __future__ import annotations

import math
import random
import time
from itertools import pairwise

import pytest

import tilewise as tw
from seeds import next_seed
from tilewise.kernels.recipes import recipe_of

torch = pytest.importorskip("torch")

BOUNDS = {"float64": 1e-13, "tf32": 2e-3, "float32": 3e-6, "bfloat16": 5e-2}
SECONDS = 5  # of each test


def dtype_of(kind):
    return torch.float32 if kind == "tf32" else getattr(torch, kind)


def precision_of(kind):
    return "tf32" if kind == "tf32" else "high"


def matrix(rng, rows, cols, kind, size=1.0):
    """Rows or columns side by side, some of them in wider memory that is NaN elsewhere."""
    transposed, wider = rng.random() < 0.5, rng.choice((0, 0, 1, 3))
    lines, length = (cols, rows) if transposed else (rows, cols)
    memory = torch.full((lines, length + wider), math.nan, device="cuda", dtype=dtype_of(kind))
    memory[:, :length] = torch.randn(lines, length, device="cuda") * size
    view = memory[:, :length]
    return view.T if transposed else view


def extents(rng, count, largest, least=1):
    sides = [int(math.exp(rng.uniform(math.log(least), math.log(largest)))) for _ in range(count)]
    return [max(8, side // 8 * 8) for side in sides] if rng.random() < 0.3 else sides


@pytest.mark.parametrize("kind", ["float64", "tf32", "float32", "bfloat16"])
@pytest.mark.parametrize("captured", [False, True])
def test_products_in_a_chain_wait_for_each_other(kind, captured):
    """Two buffers take turns: what starts before the one before it is done would read or write too soon."""
    seed = next_seed() % 2**32
    rng = random.Random(seed)
    torch.manual_seed(seed)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        (m,) = extents(rng, 1, 1000)
        sides = extents(rng, 7, 1200, least=8)  # a row through a side of 1 is one number, which may cancel
        weights = [matrix(rng, a, b, kind, a**-0.5) for a, b in pairwise(sides)]
        buffers = [torch.full((m * max(sides),), math.nan, device="cuda", dtype=dtype_of(kind)) for _ in range(2)]
        X = matrix(rng, m, sides[0], kind)

        def chain(m=m, X=X, weights=weights, buffers=buffers):
            for number, W in enumerate(weights):
                P = buffers[number % 2][: m * W.shape[1]].view(m, W.shape[1])
                tw.matmul(X, W, out=P, precision=precision_of(kind))
                X = P
            return X

        exact = X.double()
        for W in weights:
            exact = exact @ W.double()
        made = chain()
        if captured:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                made = chain()
            for buffer in buffers:
                buffer.fill_(math.nan)
            graph.replay()
            graph.replay()
        error = ((made.double() - exact).norm() / exact.norm()).item()
        assert error <= 10 * BOUNDS[kind], f"seed {seed}: {m} rows through {sides}: {error:.1e}"


def test_a_first_launch_overlaps_on_this_card():
    M = torch.randn(33, 65, device="cuda", dtype=torch.float64)
    (launch,) = recipe_of(tw.plan(M, M.T)).steps
    assert launch.overlap
