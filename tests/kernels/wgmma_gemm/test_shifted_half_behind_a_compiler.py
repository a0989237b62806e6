"""Halves of misaligned rows by loader warps and warpgroups, with no card: stacks and groups among poison."""

from __future__ import annotations

from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import layout_of, run_recipe
from seeds import next_seed
from tilewise.algebra.dtypes import dtype_of
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Groups, Problem, problem_of_shape
from tilewise.kernels.detours import recipe_of
from tilewise.kernels.wgmma_gemm.family import ShiftedHalf
from tilewise.kernels.wgmma_gemm.shifted_half.model import TILES
from tilewise.planning.choose import make_plan

pytestmark = pytest.mark.drawn(2)  # g++ compiles a kernel or two for each, 0.5 to 3 s; on a card all of them run

H200 = KNOWN_CARDS["h200"]
PLUS_TIMES = tw.semirings["plus_times"]
BF16 = np.dtype(ml_dtypes.bfloat16)
needs_compiler = pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")


def among_poison(rng, stack, rows, cols, dtype, transposed=False):
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


def check(problem, tile, folder, wanted, P, around, case, **places):
    before = around.copy()
    run_recipe(recipe_of(ShiftedHalf().pinned(problem, H200, tile)), folder, P=P.ctypes.data, **places)
    np.testing.assert_array_equal(P, wanted, err_msg=case)
    P[...] = np.ndarray(P.shape, P.dtype, before, P.ctypes.data - around.ctypes.data, P.strides)
    np.testing.assert_array_equal(around.view(np.uint16), before.view(np.uint16), err_msg=f"{case}: beside P")


@needs_compiler
def test_random_stacks_among_poison(tmp_path_factory):
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    dtype = (BF16, np.dtype(np.float16))[int(rng.integers(2))]
    tile, transposed = TILES[int(rng.integers(len(TILES)))], [bool(rng.integers(2)) for _ in range(2)]
    for _ in range(2):
        stack, m, k, n = int(rng.integers(1, 4)), *(round(200**x) for x in rng.random(3))
        M, _ = among_poison(rng, stack, m, k, dtype, transposed[0])
        N, _ = among_poison(rng, stack, k, n, dtype, transposed[1])
        P, around = among_poison(rng, stack, m, n, dtype)
        kind = dtype_of(dtype)
        problem = Problem(m, k, n, (stack,), kind, kind, PLUS_TIMES, *map(layout_of, (M, N, P)))
        wanted = (M.astype(np.float64) @ N.astype(np.float64)).astype(dtype)
        case = f"seed {seed}: {problem.shape} {dtype} {tile.spec()} {transposed}"
        check(problem, tile, folder, wanted, P, around, case, M=M.ctypes.data, N=N.ctypes.data)


@needs_compiler
def test_random_groups_among_poison(tmp_path_factory):
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    tile, kind = TILES[int(rng.integers(len(TILES)))], dtype_of(BF16)
    groups = Groups(int(rng.integers(1, 7)), "rows", bool(rng.integers(2)))
    rows, k, n = (round(250**x) for x in rng.random(3))
    ends = np.sort(rng.integers(0, rows + 1, groups.count)).astype(np.int64 if groups.wide else np.int32)
    (x,), _ = among_poison(rng, 1, rows, k, BF16)
    w, _ = among_poison(rng, groups.count, k, n, BF16, bool(rng.integers(2)))
    (P,), around = among_poison(rng, 1, rows, n, BF16)
    problem = Problem(rows, k, n, (), kind, kind, PLUS_TIMES, *map(layout_of, (x, w, P)), groups=groups)
    wanted = np.zeros((rows, n), BF16)  # rows behind the last group
    for g, (a, b) in enumerate(pairwise([0, *ends])):
        wanted[a:b] = (x[a:b].astype(np.float64) @ w[g].astype(np.float64)).astype(BF16)
    places = {"M": x.ctypes.data, "N": w.ctypes.data, "offsets": ends.ctypes.data}
    check(problem, tile, folder, wanted, P, around, f"seed {seed}: {problem} {tile.spec()} {ends}", **places)


def test_every_tile_has_whole_stages_and_fits():
    for tile in TILES:
        chunks = (tile.rows + tile.cols) // (16 * tile.loaders)
        assert chunks % tile.ahead == 0
        assert tile.shared_bytes * tile.resident <= 227 * 1024
        loading, multiplying = tile.registers
        assert 128 * (tile.loaders * loading + tile.rows // 64 * multiplying) <= 65536


def test_a_refusal_names_the_reason():
    with pytest.raises(tw.TilewiseError, match="bfloat16 and float16"):
        make_plan(problem_of_shape(40, 40, 40), H200, "shifted_half")
    with pytest.raises(tw.TilewiseError, match="plus_times alone"):
        make_plan(problem_of_shape(40, 40, 40, "bfloat16", "min_plus"), H200, "shifted_half")
