"""The cpu engine makes what the reference engine makes: any semiring, dtype, stride, shape."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewise as tw
from tilewise.algebra.dtypes import DTYPES
from tilewise.arrays.address import address
from tilewise.errors import DtypeError, UsageError

EXACT = ("min_plus", "max_plus", "min_times", "max_times", "min_max", "max_min", "lor_land")
NAMES = [d for d in DTYPES if "long" not in d]


def operand(rng: np.random.Generator, rows: int, cols: int, dtype: str, layout: int, specials: bool) -> np.ndarray:
    """A matrix of some layout: C, Fortran, every second column, backwards, a broadcast row."""
    number = DTYPES[dtype]
    shape = (rows, 2 * cols) if layout == 2 else (cols, rows) if layout == 1 else (rows, cols)
    if number.kind == "b":
        x = rng.random(shape) < 0.3
    elif number.is_integer:
        x = rng.integers(0 if number.kind == "u" else -50, 50, shape).astype(number.numpy)
    else:
        x = rng.uniform(-4, 4, shape)
        if number.kind == "c":
            x = x + 1j * rng.uniform(-4, 4, shape)
        if specials and number.kind == "f":
            x[rng.random(shape) < 0.05] = np.nan
            x[rng.random(shape) < 0.05] = np.inf
        x = x.astype(number.numpy)
    if layout == 1:
        return x.T
    if layout == 2:
        return x[:, ::2]
    if layout == 3:
        return x[::-1, ::-1]
    return np.broadcast_to(x[:1], (rows, cols)) if layout == 4 and rows else x


def plain(x: np.ndarray) -> np.ndarray:
    """bfloat16 as float32: NumPy's comparisons do not know its NaN."""
    return x.astype(np.float32) if x.dtype.name == "bfloat16" else x


def agree(made: np.ndarray, right: np.ndarray, exact: bool, k: int) -> None:
    assert made.dtype == right.dtype
    assert made.shape == right.shape
    if exact or right.dtype.kind in "biu":
        np.testing.assert_array_equal(*(plain(x) for x in (made, right)))
        return
    wide = np.complex128 if right.dtype.kind == "c" else np.float64
    eps = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 2e-6, "complex64": 2e-6}.get(right.dtype.name, 1e-13)
    np.testing.assert_allclose(made.astype(wide), right.astype(wide), rtol=20 * eps, atol=eps * 32 * max(k, 1))


shapes = st.tuples(st.integers(1, 70), st.integers(1, 40), st.integers(1, 120))


