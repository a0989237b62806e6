"""A warp a tile on the card: every tile, team and cluster among poison, the same bits on every call."""

from __future__ import annotations

import math
import random
import time
from itertools import pairwise

import pytest

from seeds import next_seed
from tilewise.core.options import Options
from tilewise.dispatch.bind import bind
from tilewise.dispatch.execute import machine_of
from tilewise.kernels.mma_gemm.family import SlicedK
from tilewise.planning.launchers import launcher_of

torch = pytest.importorskip("torch")

BOUNDS = {"float64": 1e-13, "float32": 3e-6}
SECONDS = 5  # of each test


def matrix(rng, rows, cols, kind):
    """Rows or columns side by side, on 16 bytes or on none, in wider memory that is NaN elsewhere."""
    transposed, wider, off = rng.random() < 0.5, rng.choice((0, 0, 1, 3, 4)), rng.choice((0, 0, 1))
    lines, length = (cols, rows) if transposed else (rows, cols)
    memory = torch.full((lines * (length + wider) + off + 64,), math.nan, device="cuda", dtype=getattr(torch, kind))
    view = memory[off : off + lines * (length + wider)].view(lines, length + wider)[:, :length]
    view.copy_(torch.randn(lines, length, device="cuda", dtype=memory.dtype))
    return view.T if transposed else view


def extents(rng, count, largest):
    sides = [int(math.exp(rng.uniform(0, math.log(largest)))) for _ in range(count)]
    return [max(8, side // 8 * 8) for side in sides] if rng.random() < 0.3 else sides


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_random_products_by_random_configs(kind):
    seed = next_seed() % 2**32
    rng, machine, family = random.Random(seed), machine_of("cuda:0"), SlicedK()
    torch.manual_seed(seed)
    end, clusters, count = time.monotonic() + SECONDS, set(), 0
    while time.monotonic() < end:
        m, n = extents(rng, 2, 900)
        (k,) = extents(rng, 1, 3000)
        M, N = matrix(rng, m, k, kind), matrix(rng, k, n, kind)
        around = torch.full((m + 2, n + 3), 7.0, device="cuda", dtype=M.dtype)
        if rng.random() < 0.5:
            around = torch.full((n + 3, m + 2), 7.0, device="cuda", dtype=M.dtype).T
        P = around[1 : m + 1, 1 : n + 1]
        problem = bind(M, N, Options(out=P, precision="ieee" if kind == "float32" else "high")).problem
        config = rng.choice(family.configurations(problem, machine))
        clusters.add(config.cluster)
        launcher = launcher_of(family.pinned(problem, machine, config), "cuda:0")
        stream = torch.cuda.current_stream().cuda_stream
        launcher(stream, M=M.data_ptr(), N=N.data_ptr(), P=P.data_ptr())
        first, said = P.clone(), f"seed {seed}: {m}x{k}x{n} {config.spec()} {M.stride()} {N.stride()} {P.stride()}"
        exact, sizes = M.double() @ N.double(), M.double().abs() @ N.double().abs()
        assert (P.double() - exact).abs().max() <= BOUNDS[kind] * sizes.max(), said
        P.fill_(7.0)
        assert bool((around == 7.0).all()), f"written beside P, {said}"
        launcher(stream, M=M.data_ptr(), N=N.data_ptr(), P=P.data_ptr())
        assert torch.equal(P, first), f"other bits on the second call, {said}"
        count += 1
    print(f"{count} products of {kind}")
    assert max(clusters) >= 8, "clusters were drawn"


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("captured", [False, True])
def test_products_in_a_chain_wait_for_each_other(kind, captured):
    """Two buffers take turns: what reads before the one before it is done would read what was there before."""
    seed = next_seed() % 2**32
    rng, machine, family, dtype = random.Random(seed), machine_of("cuda:0"), SlicedK(), getattr(torch, kind)
    torch.manual_seed(seed)
    end = time.monotonic() + SECONDS / 2
    while time.monotonic() < end:
        m, *sides = (rng.randint(8, 400) for _ in range(8))
        X = matrix(rng, m, sides[0], kind)
        weights = [matrix(rng, a, b, kind).mul_(a**-0.5) for a, b in pairwise(sides)]
        buffers = [torch.full((m * max(sides),), math.nan, device="cuda", dtype=dtype) for _ in range(2)]
        steps, M = [], X
        for number, W in enumerate(weights):
            P = buffers[number % 2][: m * W.shape[1]].view(m, W.shape[1])
            problem = bind(M, W, Options(out=P, precision="ieee" if kind == "float32" else "high")).problem
            config = rng.choice(family.configurations(problem, machine))
            launcher = launcher_of(family.pinned(problem, machine, config), "cuda:0")
            steps.append((launcher, M.data_ptr(), W.data_ptr(), P.data_ptr()))
            M = P

        def chain(steps=steps):
            stream = torch.cuda.current_stream().cuda_stream
            for launcher, m_at, n_at, p_at in steps:
                launcher(stream, M=m_at, N=n_at, P=p_at)

        chain()
        if captured:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                chain()
            for _ in range(3):
                for buffer in buffers:
                    buffer.fill_(math.nan)
                graph.replay()
        exact = X.double()
        for W in weights:
            exact = exact @ W.double()
        error = ((M.double() - exact).norm() / exact.norm()).item()
        assert error <= 10 * BOUNDS[kind], f"seed {seed}: {m} rows through {sides}: {error:.1e}"
