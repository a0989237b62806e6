"""Few rows or columns of misaligned halves, with no card: random products among poison."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import layout_of, run_recipe
from seeds import next_seed, sample_size
from tilewise.algebra.dtypes import dtype_of
from tilewise.backends.cuda.compile import compile_source
from tilewise.core.epilogue import Epilogue
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Problem
from tilewise.kernels.mma_gemm.family import HalfDots
from tilewise.kernels.mma_gemm.half_dots.model import WIDTHS
from tilewise.kernels.mma_gemm.text import render_half_dots
from tilewise.kernels.recipes import recipe_of
from tilewise.system.cache import DiskCache

H200 = KNOWN_CARDS["h200"]
BF16 = np.dtype(ml_dtypes.bfloat16)


def among_poison(rng, rows, cols, dtype, transposed):
    """Small whole numbers, NaN before, between and behind their rows; and all of the memory."""
    lines, length = (cols, rows) if transposed else (rows, cols)
    apart, before = length + int(rng.integers(0, 4)), int(rng.integers(0, 8))
    if rng.random() < 0.3:
        apart, before = -(-apart // 8) * 8, before // 4 * 4
    memory = np.full(before + lines * apart + 8, np.nan, dtype)
    strides = (dtype.itemsize, apart * dtype.itemsize) if transposed else (apart * dtype.itemsize, dtype.itemsize)
    x = np.ndarray((rows, cols), dtype, memory, before * dtype.itemsize, strides)
    x[...] = rng.integers(-3, 4, x.shape).astype(dtype)
    return x, memory


def drawn(rng, dtype, width, accumulate):
    """A product whose long operand is contiguous along k, and all of the memory around P; some have an infinity."""
    few, k = int(rng.integers(width // 2 + 1, width + 1)), 2 + round(600 ** rng.random())
    length, swapped = 2 + round(300 ** rng.random()), bool(rng.integers(2))
    m, n = (length, few) if swapped else (few, length)
    M, _ = among_poison(rng, m, k, dtype, not swapped and bool(rng.integers(2)))
    N, _ = among_poison(rng, k, n, dtype, not swapped or bool(rng.integers(2)))
    P, around = among_poison(rng, m, n, dtype, bool(rng.integers(2)))
    if rng.random() < 0.2:
        (M, N)[int(rng.integers(2))][0, 0] = np.inf
    kind, layouts = dtype_of(dtype), (layout_of(M), layout_of(N), layout_of(P))
    return Problem(m, k, n, (), kind, kind, tw.semirings["plus_times"], *layouts, accumulate), M, N, P, around


@pytest.mark.drawn(1)
@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.parametrize("dtype", [BF16, np.dtype(np.float16)])
def test_random_products_among_poison(tmp_path_factory, dtype):
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    accumulate, width = bool(rng.integers(2)), WIDTHS[int(rng.integers(len(WIDTHS)))]
    for _ in range(sample_size(8)):
        problem, M, N, P, around = drawn(rng, dtype, width, accumulate)
        choice = [
            config
            for config in HalfDots().configurations(problem, H200)
            if config.cluster == 1 and config.width == width
        ]
        if not choice:
            continue  # fewer lines than this width is for
        config, before = choice[int(rng.integers(len(choice)))], around.copy()
        case = f"seed {seed}: {problem.shape} {dtype} {config} {problem}"
        with np.errstate(invalid="ignore"):
            wanted = (M.astype(np.float64) @ N.astype(np.float64) + accumulate * P.astype(np.float64)).astype(dtype)
        plan = HalfDots().pinned(problem, H200, config)
        run_recipe(recipe_of(plan), folder, M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data)
        np.testing.assert_array_equal(P.astype(np.float64), wanted.astype(np.float64), err_msg=case)
        P[...] = np.ndarray(P.shape, dtype, before, P.ctypes.data - around.ctypes.data, P.strides)
        np.testing.assert_array_equal(around.view(np.uint16), before.view(np.uint16), err_msg=f"{case}: beside P")


def test_a_sample_compiles(tmp_path):
    text = render_half_dots(dtype_of(BF16), WIDTHS[0], True, Epilogue(2.0, dtype_of(BF16), "gelu"))
    assert compile_source(text, "sm_90a", DiskCache("cubin", tmp_path))[:4] == b"\x7fELF"
