"""Groups of rows with no card: the walk over them, and products behind the C++ compiler, among poison."""

from __future__ import annotations

import ctypes
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

import tilewise as tw
from behind_a_compiler import COMPILER, built
from host_card import layout_of, run_recipe
from seeds import next_seed, sample_size
from tilewise.algebra.dtypes import DTYPES, dtype_of
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import Groups, Layout, Problem, row_major
from tilewise.kernels.mma_gemm.direct_half.model import TILES
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.registry import family_of
from tilewise.kernels.shared.groups import render_walk
from tilewise.kernels.transforms.rows import add_recipe, take_recipe, weighted_take_recipe
from tilewise.kernels.wgmma_gemm.wgmma_half.model import configs
from tilewise.planning.choose import make_plan

pytestmark = [
    pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler"),
    pytest.mark.drawn(4),
]  # g++ compiles a kernel or two for each, 0.5 to 3 s; on a card all of them run

H200 = KNOWN_CARDS["h200"]


def walked(kernel, offsets, rows, tall, threads):
    """The tiles that the card finds."""
    most = -(-rows // tall) + len(offsets) + 1
    walk = np.full(4 * (1 + most), -7, np.int32)
    values = (offsets.ctypes.data, walk.ctypes.data), (len(offsets), rows, tall)
    kernel((1,), (threads,), [*map(ctypes.c_void_p, values[0]), *map(ctypes.c_int, values[1])])
    assert 0 <= walk[0] <= most
    return walk[4 : 4 * (1 + walk[0])].reshape(-1, 4)


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    return built(render_walk(True), "walk_groups", tmp_path_factory.mktemp("walk"))


def test_tiles_cover_every_row_once(walk):
    seed = next_seed() % 2**32
    rng = np.random.default_rng(seed)
    for _ in range(sample_size(60)):
        groups, rows, tall = int(rng.integers(1, 400)), int(rng.integers(0, 3000)), int(rng.choice([64, 128]))
        ends = np.sort(rng.integers(0, rows + 1, groups)).astype(np.int64)
        if rng.random() < 0.5:
            ends[-1] = rows
        found = walked(walk, ends, rows, tall, int(rng.choice([64, 128])))
        wanted, start = [], 0
        for group, end in [*enumerate(ends.tolist()), (-1, rows)]:
            wanted += [(group, top, end) for top in range(start, end, tall)]
            start = end
        assert [tuple(x[:3]) for x in found.tolist()] == wanted, f"seed {seed}"


def test_bad_ends_stay_inside(walk):
    seed = next_seed() % 2**32
    rng = np.random.default_rng(seed)
    for _ in range(sample_size(60)):
        rows = int(rng.integers(0, 1000))
        ends = rng.integers(-(2**62), 2**62, 50)
        ends[::2] = rng.integers(-5, rows + 5, 25)
        found = walked(walk, ends, rows, 64, 64)
        covered = np.zeros(rows, int)
        for _, top, end, _ in found.tolist():
            assert 0 <= top < end <= rows, f"seed {seed}"
            covered[top : min(end, top + 64)] += 1
        assert (covered == 1).all(), f"seed {seed}"


def among_poison(rng, shape, dtype, extra, offset=0):
    """Cells of small whole numbers in rows that are longer by `extra`, NaN (or the largest) between them."""
    poison = np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else np.nan
    *stack, rows, cols = shape
    memory = np.full(offset + int(np.prod(stack, dtype=int)) * rows * (cols + extra) + 8, poison, dtype)
    made = memory[offset : offset + memory[offset:-8].size].reshape(*stack, rows, cols + extra)[..., :cols]
    made[...] = rng.integers(0, 4, made.shape)
    return made


def sizes(rng, rows, groups):
    """Ends of groups, some of them empty, now and then not all rows in one."""
    ends = np.sort(rng.integers(0, rows + 1, groups))
    if rng.random() < 0.6:
        ends[-1] = rows
    return ends


def problem_of(M, N, P, ring, groups):
    by_k = groups.along == "k"
    stack = (groups.count,) if by_k else ()
    layouts = [layout_of(x) for x in (M, N, P)]
    if by_k:
        layouts[:2] = [Layout(x.row, x.col, (0,), x.misalignment) for x in layouts[:2]]
    return Problem(
        M.shape[-2], M.shape[-1], N.shape[-1], stack, dtype_of(M.dtype), dtype_of(N.dtype), ring, *layouts,
        groups=groups,
    )  # fmt: skip


def expected(M, N, ends, ring, by_k):
    """By a loop over the groups."""
    ends = [0, *ends]
    if by_k:
        return np.stack([tw.matmul(M[:, a:b], N[a:b], semiring=ring) for a, b in pairwise(ends)])
    zero = ring.over(dtype_of(M.dtype)).zero
    made = np.full((M.shape[0], N.shape[-1]), zero).astype(M.dtype)
    for g, (a, b) in enumerate(pairwise(ends)):
        made[a:b] = tw.matmul(M[a:b], N[g], semiring=ring)
    return made


def run(plan, M, N, P, offsets, folder):
    places = {"M": M, "N": N, "P": P, "offsets": offsets}
    run_recipe(recipe_of(plan), folder, **{name: x.ctypes.data for name, x in places.items()})


CASES = [("plus_times", "bfloat16"), ("plus_times", "float32"), ("min_plus", "int32"), ("max_plus", "float64")]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("along", ["rows", "k"])
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_groups_over_any_algebra(tmp_path_factory, name, dtype, along):
    seed, ring = next_seed() % 2**32, tw.semirings[name]
    rng = np.random.default_rng(seed)
    number, groups = DTYPES[dtype].numpy, Groups(int(rng.integers(1, 6)), along, bool(rng.random() < 0.5))
    rows, k, n = int(rng.integers(1, 200)), int(rng.integers(1, 70)), int(rng.integers(1, 90))
    check(rng, rows, k, n, groups, number, ring, None, tmp_path_factory.getbasetemp(), f"seed {seed}")


def check(rng, rows, k, n, groups, number, ring, choose, folder, case, transposed=None):
    """A product of random groups by the kernel for any of them, or by any config of the family that `choose` names."""
    by_k, extra = groups.along == "k", int(rng.choice([0, 3]))
    extra = extra if choose is None or rng.random() < 0.5 else -k % 8
    transposed = transposed or [not by_k and rng.random() < 0.4 for _ in range(2)]
    x = among_poison(rng, (k, rows) if transposed[0] else (rows, k), number, extra)
    sides = (rows, n) if by_k else (n, k) if transposed[1] else (k, n)
    w = among_poison(rng, sides if by_k else (groups.count, *sides), number, int(rng.choice([0, -n % 8, 1])))
    x, w = (a.swapaxes(-1, -2) if change else a for a, change in zip((x, w), transposed, strict=True))
    P = among_poison(rng, (groups.count, k, n) if by_k else (rows, n), number, int(rng.choice([0, -n % 8, 5])))
    M = x.T if by_k else x
    ends = sizes(rng, rows, groups.count)
    offsets = ends.astype(np.int64 if groups.wide else np.int32)
    problem = problem_of(M, w, P, ring, groups)
    if choose is None or family_of(choose).refusal(problem, H200):  # a single row of a group along k lies along k, too
        plan = make_plan(problem, H200, "grouped")
    else:
        options = configs(problem, H200) if choose == "wgmma_half" else TILES
        plan = family_of(choose).pinned(problem, H200, options[int(rng.integers(len(options)))])
    memory = P.base
    before = memory.copy()
    case = f"{case}: {plan} {plan.config} ends {ends.tolist()}"
    run(plan, M, w, P, offsets, folder)
    wanted = expected(M, w, ends.tolist(), ring, by_k)
    np.testing.assert_allclose(P.astype(np.float64), wanted.astype(np.float64), rtol=8e-3, err_msg=case)
    P[...] = 0
    after = memory.copy()
    memory[...] = before
    P[...] = 0
    assert after.tobytes() == memory.tobytes(), f"{case}: something was written beside P"


@pytest.mark.drawn(1)
@pytest.mark.parametrize("along", ["rows", "k"])
def test_groups_on_tensor_cores(tmp_path_factory, along):
    seed = next_seed() % 2**32
    rng = np.random.default_rng(seed)
    number = [ml_dtypes.bfloat16, np.float16][int(rng.integers(2))]
    groups = Groups(int(rng.integers(1, 7)), along, bool(rng.random() < 0.5))
    rows, k, n = int(rng.integers(1, 500)), int(rng.integers(1, 150)), int(rng.integers(1, 300))
    folder = tmp_path_factory.getbasetemp()
    check(rng, rows, k, n, groups, number, tw.semirings["plus_times"], "wgmma_half", folder, f"seed {seed}")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("number", [ml_dtypes.bfloat16, np.float16])
def test_groups_of_misaligned_rows(tmp_path_factory, number):
    seed = next_seed() % 2**32
    rng, folder = np.random.default_rng(seed), tmp_path_factory.getbasetemp()
    groups = Groups(int(rng.integers(1, 7)), "rows", bool(rng.random() < 0.5))
    rows, k, n = int(rng.integers(1, 300)), int(rng.integers(1, 150)), int(rng.integers(1, 200))
    check(rng, rows, k, n, groups, number, tw.semirings["plus_times"], "direct_half", folder, f"seed {seed}")


def test_groups_begin_at_any_row_of_column_major_operands(tmp_path_factory):
    """Loads are 16-byte aligned wherever a group begins: a misaligned load ends the card's context."""
    rng, groups = np.random.default_rng(5), Groups(5, "rows")
    folder, ring = tmp_path_factory.getbasetemp(), tw.semirings["plus_times"]
    check(rng, 100, 60, 70, groups, ml_dtypes.bfloat16, ring, "direct_half", folder, "turned", (True, False))


def test_odd_weights_are_read_once():
    """Groups of few rows by matrices whose rows start on no 16 bytes: no copy of them is made first."""
    half, ring = DTYPES["bfloat16"], tw.semirings["plus_times"]
    odd, even = (
        Problem(
            3000, side, side, (), half, half, ring, row_major(3000, side), row_major(side, side, (256,)),
            row_major(3000, side), groups=Groups(256),
        )
        for side in (1409, 1408)
    )  # fmt: skip
    plans = [make_plan(problem, H200) for problem in (odd, even)]
    assert [plan.kernel for plan in plans] == ["wgmma_half", "wgmma_half"]
    assert [plan.config.n_by_classes for plan in plans] == [True, False]
    assert [step.name for step in recipe_of(plans[0]).steps] == ["walk_groups", "deinterleave", "wgmma_half"]


def test_groups_that_the_copy_engine_stores(tmp_path_factory):
    """Whole boxes of every group, and what is left of it."""
    rng, number = np.random.default_rng(5), ml_dtypes.bfloat16
    x, w, P = (among_poison(rng, shape, number, 0) for shape in ((300, 16), (3, 16, 64), (300, 64)))
    ends = np.array([10, 170, 300], np.int32)
    problem = problem_of(x, w, P, tw.semirings["plus_times"], Groups(3))
    config = next(config for config in configs(problem, H200) if (config.tile.rows, config.tile.cols) == (128, 64))
    run(family_of("wgmma_half").pinned(problem, H200, config), x, w, P, ends, tmp_path_factory.getbasetemp())
    wanted = expected(x, w, ends.tolist(), tw.semirings["plus_times"], False)
    np.testing.assert_array_equal(P.astype(np.float32), wanted.astype(np.float32))


@pytest.mark.parametrize(("dtype", "transposed"), [("bfloat16", False), ("float32", False), ("float64", True)])
def test_rows_are_gathered(tmp_path_factory, dtype, transposed):
    seed = next_seed() % 2**32
    rng, number = np.random.default_rng(seed), DTYPES[dtype].numpy
    for length, extra in ((40, 8), (33, 0), (5, 3)):
        x = among_poison(rng, (length, 20) if transposed else (20, length), number, extra)
        x = x.T if transposed else x
        rows = rng.integers(-2, 23, 50).astype(np.int32)
        lead = length + 7
        room = np.full((50, lead), 77).astype(number)
        recipe = take_recipe(50, length, 20, room.itemsize, layout_of(x), lead, False)
        places = {"M": x, "P": room, "offsets": rows}
        run_recipe(recipe, tmp_path_factory.getbasetemp(), **{name: a.ctypes.data for name, a in places.items()})
        inside = (rows >= 0) & (rows < 20)
        wanted = np.where(inside[:, None], x[rows.clip(0, 19)], np.zeros((), number))
        np.testing.assert_array_equal(room[:, :length], wanted, err_msg=f"seed {seed}")
        assert (room[:, length:] == 77).all()


@pytest.mark.parametrize(("dtype", "weight", "length"), [("bfloat16", "float32", 40), ("float32", "float32", 33)])
def test_gathered_rows_are_weighted(tmp_path_factory, dtype, weight, length):
    """16 bytes at a time, and one element; rounded once."""
    seed = next_seed() % 2**32
    rng, number = np.random.default_rng(seed), DTYPES[dtype].numpy
    x, lead = among_poison(rng, (20, length), number, 8), length + 7 + -(length + 7) % 8
    weights, rows = rng.standard_normal(50).astype(weight), rng.integers(-2, 23, 50).astype(np.int32)
    room, algebra = np.full((50, lead), 77).astype(number), tw.semirings["plus_times"].over(DTYPES[dtype])
    recipe = weighted_take_recipe(algebra, 50, length, 20, layout_of(x), lead, DTYPES[weight], False)
    places = {"M": x, "P": room, "offsets": rows, "scale_m": weights}
    run_recipe(recipe, tmp_path_factory.getbasetemp(), **{name: a.ctypes.data for name, a in places.items()})
    inside = (rows >= 0) & (rows < 20)
    wanted = np.where(inside[:, None], x[rows.clip(0, 19)].astype(np.float32), 0) * weights[:, None]
    np.testing.assert_array_equal(room[:, :length], wanted.astype(number), err_msg=f"seed {seed}")
    assert (room[:, length:] == 77).all()


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("dtype", "weight", "n"),
    [("bfloat16", "float32", 30), ("bfloat16", "float32", 48), ("float32", None, 36), ("float64", "float64", 5)],
)
def test_rows_are_added_up_in_order(tmp_path_factory, dtype, weight, n):
    """Rows that are 16-byte aligned, and rows that are not."""
    seed = next_seed() % 2**32
    rng, number = np.random.default_rng(seed), DTYPES[dtype].numpy
    y, count = rng.standard_normal((400, n)).astype(number), 17
    rows = rng.integers(-2, count + 2, 400)
    rows[50:250] = 3  # a list too long to be sorted
    weights = rng.standard_normal(400).astype(DTYPES[weight or "float32"].numpy)
    algebra, P = tw.semirings["plus_times"].over(DTYPES[dtype]), np.full((count, n), 77).astype(number)
    kind = None if weight is None else DTYPES[weight]
    recipe = add_recipe(algebra, 400, n, count, layout_of(y), layout_of(P), kind, True)
    places = {"M": y, "P": P, "offsets": rows, "scale_m": weights}
    run_recipe(recipe, tmp_path_factory.getbasetemp(), **{name: a.ctypes.data for name, a in places.items()})
    wanted = tw.scatter_rows(y, rows, count, weights=None if weight is None else weights)
    np.testing.assert_array_equal(P, wanted, err_msg=f"seed {seed}")


def test_tiles_of_just_over_a_wave_count_as_two():
    """8 groups of 199 rows on an H200: 176 tiles of 128x128 on 132 multiprocessors took 41 us, 96 of 128x256 31; so did
    those of 128x192, of which 131 are expected."""
    half, ring = DTYPES["bfloat16"], tw.semirings["plus_times"]
    for rows in (1585, 1591):
        lies = row_major(rows, 2048), row_major(2048, 1408, (8,)), row_major(rows, 1408)
        tile = make_plan(Problem(rows, 2048, 1408, (), half, half, ring, *lies, groups=Groups(8)), H200).config.tile
        assert tile.rows * tile.cols > 128 * 192
