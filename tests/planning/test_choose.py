"""Plans: the reduction by TILE_WIDTH that the notes promise, the launch's arithmetic, and what is refused."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tilewise as tw
from operands import CARD_DTYPES, SEMIRINGS, works
from seeds import next_seed
from tilewise.algebra.dtypes import dtype_named
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import parse_shape, problem_of_shape
from tilewise.kernels.ladder.model import LADDER
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.registry import BY_KERNEL, REPLACED
from tilewise.planning.choose import make_plan

H200 = KNOWN_CARDS["h200"]


@pytest.mark.parametrize("tile", [2, 4, 8, 16, 32])
def test_tiles_cut_the_loads_by_their_width(tile):
    plan = make_plan(problem_of_shape(64, 64, 64), H200, "tiled_edges", tile)
    assert plan.loads_without_tiles == 2 * 64**3
    assert plan.reuse == tile


def test_the_courses_example():
    plan = make_plan(problem_of_shape(4, 4, 4), H200, "tiled", 2)
    assert (plan.grid, plan.phases, plan.loads_without_tiles, plan.loads_with_tiles) == ((2, 2), 2, 128, 64)


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 300), st.sampled_from(list(LADDER)), st.integers(1, 16))
def test_the_grid_covers_P_and_no_more(m, k, n, kernel, tile):
    if LADDER[kernel].whole_tiles_only:
        m, k, n = (x * tile for x in (m, k, n))
    plan = make_plan(problem_of_shape(m, k, n), H200, kernel, tile)
    g = plan.geometry
    for blocks, size, extent in ((plan.grid[0], g.rows, m), (plan.grid[1], g.cols, n), (plan.phases, g.depth, k)):
        assert blocks * size >= extent
        assert (blocks - 1) * size < max(extent, 1)


EXTENTS = st.sampled_from([0, 1, 2, 15, 16, 57, 300, 4097, 70_000])


@given(
    st.tuples(EXTENTS, EXTENTS, EXTENTS),
    st.sampled_from(SEMIRINGS),
    st.sampled_from(CARD_DTYPES),
    st.sampled_from(list(KNOWN_CARDS)),
    st.booleans(),
)
def test_every_product_has_a_plan_on_every_card(shape, semiring, dtype, card, accumulate):
    assume(works(semiring, dtype))
    problem = problem_of_shape(*shape, dtype, semiring, accumulate=accumulate)
    assert make_plan(problem, KNOWN_CARDS[card]).predicted >= 0


def test_an_empty_product_of_two_dtypes_has_a_plan():
    """k is long enough to come in pieces, but there is no tile to cut it for."""
    problem = problem_of_shape(0, 57, 0, "int64")
    assert make_plan(replace(problem, dtype_m=dtype_named("bool")), H200).predicted >= 0


@pytest.mark.parametrize("name", KNOWN_CARDS)
def test_a_block_fits_every_card(name):
    for kernel, rung in LADDER.items():
        for dtype in ("int8", "float32", "float64", "complex128"):
            plan = make_plan(problem_of_shape(64, 64, 64, dtype), KNOWN_CARDS[name], kernel, min(16, rung.max_tile))
            assert plan.geometry.shared_bytes <= 48 * 1024
            assert plan.threads <= 1024


def test_indices_widen_only_when_they_must():
    assert make_plan(problem_of_shape(40_000, 40_000, 16), H200, "tiled_edges").index == "int"
    assert make_plan(problem_of_shape(50_000, 50_000, 16), H200, "tiled_edges").index == "long long"


def test_tiled_refuses_what_is_not_made_of_whole_tiles():
    with pytest.raises(tw.ShapeError, match="17x16x16 is not made of whole tiles of 16: use kernel='tiled_edges'"):
        make_plan(problem_of_shape(17, 16, 16), H200, "tiled", 16)


def test_register_tiled_refuses_a_wide_tile():
    with pytest.raises(tw.UsageError, match="tile=32 must be from 1 to 16 for register_tiled"):
        make_plan(problem_of_shape(64, 64, 64), H200, "register_tiled", 32)


@pytest.mark.parametrize("gone", REPLACED)
def test_a_kernel_that_is_no_more_names_kernels_that_are(gone):
    with pytest.raises(tw.UsageError, match=f"kernel='{gone}' was replaced: kernel='") as refusal:
        make_plan(problem_of_shape(9, 9, 9), H200, gone)
    named = re.findall(r"kernel='(\w+)'", str(refusal.value))[1:]
    assert named
    assert set(named) <= BY_KERNEL.keys()


def test_the_choice_follows_the_size_and_the_shape():
    for side in (8, 100):  # the ladder is for learning
        assert make_plan(problem_of_shape(side, side, side), H200).kernel in ("cells", "direct", "buffered")
    assert make_plan(problem_of_shape(4097, 4097, 4097), H200).kernel == "bf16x6"
    assert make_plan(problem_of_shape(4097, 4097, 4097, precision="ieee"), H200).kernel == "plain"
    assert make_plan(problem_of_shape(4097, 4097, 4097), H200, None, 16).kernel == "register_tiled"
    assert make_plan(problem_of_shape(1, 8192, 8192), H200).kernel == "few_rows"
    sixteen = make_plan(problem_of_shape(16, 8192, 8192), H200)
    assert (sixteen.kernel, sixteen.geometry.rows) == ("plain", 16)


def test_json_is_stable():
    document = json.loads(json.dumps(make_plan(problem_of_shape(3, 3, 3), H200, "tiled_edges", 2).to_json()))
    assert document["version"] == 1
    assert document["grid"] == [2, 2]
    assert document["phases"] == 2
    assert set(document) >= {
        "problem",
        "kernel",
        "tile",
        "block",
        "shared_bytes",
        "floor_seconds",
        "why",
        "loads_with_tiles",
    }


def test_a_plan_for_arrays_on_the_host_names_what_runs_there():
    import numpy as np

    plan = tw.plan(np.ones((3, 4)), np.ones((4, 5)))
    assert plan.engine == "cpu"
    assert tw.plan(np.ones((3, 4)), np.ones((4, 5)), kernel="reference").engine == "reference"
    assert "\n" not in repr(plan)


@pytest.mark.parametrize("text", ["3x3", "3x3x", "axbxc", "3x3x3x3", "-1x2x3", ""])
def test_a_shape_that_is_none(text):
    with pytest.raises(tw.ShapeError, match="must be MxKxN"):
        parse_shape(text)


def test_a_shape_with_either_cross():
    assert parse_shape("10×20x30") == (10, 20, 30)


@pytest.mark.parametrize("semiring", SEMIRINGS)
def test_every_dtype_has_a_plan_on_a_card(semiring):
    """Small, thin and large, at random: no model leaves a dtype out."""
    rng = random.Random(seed := next_seed() % 2**32)
    for dtype in filter(lambda dtype: works(semiring, dtype), CARD_DTYPES):
        for largest in (1, 9, 90, 900):  # nothing at all, too
            m, k, n = (rng.randint(0, largest) for _ in range(3))
            print(f"seed {seed}: {m}x{k}x{n} {dtype}")
            assert make_plan(problem_of_shape(m, k, n, dtype, semiring), H200).predicted >= 0


@pytest.mark.parametrize("dtype", ["longdouble", "clongdouble"])
def test_a_card_has_no_long_double_of_the_host(dtype):
    with pytest.raises(tw.DtypeError, match="convert to float64"):
        make_plan(problem_of_shape(5, 6, 7, dtype), H200)


@pytest.mark.parametrize("dtype", ["complex128", "float32", "int64"])
def test_return_arg_needs_a_semiring_that_picks_a_k(dtype):
    problem = replace(problem_of_shape(4, 5, 6, dtype), return_arg=True)
    with pytest.raises(tw.UsageError, match="plus_times picks none"):
        make_plan(problem, H200)


@pytest.mark.parametrize("shape", [(0, 3, 3), (3, 0, 3), (3, 3, 0)])
def test_every_kernel_of_a_card_plans_an_empty_product_or_refuses_it(shape):
    planned = 0
    for kernel in BY_KERNEL:
        for dtype in ("float32", "bfloat16"):
            try:
                recipe_of(make_plan(problem_of_shape(*shape, dtype), H200, kernel))
                planned += 1
            except tw.TilewiseError:
                continue
    assert planned > 10
