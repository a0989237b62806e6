"""Stacks of float32 by `bf16x6` behind a C++ compiler: members together, among poison, by one verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER
from host_card import layout_of, run_recipe
from seeds import next_seed
from tilewise.algebra.dtypes import DTYPES
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Layout, Problem, problem_of_shape
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.wgmma_gemm.bf16x6 import model
from tilewise.kernels.wgmma_gemm.bf16x6.model import SplitConfig, SplitTile
from tilewise.planning.choose import make_plan

pytestmark = [
    pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler"),
    pytest.mark.drawn(2),
]  # g++ compiles a kernel or two for each, 0.5 to 3 s; on a card all of them run
H200 = KNOWN_CARDS["h200"]
CONFIGS = (SplitConfig(SplitTile(64)), SplitConfig(SplitTile(72), 2))


def among_poison(rng, stack, rows, cols, transposed):
    """Whole numbers, NaN between their rows and members; and all of the memory."""
    lines, length = (cols, rows) if transposed else (rows, cols)
    lead, count = length + int(rng.integers(0, 3)), int(np.prod(stack, dtype=int))
    each = lines * lead + int(rng.integers(0, 9))
    memory = np.full(count * each + 16, np.nan, np.float32)
    strides = [4 * each * int(np.prod(stack[i + 1 :], dtype=int)) for i in range(len(stack))]
    x = np.ndarray(
        (*stack, rows, cols), np.float32, memory, 0, (*strides, *((4, 4 * lead) if transposed else (4 * lead, 4)))
    )
    x[...] = rng.integers(-900, 900, x.shape)
    return x, memory


def drawn(rng):
    """M and N of a stack, either of which may be broadcast along any axis, and P with all of its memory."""
    stack = ((), (3,), (2, 3), (5,), (2, 1, 2))[rng.integers(5)]
    m, k, n = (int(x) for x in (rng.integers(1, 150), rng.integers(1, 80), rng.integers(1, 100)))
    operands = []
    for sides in ((m, k), (k, n)):
        own = tuple(1 if rng.random() < 0.25 else extent for extent in stack)
        x, _ = among_poison(rng, own, *sides, bool(rng.integers(2)))
        operands.append(np.broadcast_to(x, (*stack, *sides)))
    return *operands, *among_poison(rng, stack, m, n, rng.random() < 0.3)


def recipe_by(M, N, P, config, accumulate=False):
    one, layouts = DTYPES["float32"], (layout_of(M), layout_of(N), layout_of(P))
    sides = M.shape[-2], M.shape[-1], N.shape[-1]
    problem = Problem(*sides, P.shape[:-2], one, one, tw.semirings["plus_times"], *layouts, accumulate, "high")
    return recipe_of(replace(make_plan(problem, H200, "bf16x6"), config=config, geometry=config.tile.geometry))


def held_against_float64(rng, output, folder):
    M, N, P, around = drawn(rng)
    config, accumulate, before = CONFIGS[rng.integers(2)], bool(rng.integers(2)), around.copy()
    wanted = M.astype(np.float64) @ N.astype(np.float64) + accumulate * P.astype(np.float64)
    output = f"{output}: {M.shape} {M.strides} {N.shape} {N.strides} {P.strides} {config} {accumulate}"
    run_recipe(recipe_by(M, N, P, config, accumulate), folder, M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data)
    np.testing.assert_allclose(P, wanted, rtol=0, atol=abs(wanted).max() * 1e-5, err_msg=output)
    P[...] = np.ndarray(P.shape, np.float32, before, P.ctypes.data - around.ctypes.data, P.strides)
    np.testing.assert_array_equal(around.view(np.uint32), before.view(np.uint32), err_msg=f"{output}: beside P")


def test_a_random_stack_among_poison(tmp_path_factory):
    seed = next_seed() % 2**32
    held_against_float64(np.random.default_rng(seed), f"seed {seed}", tmp_path_factory.getbasetemp())


def test_members_of_a_p_along_columns_are_made_elsewhere(tmp_path_factory):
    """In scratch memory, whose members lie closer than P's: they were stored P's steps apart there."""
    rng = np.random.default_rng(3)
    (M, _), (N, _), (P, _) = (
        among_poison(rng, (3,), *sides, transposed)
        for *sides, transposed in ((50, 20, True), (20, 30, True), (50, 30, True))
    )
    recipe = recipe_by(M, N, P, CONFIGS[0])
    run_recipe(recipe, tmp_path_factory.getbasetemp(), M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data)
    wanted = M.astype(np.float64) @ N.astype(np.float64)
    np.testing.assert_allclose(P, wanted, rtol=0, atol=abs(wanted).max() * 1e-5)


@pytest.mark.slow
def test_many_random_stacks_among_poison(tmp_path_factory):
    seed = next_seed() % 2**32
    rng = np.random.default_rng(seed)
    for _ in range(30):
        held_against_float64(rng, f"seed {seed}", tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("scale", [np.float32(2.0**-110), np.float32(np.inf)], ids=["vanishing", "infinite"])
def test_one_member_that_planes_cannot_hold_is_not_overlooked(tmp_path_factory, scale):
    """Beside members of usual magnitudes: the largest of all members would call it safe."""
    rng = np.random.default_rng(7)
    (M, _), (N, _), (P, _) = (among_poison(rng, (3,), *sides, False) for sides in ((20, 40), (40, 30), (20, 30)))
    M[1] = scale * (1 + rng.random((20, 40), np.float32))
    N[1] = 1 + rng.random((40, 30), np.float32)
    recipe = recipe_by(M, N, P, CONFIGS[0])
    run_recipe(recipe, tmp_path_factory.getbasetemp(), M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data)
    with np.errstate(all="ignore"):
        wanted = M.astype(np.float64) @ N.astype(np.float64)
    np.testing.assert_allclose(P[1], wanted[1], rtol=1e-5, atol=0)
    np.testing.assert_allclose(P[::2], wanted[::2], rtol=0, atol=abs(wanted[::2]).max() * 1e-5)


def stack_of(members, m, k, n, **lying):
    each = {f"layout_{x}": Layout(c, 1, (r * c,)) for x, r, c in (("m", m, k), ("n", k, n), ("p", m, n))}
    return replace(problem_of_shape(m, k, n), stack=(members,), **{**each, **lying})


def test_members_that_lie_evenly_are_one_split_one_product_and_one_fallback():
    steps = recipe_of(make_plan(stack_of(68, 504, 611, 689), H200, "bf16x6")).steps
    assert [step.name for step in steps] == ["split", "bf16x6", "plain"]
    assert steps[0].grid[1] == 68


def test_planes_of_many_members_keep_to_the_limit(monkeypatch):
    p = stack_of(10, 64, 64, 64)
    monkeypatch.setattr(model, "PLANE_LIMIT", 4 * model.plane_bytes(64, 64))
    recipe = recipe_of(make_plan(p, H200, "bf16x6"))
    assert [step.grid[1] for step in recipe.steps if step.name == "split"] == [4, 4, 2]
    assert recipe.scratch_bytes < 9 * model.plane_bytes(64, 64)


def test_stacks_of_middling_members_go_by_it():
    assert make_plan(stack_of(68, 504, 611, 689), H200).kernel == "bf16x6"
    assert make_plan(stack_of(1000, 60, 60, 60), H200).kernel != "bf16x6"


def test_a_fallback_of_many_members_has_few_blocks_and_takes_all_of_them(tmp_path_factory):
    """The launch that leaves at once would take longer than the product, with a block for each tile of each member."""
    seed = next_seed() % 2**32
    rng = np.random.default_rng(seed)
    (M, _), (N, _), (P, _) = (among_poison(rng, (600,), *sides, False) for sides in ((5, 9), (9, 7), (5, 7)))
    M[599, 0, 0] = np.inf
    recipe = recipe_by(M, N, P, CONFIGS[0])
    assert np.prod(recipe.steps[-1].grid) <= 4 * H200.units
    run_recipe(recipe, tmp_path_factory.getbasetemp(), M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(P, M @ N, err_msg=f"seed {seed}")
