"""Halves of misaligned rows, with no card: random stacks among poison, behind the C++ compiler."""

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
from tilewise.core.problem import Layout, Problem, problem_of_shape
from tilewise.kernels.mma_gemm.direct_half.model import TILES
from tilewise.kernels.mma_gemm.family import DirectHalf
from tilewise.kernels.mma_gemm.text import render_direct_half
from tilewise.kernels.recipes import recipe_of
from tilewise.planning.choose import make_plan
from tilewise.system.cache import DiskCache

pytestmark = pytest.mark.drawn(2)  # g++ compiles a kernel or two for each, 0.5 to 3 s; on a card all of them run

H200 = KNOWN_CARDS["h200"]
BF16 = np.dtype(ml_dtypes.bfloat16)


def among_poison(rng, stack, rows, cols, dtype, transposed):
    """Small whole numbers in a stack of matrices, NaN before, between and behind their rows; and all of the memory."""
    lines, length = (cols, rows) if transposed else (rows, cols)
    apart, gap, before = length + int(rng.integers(0, 4)), int(rng.integers(0, 5)), int(rng.integers(0, 8))
    step = lines * apart + gap
    memory = np.full(before + stack * step + 8, np.nan, dtype)
    size = dtype.itemsize
    strides = (step * size, size, apart * size) if transposed else (step * size, apart * size, size)
    x = np.ndarray((stack, rows, cols), dtype, memory, before * size, strides)
    x[...] = rng.integers(-3, 4, x.shape).astype(dtype)
    return x, memory


@pytest.mark.drawn(1)
@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.parametrize("dtype", [BF16, np.dtype(np.float16)])
def test_random_stacks_among_poison(tmp_path_factory, dtype):
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    tile = TILES[int(rng.integers(len(TILES)))]
    transposed = [bool(rng.integers(2)) for _ in range(2)]
    for _ in range(sample_size(3)):
        stack, m, k, n = int(rng.integers(1, 4)), *(round(100**x) for x in rng.random(3))
        M, _ = among_poison(rng, stack, m, k, dtype, transposed[0])
        N, _ = among_poison(rng, stack, k, n, dtype, transposed[1])
        P, around = among_poison(rng, stack, m, n, dtype, False)
        before = around.copy()
        kind = dtype_of(dtype)
        layouts = layout_of(M), layout_of(N), layout_of(P)
        problem = Problem(m, k, n, (stack,), kind, kind, tw.semirings["plus_times"], *layouts)
        plan = DirectHalf().pinned(problem, H200, tile)
        case = f"seed {seed}: {problem.shape} {dtype} {tile.spec()} {transposed}"
        run_recipe(recipe_of(plan), folder, M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data)
        wanted = (M.astype(np.float64) @ N.astype(np.float64)).astype(dtype)
        np.testing.assert_array_equal(P, wanted, err_msg=case)
        P[...] = np.ndarray(P.shape, dtype, before, P.ctypes.data - around.ctypes.data, P.strides)
        np.testing.assert_array_equal(around.view(np.uint16), before.view(np.uint16), err_msg=f"{case}: beside P")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_a_sample_compiles(arch, tmp_path):
    text = render_direct_half(dtype_of(BF16), TILES[4], (True, False), True, Epilogue(2.0, dtype_of(BF16), "gelu"))
    assert compile_source(text, arch, DiskCache("cubin", tmp_path))[:4] == b"\x7fELF"


def test_every_thread_of_every_tile_loads_as_much_as_every_other():
    for tile in TILES:
        for side in (tile.rows, tile.cols):
            assert side * 8 % tile.threads == 0
        assert tile.rows * (2 * tile.cols + 16) <= tile.shared_bytes, "sums are staged where phases were"
        assert tile.rows // tile.warps_m % 16 == 0 == tile.cols // tile.warps_n % 16


def test_a_refusal_names_the_reason():
    with pytest.raises(tw.TilewiseError, match="bfloat16 and float16"):
        make_plan(problem_of_shape(40, 40, 40), H200, "direct_half")
    with pytest.raises(tw.TilewiseError, match="plus_times alone"):
        make_plan(problem_of_shape(40, 40, 40, "bfloat16", "min_plus"), H200, "direct_half")
    kind = dtype_of(BF16)
    apart = Problem(9, 9, 9, (), kind, kind, tw.semirings["plus_times"], Layout(40, 2), Layout(9, 1), Layout(9, 1))
    with pytest.raises(tw.TilewiseError, match="takes an M of contiguous rows or columns"):
        make_plan(apart, H200, "direct_half")
