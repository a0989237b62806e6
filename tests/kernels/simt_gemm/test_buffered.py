"""Double-buffered strips, with no card: every tile over random layouts, behind the C++ compiler."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import layout_of, run_recipe
from seeds import next_seed, sample_size
from tilewise.algebra.dtypes import dtype_of
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Problem, problem_of_shape, row_major
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.simt_gemm.strips import BUFFERED_TILES, Buffered, StripConfig, across, along, lead_of
from tilewise.planning.choose import make_plan

A100, H200 = KNOWN_CARDS["a100"], KNOWN_CARDS["h200"]


def lying(rng, members, shape, dtype, transposed):
    """A stack of matrices in row-major or column-major memory with poison around every line of every member."""
    rows, cols = shape
    around = np.full((members, rows + 2, cols + 3), 1e9 if dtype == "float32" else 2**30, dtype)
    if transposed:
        around = np.full((members, cols + 3, rows + 2), around.flat[0], dtype).transpose(0, 2, 1)
    x = around[:, 1 : rows + 1, 1 : cols + 1]
    x[...] = rng.integers(-4, 5, x.shape)
    return x[:, ::-1] if rng.random() < 0.2 and abs(x.strides[1]) > abs(x.strides[2]) else x


@pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler")
@pytest.mark.drawn(1)
@pytest.mark.parametrize(("name", "dtype"), [("plus_times", "float32"), ("min_plus", "int32")])
def test_random_stacks_by_a_random_tile(tmp_path_factory, name, dtype):
    seed, folder = next_seed() % 2**32, tmp_path_factory.getbasetemp()
    rng = np.random.default_rng(seed)
    tile, onto = BUFFERED_TILES[int(rng.integers(len(BUFFERED_TILES)))], bool(rng.random() < 0.3)
    transposed = [*map(bool, rng.random(2) < 0.5), False]  # one text for all of them
    for _ in range(sample_size(4)):
        m, k, n = (int(x) for x in rng.integers(1, 150, 3))
        M, N, P = (lying(rng, 2, *x) for x in zip(((m, k), (k, n), (m, n)), [dtype] * 3, transposed, strict=True))
        before = P.copy()
        whole = P.base if P.base is not None else P
        around, kind = whole.copy(), dtype_of(M.dtype)
        layouts = layout_of(M), layout_of(N), layout_of(P)
        problem = Problem(m, k, n, (2,), kind, kind, tw.semirings[name], *layouts, onto, "ieee")
        plan = Buffered().pinned(problem, A100, StripConfig(tile, 1))
        run_recipe(recipe_of(plan), folder, M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data)
        expected = tw.matmul(M, N, semiring=name, out=before.copy() if onto else None, accumulate=onto)
        np.testing.assert_array_equal(P, expected, err_msg=f"seed {seed}: {m}x{k}x{n} {tile}")
        P[...] = before
        np.testing.assert_array_equal(whole, around, err_msg=f"seed {seed}: written beside P")


def test_the_blocks_of_a_cluster_cover_k():
    for k in (1, 7, 33, 100, 4097):
        problem = problem_of_shape(9, k, 9)
        for config in Buffered().configurations(problem, H200):
            assert config.piece(k) * config.cluster >= k
    assert {config.cluster for config in Buffered().configurations(problem_of_shape(9, 4097, 9), A100)} == {1}


def test_neighbours_are_found_along_k_or_across_it():
    assert lead_of(7, 1, 5, 7) == (True, 7)
    assert lead_of(1, 5, 5, 7) == (False, 5)
    assert not along(14, 2, 5, 7)
    assert not across(14, 2, 5, 7)


def test_what_it_does_not_take_is_refused():
    with pytest.raises(tw.TilewiseError, match="products of up to 2,147,483,648 steps"):
        make_plan(problem_of_shape(4096, 4096, 4096), H200, "buffered")
    with pytest.raises(tw.TilewiseError, match="4 bytes"):
        make_plan(problem_of_shape(64, 64, 64, "float64"), H200, "buffered")


@pytest.mark.parametrize(("members", "side", "by_plain"), [(8, 1000, True), (27, 257, False)])
def test_larger_members_of_another_semiring_go_by_plain(members, side, by_plain):
    """On an H200 8 x 1000³ of min_plus has 12.3 T steps/s by plain and 10.4 by buffered; 27 x 257³ 4.3 and 6.0."""
    one, lies = problem_of_shape(side, side, side, "float32", "min_plus"), row_major(side, side, (members,))
    stack = replace(one, stack=(members,), layout_m=lies, layout_n=lies, layout_p=lies)
    assert (make_plan(stack, H200).kernel == "plain") == by_plain