@given(
    shapes,
    st.sampled_from(NAMES),
    st.sampled_from([*EXACT, "plus_times"]),
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(0, 2),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_any_product_is_the_reference_engines(
    shape: tuple[int, int, int], dtype: str, ring: str, lay_m: int, lay_n: int, lay_p: int, onto: bool, seed: int
) -> None:
    m, k, n = shape
    rng = np.random.default_rng(seed)
    specials = ring != "plus_times"
    M, N = operand(rng, m, k, dtype, lay_m, specials), operand(rng, k, n, dtype, lay_n, specials)
    try:
        result = tw.semirings[ring].over(DTYPES[dtype]).result
    except (DtypeError, tw.AlgebraError):
        return
    start = operand(rng, m, n, result.name, lay_p, specials).copy("K")
    made, right = start.copy("K"), start.copy("K")
    kept = M.copy(), N.copy()
    tw.matmul(M, N, semiring=ring, out=made, accumulate=onto)
    tw.matmul(M, N, semiring=ring, out=right, accumulate=onto, kernel="reference")
    agree(made, right, ring in EXACT, k)
    for x, was in zip((M, N), kept, strict=True):
        np.testing.assert_array_equal(plain(x), plain(was))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize(
    "shape",
    [(1, 1, 1), (1, 700, 90), (17, 300, 33), (300, 33, 1), (130, 300, 9), (2, 600, 500), (90, 520, 100), (8, 9000, 24)],
)
def test_every_kernel_in_every_dtype(shape: tuple[int, int, int], dtype: str) -> None:
    m, k, n = shape
    rng = np.random.default_rng(m * k * n)
    for lay_m, lay_n in ((0, 0), (1, 0), (0, 1), (2, 3)):
        M, N = operand(rng, m, k, dtype, lay_m, False), operand(rng, k, n, dtype, lay_n, False)
        agree(tw.matmul(M, N), tw.matmul(M, N, kernel="reference", tile=32), False, k)


@pytest.mark.drawn(3)
@pytest.mark.parametrize("pair", [("int8", "float32"), ("float16", "float32"), ("bool", "int16"), ("int32", "float64"),
                                  ("float64", "complex64"), ("uint8", "float16"), ("uint64", "int64")])  # fmt: skip
def test_operands_of_two_dtypes_meet_in_numpys_common_one(pair: tuple[str, str]) -> None:
    rng = np.random.default_rng(1)
    M, N = operand(rng, 30, 50, pair[0], 0, False), operand(rng, 50, 60, pair[1], 1, False)
    made = tw.matmul(M, N)
    assert made.dtype == np.matmul(M, N).dtype
    agree(made, tw.matmul(M, N, kernel="reference"), False, 50)


def test_a_product_over_many_strips_of_k() -> None:
    """k longer than KC: what earlier strips left in P is added onto."""
    rng = np.random.default_rng(2)
    for dtype in ("float32", "float16", "complex64", "int16"):
        M, N = operand(rng, 40, 1100, dtype, 0, False), operand(rng, 1100, 70, dtype, 0, False)
        agree(tw.matmul(M, N), tw.matmul(M, N, kernel="reference", tile=32), False, 1100)


def test_stacks_broadcast_over_one_another() -> None:
    rng = np.random.default_rng(3)
    for shape_m, shape_n in (((3, 1, 5, 6), (4, 6, 7)), ((2, 40, 30), (30, 50)), ((500, 4, 4), (500, 4, 4))):
        M, N = rng.random(shape_m), rng.random(shape_n)
        np.testing.assert_allclose(tw.matmul(M, N), M @ N)
    M, N = rng.random((5, 40)), rng.random((3, 40, 1))
    np.testing.assert_allclose(tw.matmul(M, N), M @ N)


def test_vectors_on_either_side() -> None:
    rng = np.random.default_rng(4)
    M, v, w = rng.random((300, 200)), rng.random(200), rng.random(300)
    np.testing.assert_allclose(tw.matmul(M, v), M @ v)
    np.testing.assert_allclose(tw.matmul(w, M), w @ M)
    np.testing.assert_allclose(tw.matmul(np.asfortranarray(M), v[::-1]), M @ v[::-1])
    np.testing.assert_allclose(tw.matmul(v, v), v @ v)
    assert isinstance(tw.matmul(v, v), np.float64)


def test_a_transposed_out_and_an_operation_that_does_not_commute() -> None:
    """P is column-major, so Pᵀ is computed, with the operands of mul swapped."""
    ring = tw.Semiring("gap", add=tw.maximum, mul=lambda x, y: x - 2 * y, zero=tw.smallest, pad_m=tw.smallest, pad_n=0)
    rng = np.random.default_rng(5)
    M, N = rng.random((50, 60)), rng.random((60, 70))
    out = np.empty((70, 50)).T
    assert tw.matmul(M, N, semiring=ring, out=out) is out
    np.testing.assert_array_equal(out, (M[:, :, None] - 2 * N[None]).max(1))
    np.testing.assert_array_equal(tw.matmul(M, N[:, :3], semiring=ring), (M[:, :, None] - 2 * N[None, :, :3]).max(1))


def test_out_may_be_an_operand() -> None:
    rng = np.random.default_rng(6)
    M, N = rng.random((30, 30)), rng.random((30, 30))
    right = M @ N
    for _ in range(2):  # the second call takes the prepared path
        x = M.copy()
        assert tw.matmul(x, N, out=x) is x
        np.testing.assert_allclose(x, right)


def test_nothing_left_but_nan_is_zero() -> None:
    M, N = np.full((20, 30), np.nan, np.float32), np.zeros((30, 20), np.float32)
    assert (tw.matmul(M, N, semiring="min_plus") == np.inf).all()
    assert (tw.matmul(M, N, semiring="max_min") == 0).all()  # fmin(NaN, 0) is 0
    assert (tw.matmul(N.T, M.T, semiring="max_min") == 0).all()


def test_an_infinity_stays_in_its_row() -> None:
    M, N = np.ones((9, 50)), np.ones((50, 33))
    M[3, 7] = np.inf
    P = tw.matmul(M, N)
    assert np.isinf(P[3]).all()
    assert np.isfinite(np.delete(P, 3, 0)).all()


def test_logaddexp_is_numpys() -> None:
    rng = np.random.default_rng(7)
    for dtype, eps in ((np.float32, 3e-6), (np.float64, 1e-13)):
        M, N = (rng.uniform(-30, 5, s).astype(dtype) for s in ((20, 40), (40, 30)))
        M[0], N[:, 0] = -np.inf, -np.inf
        right = np.logaddexp.reduce(M[:, :, None] + N[None], axis=1)
        np.testing.assert_allclose(tw.matmul(M, N, semiring="log"), right, rtol=eps, atol=eps)


@pytest.mark.parametrize(("dtype", "wider"), [("float32", "float64"), ("float64", "longdouble")])
def test_logaddexp_is_right_to_a_few_units_in_the_last_place(dtype: str, wider: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (np.concatenate([rng.uniform(-s, s, 5000) for s in (1e-3, 1, 30, 80)]).astype(dtype) for _ in range(2))
    made = tw.matmul(np.stack([x, y], 1), np.zeros((2, 1), dtype), semiring="log")[:, 0]
    above, below = np.maximum(x, y).astype(wider), np.minimum(x, y).astype(wider)
    right = above + np.log1p(np.exp(below - above))
    unit = np.spacing(np.maximum(np.abs(right), np.abs(above)).astype(dtype)).astype(wider)
    assert (np.abs(made - right) <= 5 * unit).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logaddexp_of_what_is_not_finite(dtype: str) -> None:
    inf, nan = np.inf, np.nan
    pairs = [(inf, inf), (-inf, -inf), (inf, -inf), (-inf, 3), (3, -inf), (nan, 1), (1, nan), (nan, inf), (0, -5e3)]
    M = np.array(pairs * 8, dtype)
    made = tw.matmul(M, np.zeros((2, 1), dtype), semiring="log")[:, 0]
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(made, np.logaddexp(M[:, 0], M[:, 1]))


def test_zero_extents() -> None:
    assert tw.matmul(np.ones((0, 5)), np.ones((5, 3))).shape == (0, 3)
    assert (tw.matmul(np.ones((4, 0)), np.ones((0, 3))) == 0).all()
    assert (tw.matmul(np.ones((4, 0)), np.ones((0, 3)), semiring="min_plus") == np.inf).all()


def test_long_double_runs_in_the_reference_engine() -> None:
    M, N = np.ones((3, 4), np.longdouble), np.ones((4, 5), np.longdouble)
    assert tw.plan(M, N).engine == "reference"
    assert (tw.matmul(M, N) == 4).all()


def test_the_plan_names_the_cut() -> None:
    M = np.ones((1000, 1000), np.float32)
    plan = tw.plan(M, M)
    assert plan.engine == "cpu"
    assert plan.kernel in ("packed_n", "packed")  # NEON takes whole vectors of a packed M
    assert tw.plan(M.T, M).kernel == tw.plan(M, M, kernel="packed").kernel == "packed"
    assert plan.blocking is not None
    assert "MR" in str(plan)
    assert plan.to_json()["blocking"]["KC"] == plan.blocking.KC
    assert tw.plan(M[:3], M).kernel == "few_rows"
    assert tw.plan(M[:60, :60], M[:60, :60]).kernel == "unpacked"
    assert tw.plan(M.astype(np.int16), M.astype(np.int16)).kernel in ("interleaved", "packed")  # NEON adds bytes only
    assert tw.plan(M, M[:, :2]).kernel == "dots"  # less than half a vector, whatever the machine
    tall = np.ones((6000, 60), np.float32)
    assert tw.plan(tall, M[:60, :7]).kernel in ("few_columns", "packed_n")  # k is too short for dot products
    assert tw.plan(M, M[0]).kernel == "dots"
    assert tw.plan(M[:4, :4], M[:4, :4]).kernel == "tiny"
    assert any("ignored" in note for note in tw.plan(M, M, tile=8).notes)
    with pytest.raises(UsageError, match="does not fit"):
        tw.plan(M, M, kernel="few_rows")


@pytest.mark.parametrize("layout", range(5))
@pytest.mark.parametrize("dtype", NAMES)
def test_address_matches_ctypes(dtype, layout):
    x = operand(np.random.default_rng(0), 3, 5, dtype, layout, False)
    assert address(x) == x.ctypes.data
