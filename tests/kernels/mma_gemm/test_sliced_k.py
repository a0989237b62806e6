"""A warp a tile, with no card: every tile and team over random layouts, behind the C++ compiler."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import layout_of, run_recipe
from seeds import next_seed, sample_size
from tilewise.algebra.dtypes import DTYPES, dtype_of
from tilewise.backends.cuda.compile import compile_source
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Layout, Problem, problem_of_shape
from tilewise.errors import UsageError
from tilewise.kernels.mma_gemm.family import SlicedK
from tilewise.kernels.mma_gemm.sliced_k.model import (
    MOST_WARPS,
    TILES,
    groups_of,
    piece,
    read,
    teams_across,
    tiles_of,
)
from tilewise.kernels.mma_gemm.text import render_sliced
from tilewise.kernels.recipes import recipe_of
from tilewise.planning.choose import make_plan

pytestmark = pytest.mark.drawn(3)  # g++ compiles a kernel or two for each, 0.5 to 3 s; on a card all of them run

A100, H200 = KNOWN_CARDS["a100"], KNOWN_CARDS["h200"]


def lying(rng, shape, dtype):
    """Whole numbers in row-major, column-major or wider memory, backwards too; NaN around them."""
    rows, cols = shape
    even = rng.random() < 0.4  # rows that start on 16 bytes
    around = np.full((rows, -(-cols // 4) * 4) if even else (rows + 2, cols + 3), np.nan, dtype)
    if rng.random() < 0.5:
        around = np.full((cols, -(-rows // 4) * 4) if even else (cols + 2, rows + 3), np.nan, dtype).T
    x = around[:rows, :cols] if even else around[1 : rows + 1, 1 : cols + 1]
    x[...] = rng.integers(-4, 5, shape)
    return x[::-1] if rng.random() < 0.2 else x


@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_random_products_by_a_random_tile(tmp_path_factory, dtype):
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    tiles = TILES[np.dtype(dtype).itemsize]
    tile = tiles[rng.integers(len(tiles))]
    for _ in range(sample_size(6)):
        m, k, n = (int(x) for x in rng.integers(1, 150, 3))
        M, N, P = (lying(rng, shape, dtype) for shape in ((m, k), (k, n), (m, n)))
        P[...] = before = rng.integers(-4, 5, P.shape).astype(dtype)
        onto, kind = bool(rng.random() < 0.3), dtype_of(M.dtype)
        whole = P
        while whole.base is not None:
            whole = whole.base
        around = whole.copy()
        layouts = layout_of(M), layout_of(N), layout_of(P)
        problem = Problem(m, k, n, (), kind, kind, tw.semirings["plus_times"], *layouts, onto, "ieee")
        fitting = [config for config in SlicedK().configurations(problem, A100) if config.tile == tile]
        config = fitting[rng.integers(len(fitting))]
        plan = SlicedK().pinned(problem, A100, config)
        run_recipe(recipe_of(plan), folder, M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data)
        case = f"seed {seed}: {m}x{k}x{n} {config.spec()} {M.strides} {N.strides} {P.strides}"
        np.testing.assert_array_equal(P, M @ N + (before if onto else 0), err_msg=case)
        P[...] = before
        np.testing.assert_array_equal(whole, around, err_msg=f"written beside P, {case}")


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("arch", "name"), [("sm_80", "float64"), ("sm_90a", "float32")])
def test_a_tile_compiles(arch, name):
    tile = min(TILES[DTYPES[name].itemsize], key=lambda tile: tile.rows * tile.cols)
    number = min(90, int(arch[3:].rstrip("a")))
    assert compile_source(render_sliced(DTYPES[name], tile, number), arch)[:4] == b"\x7fELF"


@pytest.mark.parametrize("name", ["float64", "float32"])
def test_tiles_and_slices_cover_a_product(name):
    for m, k, n in ((9, 1, 9), (64, 100, 33), (700, 489, 65), (40, 4097, 3000)):
        problem = problem_of_shape(m, k, n, name)
        for config in SlicedK().configurations(problem, H200):
            each, slices = piece(problem, config), config.slices * config.cluster
            assert each * slices >= k
            (down, across), (groups_down, groups_across) = tiles_of(problem, config), groups_of(problem, config)
            wide = teams_across(problem, config)
            assert groups_across * wide >= across
            assert groups_down * (config.warps // config.slices // wide) >= down
            assert config.warps * config.tile.warp_bytes(problem.dtype.itemsize) <= 227 * 1024
            assert config.warps <= MOST_WARPS
    assert {config.cluster for config in SlicedK().configurations(problem_of_shape(9, 4097, 9, name), A100)} == {1}


def test_rows_on_sixteen_bytes_are_read_so():
    problem = problem_of_shape(8, 8, 8, "float64")
    assert [how for how, _ in read(problem)] == [3, 1], "pairs of k, at once where they lie along k"
    odd = replace(problem, layout_m=Layout(9, 1))
    assert [how for how, _ in read(odd)] == [0, 0]
    single = problem_of_shape(8, 8, 8, "float32")
    assert read(single) == ((3, True), (2, False))
    assert read(replace(single, layout_n=Layout(9, 1), layout_m=Layout(1, 8, (), 4))) == ((0, False), (0, False))


def test_what_it_does_not_multiply_is_refused():
    for problem in (
        problem_of_shape(9, 9, 9, "float64", semiring="min_plus"),
        problem_of_shape(9, 9, 9, "int32"),
        replace(problem_of_shape(9, 9, 9, "float64"), layout_m=Layout(2**28, 1)),
    ):
        with pytest.raises(UsageError, match="sliced_k"):
            make_plan(problem, H200, "sliced_k")


def test_small_odd_products_of_float64_run_on_tensor_cores_in_one_launch():
    plan = make_plan(problem_of_shape(119, 91, 245, "float64"), H200)
    assert plan.kernel == "sliced_k"
    (launch,) = recipe_of(plan).steps
    assert launch.overlap
    assert launch.cluster == plan.config.cluster
