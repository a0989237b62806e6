"""The plain kernels with no card: the launches and the texts as they are, behind the C++ compiler."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewise as tw
import tilewise.kernels.simt_gemm.tiled.model as plain_tiles
import tilewise.kernels.simt_gemm.tiled.recipe as plain_recipe
import tilewise.planning.choose as planning
from behind_a_compiler import COMPILER
from host_card import multiplied
from operands import values, weighs
from oracle import assert_product
from seeds import next_seed
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.problem import problem_of_shape
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.simt_gemm.tiled.tiles import FEW_ROWS_TILE, FMA_TILES, TWO_SLOT_TILES
from tilewise.kernels.transforms.sums import MANY_PIECES

H200 = KNOWN_CARDS["h200"]
SMALL = replace(H200, units=2)  # so that small products fill it
pytestmark = [
    pytest.mark.skipif(not COMPILER, reason="needs a C++ compiler"),
    pytest.mark.drawn(5),
]  # g++ compiles a kernel or two for each, 0.5 to 3 s; on a card all of them run


@pytest.fixture
def host(tmp_path_factory):
    """Where compiled kernels go."""
    return tmp_path_factory.getbasetemp()


def lying(a, config):
    """The same matrix, lying in memory in another way."""
    rows, cols = a.shape
    if config == "rows":
        return a.copy()
    if config == "columns":
        return np.ascontiguousarray(a.T).T
    if config == "odd rows":
        memory = np.zeros((rows, cols + 3), a.dtype)
        memory[:, 1 : cols + 1] = a
        return memory[:, 1 : cols + 1]
    if config == "odd columns":
        memory = np.zeros((cols, rows + 5), a.dtype)
        memory[:, 1 : rows + 1] = a.T
        return memory[:, 1 : rows + 1].T
    memory = np.zeros((2 * rows, 3 * cols), a.dtype)  # apart
    memory[::2, ::3] = a
    return memory[::2, ::3]


def product(host, M, N, name, machine=SMALL, **how):
    ring = tw.semirings[name]
    dtype = np.dtype(bool) if name == "lor_land" else np.promote_types(M.dtype, N.dtype)
    P = np.zeros((M.shape[0], N.shape[1]), dtype)
    plan = multiplied(M, N, ring, machine, P, host, **how)
    return P, plan


CASES = [
    ("plus_times", "float32", "odd rows", "odd columns", (130, 33, 70)),
    ("min_plus", "float32", "columns", "apart", (68, 45, 33)),
    ("min_plus", "int32", "rows", "rows", (40, 45, 33)),
    ("max_plus", "int16", "columns", "rows", (40, 45, 33)),
    ("min_plus", "float16", "rows", "columns", (40, 45, 33)),
    ("lor_land", "bool", "odd rows", "columns", (40, 345, 33)),
    ("logaddexp_plus", "float32", "rows", "rows", (40, 45, 33)),
    ("plus_times", "complex64", "columns", "odd rows", (40, 45, 33)),
]
MORE_CASES = [
    ("plus_times", "float32", "rows", "rows", (130, 37, 84)),
    ("plus_times", "float32", "columns", "columns", (66, 45, 37)),
    ("max_min", "float32", "apart", "rows", (33, 21, 70)),
    ("min_plus", "uint16", "odd rows", "apart", (40, 46, 33)),
    ("lor_land", "float32", "rows", "rows", (40, 95, 33)),
    ("plus_times", "int8", "rows", "rows", (40, 45, 33)),
    ("logaddexp_plus", "float64", "rows", "odd rows", (40, 45, 33)),
    ("min_plus", "float64", "rows", "rows", (68, 45, 34)),
    ("plus_times", "complex128", "rows", "rows", (40, 45, 33)),
    ("plus_times", "uint64", "rows", "rows", (40, 45, 33)),
]


def first(cases, rest):
    """All of them, the rest only where there is time."""
    return [*cases, *(pytest.param(*case, marks=pytest.mark.slow) for case in rest)]


@pytest.mark.parametrize(("name", "dtype", "config"), [("min_plus", "int16", "columns"), ("lor_land", "bool", "rows")])
def test_operands_of_more_lines_than_a_launch_packs(host, monkeypatch, name, dtype, config):
    monkeypatch.setattr(plain_recipe, "GRID_LIMIT", 1)  # 64 lines, as if they were four million
    M, N = (values(shape, dtype, seed, True, weighs(name)) for shape, seed in (((150, 45), 1), ((45, 131), 2)))
    P, plan = product(host, lying(M, config), lying(N, config), name, kernel="plain")
    assert [step.name for step in recipe_of(plan).steps].count("pack_words") == 6
    assert_product(P, M, N, name)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("name", "dtype", "config_m", "config_n", "shape"), first(CASES, MORE_CASES))
def test_tiles_give_the_right_product(host, name, dtype, config_m, config_n, shape):
    m, k, n = shape
    for specials in (False, True):
        M, N = (values(s, dtype, seed, specials, weighs(name)) for s, seed in (((m, k), 1), ((k, n), 2)))
        P, plan = product(host, lying(M, config_m), lying(N, config_n), name, kernel="plain")
        assert plan.kernel == "plain"
        assert_product(P, M, N, name)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("plus_times", "float32"),
        ("plus_times", "float64"),
        ("min_plus", "float32"),
        ("max_plus", "int16"),
        ("lor_land", "bool"),
        ("plus_times", "int8"),
        ("min_plus", "float16"),
        ("plus_times", "complex64"),
    ],
)
def test_symmetric_products_store_each_cell_once(host, name, dtype):
    """Old values that are not symmetric: a cell stored twice, or from the wrong place, shows."""
    rng = np.random.default_rng(next_seed())
    config, onto = ("rows", "columns", "odd rows")[rng.integers(3)], bool(rng.integers(2))
    shape = ((300, 37), (257, 900))[rng.integers(2)]
    M = lying(values(shape, dtype, 1, False, weighs(name)), config)
    P = values((shape[0], shape[0]), dtype, 3, False, weighs(name))
    made, wanted = P.copy(), P.copy()
    plan = multiplied(M, M.T, tw.semirings[name], SMALL, made, host, kernel="plain", accumulate=onto, symmetric=True)
    multiplied(M, M.T, tw.semirings[name], SMALL, wanted, host, kernel="plain", accumulate=onto)
    assert plan.notes[-1].startswith("symmetric: ")
    bound = 1e-4 if made.dtype.kind in "fc" else 0
    np.testing.assert_allclose(made, wanted, rtol=bound, atol=bound)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("name", "dtype", "config", "shape", "kernel"),
    first(
        [
            ("plus_times", "float32", "odd rows", (5, 600, 70), "few_rows"),
            ("min_plus", "float16", "columns", (5, 515, 40), "few_dots"),
            ("plus_times", "float64", "rows", (70, 300, 3), "few_dots"),
            ("logaddexp_plus", "float32", "odd columns", (2, 600, 33), "few_dots"),
        ],
        [
            ("plus_times", "float32", "rows", (16, 300, 200), "few_rows"),
            ("max_plus", "float32", "columns", (70, 600, 1), "few_rows"),
            ("lor_land", "bool", "rows", (9, 600, 70), "few_rows"),
            ("plus_times", "complex128", "odd columns", (3, 400, 33), "few_dots"),
        ],
    ),
)
def test_few_rows_and_few_columns(host, name, dtype, config, shape, kernel):
    m, k, n = shape
    for specials in (False, True):  # over so long a k, hardly a sum with specials in it is a number
        M, N = (values(s, dtype, seed, specials, weighs(name)) for s, seed in (((m, k), 1), ((k, n), 2)))
        left, right = (lying(M, config), N) if n < m else (M, lying(N, config))
        P, plan = product(host, left, right, name, kernel=kernel)
        assert plan.kernel == kernel
        assert_product(P, M, N, name)


def test_halves_of_few_rows_leave_their_pieces_in_planes_of_floats(host):
    """Whether sums go to P or to planes is said when the kernel is launched."""
    M, N = values((3, 4000), "float16", 1), values((4000, 40), "float16", 2)
    P, plan = product(host, M, N, "plus_times", H200, kernel="few_rows")
    assert plan.passes == 1, "k comes in pieces"
    assert_product(P, M, N, "plus_times")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("shape", [(6, 700, 90), (70, 400, 35), (90, 700, 6)])
@pytest.mark.parametrize(
    "machine", [pytest.param(SMALL, marks=pytest.mark.slow), H200], ids=["few units", "many units"]
)
def test_the_k_that_won(host, shape, machine):
    m, k, n = shape
    M = values((m, k), "float32", 1, specials=True).round(0)  # many ties
    N = values((k, n), "float32", 2, specials=True).round(0)
    expected, won = tw.matmul(M, N, semiring="min_plus", return_arg=True)
    where = np.full((m, n), -7)
    P, _ = product(host, M, N, "min_plus", machine, where=where)
    np.testing.assert_array_equal(P, expected)
    np.testing.assert_array_equal(where, won)


def test_pieces_of_k_are_added_in_order(host):
    M, N = values((33, 900), "float32", 1), values((900, 40), "float32", 2)
    P, plan = product(host, M, N, "plus_times", H200, kernel="plain")
    assert "pieces" in plan.why
    assert_product(P, M, N, "plus_times")


def test_thin_edges_are_made_apart(host, monkeypatch):
    import tilewise.kernels.simt_gemm.tiled.model as tiles

    monkeypatch.setattr(tiles, "THIN_FROM", 64)
    tiles.choose.cache_clear()
    M, N = values((129, 70), "float32", 1), values((70, 131), "float32", 2)
    P, _ = product(host, M, N, "min_plus", kernel="plain")
    assert_product(P, M, N, "min_plus")
    tiles.choose.cache_clear()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", ["plus_times", pytest.param("min_plus", marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", [(40, 300, 36), (3, 300, 36)])
def test_accumulate_adds_onto_what_is_there(host, name, shape):
    m, k, n = shape
    M, N = values((m, k), "float64", 1), values((k, n), "float64", 2)
    before = values((m, n), "float64", 3)
    for machine in (SMALL, H200):
        P = before.copy()
        multiplied(M, N, tw.semirings[name], machine, P, host, kernel=None if m < 16 else "plain", accumulate=True)
        expected = before.copy()
        tw.matmul(M, N, semiring=name, out=expected, accumulate=True)
        np.testing.assert_allclose(P, expected, rtol=1e-12)


def test_what_is_promised_not_negative_is_compared_three_at_a_time(host):
    M, N = abs(values((40, 45), "float32", 1)), abs(values((45, 33), "float32", 2))
    for name in ("min_plus", "max_plus"):
        P, plan = product(host, M, N, name, kernel="plain", nonnegative=True)
        assert "three at a time" in plan.why
        assert_product(P, M, N, name)


def test_a_stack_and_a_dtype_that_must_be_converted(host):
    M, N = values((3, 1, 20, 30), "float32", 1), values((2, 30, 25), "float64", 2)
    P = np.zeros((3, 2, 20, 25))
    wide = np.broadcast_to(M, (3, 2, 20, 30)), np.broadcast_to(N, (3, 2, 30, 25))
    multiplied(*wide, tw.semirings["plus_times"], SMALL, P, host, kernel="plain")
    np.testing.assert_allclose(P, M @ N, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "tile"),
    [
        ("plus_times", FMA_TILES[0]),
        ("plus_times", FEW_ROWS_TILE),
        *(pytest.param("plus_times", tile, marks=pytest.mark.slow) for tile in FMA_TILES[1:-1]),
        pytest.param("min_plus", TWO_SLOT_TILES[0], marks=pytest.mark.slow),
    ],
    ids=lambda x: x if isinstance(x, str) else f"{x.rows}x{x.cols}",
)
def test_every_tile_at_its_edges(host, monkeypatch, name, tile):
    monkeypatch.setattr(plain_tiles, "tiles_of", lambda config: (tile,))
    plain_tiles.choose.cache_clear()
    plain_tiles.fitting.cache_clear()
    M, N = values((tile.rows + 3, 39), "float32", 1), values((39, tile.cols + 5), "float32", 2)
    P, plan = product(host, lying(M, "rows"), lying(N, "odd rows"), name, kernel="plain")
    plain_tiles.choose.cache_clear()
    plain_tiles.fitting.cache_clear()
    assert plan.geometry.rows == tile.rows
    assert_product(P, M, N, name)


@pytest.mark.parametrize("k", [500, 3000])
def test_few_and_many_pieces_of_k_are_combined(host, k):
    M, N = values((33, k), "float32", 1), values((k, 20), "float32", 2)
    P, _ = product(host, M, N, "plus_times", H200, kernel="plain")
    assert_product(P, M, N, "plus_times")
    choice = plain_tiles.choose(problem_of_shape(33, k, 20, precision="ieee"), H200)
    assert (choice.pieces > MANY_PIECES) == (k != 500)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("name", "config_n"), [("plus_times", "rows"), pytest.param("min_plus", "odd rows", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("cols", [512, 515])
def test_the_last_tiles_come_in_pieces_of_k(host, monkeypatch, name, config_n, cols):
    """Six tiles on four multiprocessors: the last two are cut, whether rows of P begin on 16 bytes or anywhere."""
    tile = FMA_TILES[0]
    tail = plain_tiles.Tail(2, 3, 96, 64)
    real = plain_tiles.choose

    def choose(problem, machine):
        whole = replace(real(problem, machine), tile=tile, pieces=1, rows=problem.m, cols=problem.n)
        return replace(whole, tail=tail)

    monkeypatch.setattr(plain_tiles, "choose", choose)
    planning._plan.cache_clear()
    m, k = 2 * tile.rows + 9, 200
    M, N = values((m, k), "float32", 1), values((k, cols), "float32", 2)
    P, _ = product(host, M, lying(N, config_n), name, kernel="plain")
    assert_product(P, M, N, name)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", ["min_plus", pytest.param("max_times", marks=pytest.mark.slow)])
@pytest.mark.parametrize("odd", [None, -0.0, -1e6, np.nan, np.inf])
def test_operands_are_searched_for_what_the_faster_config_excludes(host, monkeypatch, name, odd):
    """The odd one is in M, which is packed, and in N, which is not."""
    monkeypatch.setattr(plain_tiles, "SEEK_SECONDS", -1.0)
    plain_tiles.choose.cache_clear()
    for side in "MN":
        M, N = abs(values((130, 40), "float32", 1)), abs(values((40, 132), "float32", 2))
        M[100, 7], N[7, 100] = 0, 0
        if odd is not None:  # and twice as much, for two that are below 0 in one sum
            odd_one = M[100] if side == "M" else N[:, 100]
            odd_one[7], odd_one[9] = odd, 2 * odd
        P, plan = product(host, M, N, name, kernel="plain")
        assert "found below 0" in plan.why
        assert_product(P, M, N, name)
    plain_tiles.choose.cache_clear()


@pytest.mark.parametrize("side", "MN")
def test_every_member_of_a_stack_is_looked_through(host, monkeypatch, side):
    """Two that are below 0 are in one sum of the last member."""
    monkeypatch.setattr(plain_tiles, "SEEK_SECONDS", -1.0)
    plain_tiles.choose.cache_clear()
    M, N = abs(values((3, 70, 40), "float32", 1)), abs(values((3, 40, 68), "float32", 2))
    (M[2, 7] if side == "M" else N[2, :, 7])[3:5] = -1e6, -2e6
    P = np.zeros((3, 70, 68), np.float32)
    plan = multiplied(M, N, tw.semirings["min_plus"], SMALL, P, host, kernel="plain")
    assert "found below 0" in plan.why
    for number in range(3):
        assert_product(P[number], M[number], N[number], "min_plus")
    plain_tiles.choose.cache_clear()
