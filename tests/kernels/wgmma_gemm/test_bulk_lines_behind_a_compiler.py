"""Stacks of misaligned rows, copied in bulk, with no card: among poison, behind the C++ compiler."""

from __future__ import annotations

from multiprocessing import get_context

import ml_dtypes
import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import layout_of, run_recipe
from seeds import next_seed, sample_size
from tilewise.algebra.dtypes import dtype_of
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Problem
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.wgmma_gemm.bulk_lines.model import TILES
from tilewise.kernels.wgmma_gemm.family import BulkLines

H200 = KNOWN_CARDS["h200"]
BF16, F16, F32 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16), np.dtype(np.float32)


def among_poison(rng, stack, rows, cols, dtype, transposed, gaps):
    """Small whole numbers in a stack of matrices, NaN around their rows; and all of the memory."""
    lines, length = (cols, rows) if transposed else (rows, cols)
    apart, gap, before = (int(rng.integers(0, most)) * gaps for most in (4, 5, 8))
    apart += length
    step, size = lines * apart + gap, dtype.itemsize
    memory = np.full(before + stack * step + 8, np.nan, dtype)
    strides = (step * size, size, apart * size) if transposed else (step * size, apart * size, size)
    x = np.ndarray((stack, rows, cols), dtype, memory, before * size, strides)
    x[...] = rng.integers(-3, 4, x.shape).astype(dtype)
    return x, memory


def reach(x):
    """Where a matrix's first byte is, and where its last one ends."""
    return np.lib.array_utils.byte_bounds(x)


def check(rng, folder, dtype, precision, transposed, stack, m, k, n, gaps, output, kept=lambda config: True):
    M, _ = among_poison(rng, stack, m, k, dtype, transposed[0], gaps)
    N, _ = among_poison(rng, stack, k, n, dtype, transposed[1], gaps)
    P, around = among_poison(rng, stack, m, n, dtype, False, gaps)
    before, kind = around.copy(), dtype_of(dtype)
    layouts = layout_of(M), layout_of(N), layout_of(P)
    problem = Problem(m, k, n, (stack,), kind, kind, tw.semirings["plus_times"], *layouts, precision=precision)
    every = BulkLines().configurations(problem, H200)
    able = [config for config in every if kept(config)] or every
    config = able[int(rng.integers(len(able)))]
    output = f"{output}: {stack} of {problem.shape} {dtype} {config.spec()} {transposed} {layouts}"
    recipe = recipe_of(BulkLines().pinned(problem, H200, config))
    run_recipe(recipe, folder, (reach(M), reach(N)), M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data)
    wanted = (M.astype(np.float64) @ N.astype(np.float64)).astype(dtype)
    np.testing.assert_array_equal(P, wanted, err_msg=output)
    P[...] = np.ndarray(P.shape, dtype, before, P.ctypes.data - around.ctypes.data, P.strides)
    np.testing.assert_array_equal(around.view(np.uint8), before.view(np.uint8), err_msg=f"{output}: beside P")


KINDS = [(BF16, "high"), (F16, "high"), (F32, "tf32")]


@pytest.mark.drawn(1)
@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.parametrize(("dtype", "precision"), KINDS)
def test_random_stacks_among_poison(tmp_path_factory, dtype, precision):
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    transposed = [bool(rng.integers(2)) for _ in range(2)]
    for case in range(sample_size(3)):
        stack, m, k, n = int(rng.integers(1, 5)), *(round(120**x) for x in rng.random(3))
        check(rng, folder, dtype, precision, transposed, stack, m, k, n, case % 2, f"seed {seed}")


@pytest.mark.drawn(1)
@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.parametrize(("dtype", "precision"), KINDS)
def test_k_cut_over_the_blocks_of_a_cluster(tmp_path_factory, dtype, precision):
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    transposed = [bool(rng.integers(2)) for _ in range(2)]
    for case in range(sample_size(2)):
        stack, m, n, k = int(rng.integers(1, 4)), *map(int, rng.integers(1, 70, 2)), int(rng.integers(128, 800))
        cut = lambda config: config.cluster > 1 and config.tile in TILES[-2:]  # noqa: E731 - two texts to build
        check(rng, folder, dtype, precision, transposed, stack, m, k, n, case % 2, f"seed {seed}", kept=cut)


def _beside_operands(seed, folder, dtype, precision):
    rng = np.random.default_rng(seed)
    transposed = [bool(rng.integers(2)) for _ in range(2)]
    for case in range(12):
        stack, m, k, n = int(rng.integers(1, 4)), *map(int, rng.integers(1, 60, 3))
        smallest = lambda config: config.tile == TILES[-1]  # noqa: E731 - one text to build
        check(rng, folder, dtype, precision, transposed, stack, m, k, n, case % 2, f"seed {seed}", kept=smallest)


@pytest.mark.drawn(1)
@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.parametrize(("dtype", "precision"), KINDS)
def test_no_copy_reaches_beside_an_operand(tmp_path_factory, dtype, precision):
    """A copy of 16 bytes, of which one is not the operand's, would end the process; its page would be the same one."""
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    child = get_context("fork").Process(target=_beside_operands, args=(seed, folder, dtype, precision))
    child.start()
    child.join(240)
    assert child.exitcode == 0, f"seed {seed}: ended with {child.exitcode}"
