"""Structured values on the card: right, and at their own issue limit."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed
from structured_values import NAMES, RINGS, algebra_of, assert_same, drawn, expected
from tilewise.backends.cuda.device import describe
from tilewise.backends.cuda.launcher import Launcher
from tilewise.core.recipe import Address, Launch, Recipe
from tilewise.kernels.simt_gemm.tiled.structured import render_limit, structured_plan

cupy = pytest.importorskip("cupy")


@pytest.mark.parametrize(("ring", "dtypes"), RINGS, ids=NAMES)
def test_products_are_right(ring, dtypes):
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    for m, k, n in ((1, 1, 1), (37, 21, 45), (300, 129, 257)):
        M, N = drawn(rng, ring, dtypes, (m, k)), drawn(rng, ring, dtypes, (k, n))
        made = tw.matmul(tuple(map(cupy.asarray, M)), tuple(map(cupy.asarray, N)), semiring=ring)
        assert_same([x.get() for x in made], expected(ring, dtypes, M, N))


def seconds(work, times=6):
    best = float("inf")
    for _ in range(times):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        work()
        end.record()
        end.synchronize()
        best = min(best, cupy.cuda.get_elapsed_time(begin, end) / 1e3)
    return best


def limit(algebra):
    """Steps a second of the step alone, on registers, over the sizes of its register tile."""
    machine, rounds, found = describe("cuda:0"), 2000, 0.0
    for rows, cols in ((4, 4), (4, 2), (8, 4)):
        source = render_limit(algebra, rows, cols)
        out = cupy.zeros(machine.units * 8 * 256 * 4, np.float64)
        words = cupy.zeros(1 << 12, np.float64)
        values = (Address("M"), Address("P"), ctypes.c_int(rounds), ctypes.c_int(-1))
        blocks = machine.units * 8
        launcher = Launcher(Recipe((Launch.of(source, "limit", (blocks,), (256,), values),)), "cuda:0")

        def work(launcher=launcher, words=words, out=out):
            launcher(cupy.cuda.get_current_stream().ptr, M=words.data.ptr, P=out.data.ptr)

        work()
        steps = blocks * 256 * rounds * 4 * rows * cols
        found = max(found, steps / seconds(work))
    return found


@pytest.mark.parametrize(("ring", "dtypes"), [RINGS[1], RINGS[3]], ids=[NAMES[1], NAMES[3]])
def test_at_its_own_issue_limit(ring, dtypes):
    size, rng = 4096, np.random.default_rng(0)
    M, N = (tuple(map(cupy.asarray, drawn(rng, ring, dtypes, (size, size)))) for _ in range(2))
    tw.matmul(M, N, semiring=ring)
    whole = size**3 / seconds(lambda: tw.matmul(M, N, semiring=ring))
    algebra = algebra_of(ring, dtypes)
    most = limit(algebra)
    planned = structured_plan(algebra, describe("cuda:0"), size, size, size).limit
    print(f"{ring}: {whole / 1e12:.3f} T steps/s, limit {most / 1e12:.3f} measured, {planned / 1e12:.3f} planned, "
          f"share {whole / most:.2f} of measured, {whole / planned:.2f} of planned")  # fmt: skip
    assert whole >= 0.7 * min(most, planned)
