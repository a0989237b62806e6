"""Tiles that are read straight, with no card: every tile over random layouts, behind the C++ compiler."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import layout_of, run_recipe
from seeds import next_seed, sample_size
from tilewise.algebra.dtypes import dtype_of
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Problem, problem_of_shape
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.simt_gemm.strips import DIRECT_TILES, Direct, every_config
from tilewise.planning.choose import make_plan

pytestmark = pytest.mark.drawn(3)  # g++ compiles a kernel or two for each, 0.5 to 3 s; on a card all of them run

A100, H200 = KNOWN_CARDS["a100"], KNOWN_CARDS["h200"]
CASES = [("plus_times", "float64"), ("min_plus", "float32"), ("plus_times", "int16"), ("lor_land", "bool")]


def lying(rng, shape, dtype):
    """Numbers in row-major, column-major or wider memory, backwards too; and the memory around them."""
    rows, cols = shape
    around = rng.integers(0, 2 if dtype == "bool" else 9, (rows + 2, cols + 3)).astype(dtype)
    if rng.random() < 0.5:
        around = np.asfortranarray(around)
    x = around[1 : rows + 1, 1 : cols + 1]
    return x[::-1] if rng.random() < 0.2 else x


@pytest.mark.drawn(2)
@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_random_products_by_random_tiles(tmp_path_factory, name, dtype):
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    every = every_config(np.dtype(dtype).itemsize, (1,))
    for number in rng.choice(len(every), 1):
        for _ in range(sample_size(6)):
            m, k, n = (int(x) for x in rng.integers(1, 150, 3))
            M, N, P = (lying(rng, shape, dtype) for shape in ((m, k), (k, n), (m, n)))
            before, onto = P.copy(), bool(rng.random() < 0.3)
            whole = P.base if P.base.flags.owndata else P.base.base
            around = whole.copy()
            kind = dtype_of(M.dtype)
            problem = Problem(
                m, k, n, (), kind, kind, tw.semirings[name], layout_of(M), layout_of(N), layout_of(P), onto, "ieee"
            )
            plan = Direct().pinned(problem, A100, every[number])
            run_recipe(recipe_of(plan), folder, M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data)
            expected = before.copy() if onto else None
            expected = tw.matmul(M, N, semiring=name, out=expected, accumulate=onto)
            np.testing.assert_array_equal(P, expected, err_msg=f"seed {seed}: {m}x{k}x{n} {every[number].spec()}")
            P[...] = before
            np.testing.assert_array_equal(whole, around, err_msg=f"seed {seed}: written beside P")


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_strips_and_sums_fit_a_block_without_an_attribute(size):
    made = every_config(size, (1, 2, 4, 8))
    assert {config.tile[:4] for config in made} == set(DIRECT_TILES), "every tile can be had"
    for config in made:
        assert config.tile.shared_bytes(size, 1) <= 48 * 1024
        assert config.tile.rows * config.tile.deep % config.tile.threads == 0, (
            "every thread loads as much as every other"
        )
        assert config.tile.cols * config.tile.deep % config.tile.threads == 0
        assert config.tile.threads <= 1024


def test_the_blocks_of_a_cluster_cover_k():
    for k in (1, 7, 33, 100, 4097):
        problem = problem_of_shape(9, k, 9)
        for config in Direct().configurations(problem, H200):
            assert config.piece(k) * config.cluster >= k
    assert {config.cluster for config in Direct().configurations(problem_of_shape(9, 4097, 9), A100)} == {1}


def test_what_is_too_large_is_refused():
    with pytest.raises(tw.TilewiseError, match="products of up to 536,870,912 steps"):
        make_plan(problem_of_shape(4096, 4096, 4096), H200, "direct")
