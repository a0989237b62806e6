"""Small products on tensor cores with no card: every tile over random layouts, behind the C++ compiler."""

from __future__ import annotations

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
from tilewise.kernels.detours import recipe_of
from tilewise.kernels.mma_gemm.family import MmaSmall
from tilewise.kernels.mma_gemm.mma_small.model import (
    ACROSS,
    ALONG,
    CLUSTERS,
    TILES,
    UNIT_SHARED,
    VECTORS,
    SmallConfig,
    copied,
    piece,
)
from tilewise.kernels.mma_gemm.text import render_small
from tilewise.planning.choose import make_plan

pytestmark = pytest.mark.drawn(3)  # g++ compiles a kernel or two for each, 0.5 to 3 s; on a card all of them run

A100, H200 = KNOWN_CARDS["a100"], KNOWN_CARDS["h200"]


def lying(rng, shape, dtype):
    """Whole numbers in row-major, column-major or wider memory, backwards too; and the memory around them."""
    rows, cols = shape
    around = rng.integers(-4, 5, (rows + 2, cols + 3)).astype(dtype)
    if rng.random() < 0.3:  # rows that start on 16 bytes
        around = rng.integers(-4, 5, (rows, -(-cols // 4) * 4)).astype(dtype)
        return around[:, :cols]
    if rng.random() < 0.5:
        around = np.asfortranarray(around)
    x = around[1 : rows + 1, 1 : cols + 1]
    return x[::-1] if rng.random() < 0.2 else x


@pytest.mark.drawn(1)
@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.parametrize(("dtype", "precision"), [("float64", "high"), ("float32", "tf32")])
def test_random_products_by_a_random_tile(tmp_path_factory, dtype, precision):
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    family, config = MmaSmall(), SmallConfig(TILES[rng.integers(len(TILES))], 1)
    for _ in range(sample_size(5)):
        m, k, n = (int(x) for x in rng.integers(1, 150, 3))
        M, N, P = (lying(rng, shape, dtype) for shape in ((m, k), (k, n), (m, n)))
        before, onto = P.copy(), bool(rng.random() < 0.3)
        whole = P.base if P.base is not None and P.base.flags.owndata else P if P.base is None else P.base.base
        around, kind = whole.copy(), dtype_of(M.dtype)
        problem = Problem(
            m,
            k,
            n,
            (),
            kind,
            kind,
            tw.semirings["plus_times"],
            layout_of(M),
            layout_of(N),
            layout_of(P),
            onto,
            precision,
        )
        run_recipe(
            recipe_of(family.pinned(problem, A100, config)),
            folder, M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data,
        )  # fmt: skip
        expected = M @ N + (before if onto else 0)
        np.testing.assert_array_equal(P, expected, err_msg=f"seed {seed}: {m}x{k}x{n} {config.words()} {M.strides}")
        P[...] = before
        np.testing.assert_array_equal(whole, around, err_msg=f"seed {seed}: written beside P")


@pytest.mark.parametrize("name", ["float64", "float32"])
def test_every_tile_is_copied_evenly_and_fits(name):
    size = DTYPES[name].itemsize
    for tile in TILES:
        assert tile.depth(size) % 16 == 0, "fragments lie in different banks"
        assert (tile.shared_bytes(size) + 1024) * tile.resident <= UNIT_SHARED
        assert tile.shared_bytes(size, max(CLUSTERS)) <= 227 * 1024
        for lines in (tile.rows, tile.cols):
            for each in (1, 16 // size):
                assert lines * tile.depth(size) % (each * tile.threads) == 0
                assert tile.threads * each <= lines * tile.depth(size)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("arch", "name"), [("sm_90a", "float64"), ("sm_80", "float64"), ("sm_120", "float32")])
def test_a_tile_compiles(arch, name):
    number = min(90, int(arch[3:].rstrip("a")))
    assert compile_source(render_small(DTYPES[name], TILES[0], number), arch)[:4] == b"\x7fELF"


def test_the_blocks_of_a_cluster_cover_k_and_all_have_some():
    for k in (1, 7, 33, 100, 489, 4097):
        problem = problem_of_shape(9, k, 9, "float64")
        for config in MmaSmall().configurations(problem, H200):
            each = piece(problem, config)
            assert each * config.cluster >= k > each * (config.cluster - 1)
    assert {config.cluster for config in MmaSmall().configurations(problem_of_shape(9, 4097, 9, "float64"), A100)} == {
        1
    }


def test_rows_of_sixteen_bytes_are_copied_so():
    assert copied(Layout(8, 1), 1, 8, 8) == VECTORS
    assert copied(Layout(9, 1), 1, 9, 8) == ALONG
    assert copied(Layout(8, 1, (), 8), 1, 8, 8) == ALONG, "a base on 8 bytes"
    assert copied(Layout(1, 8), 8, 1, 8) == ACROSS
    assert copied(Layout(8, -1), -1, 8, 8) == ALONG


def test_small_odd_products_of_float64_are_one_launch_that_starts_early():
    plan = make_plan(problem_of_shape(119, 91, 245, "float64"), H200, "mma_small")
    (launch,) = recipe_of(plan).steps
    assert launch.overlap
    assert launch.cluster == plan.config.cluster


def test_what_it_does_not_multiply_is_refused():
    for problem in (problem_of_shape(9, 9, 9), problem_of_shape(9, 9, 9, "float64", semiring="min_plus")):
        with pytest.raises(UsageError, match="mma_small"):
            make_plan(problem, H200, "mma_small")
