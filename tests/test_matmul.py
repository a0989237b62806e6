"""`tw.matmul` keeps the rules of `numpy.matmul`."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw
from operands import values
from oracle import assert_product
from seeds import next_seed

rng = np.random.default_rng(7)


def close(P, expected):
    assert P.shape == np.shape(expected)
    np.testing.assert_allclose(P, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("M", "N"),
    [
        ((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
        ((5, 1, 2, 3), (4, 3, 2)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,)), ((0, 3), (3, 4)), ((2, 0), (0, 4)),
        ((2, 3), (3, 0)), ((0, 2, 3), (3, 4)), ((0,), (0,)), ((1, 5, 2, 3), (7, 1, 3, 2)),
    ],
)  # fmt: skip
def test_shapes_follow_numpy(M, N):
    a, b = rng.standard_normal(M), rng.standard_normal(N)
    close(tw.matmul(a, b), np.matmul(a, b))


def test_two_vectors_make_a_number():
    assert type(tw.matmul(np.ones(3), np.ones(3))) is np.float64


def test_lists_are_arrays():
    np.testing.assert_array_equal(tw.matmul([[1, 2]], [[3], [4]]), [[11]])


def test_no_columns_in_M_gives_the_semirings_zero():
    M, N = np.ones((2, 0)), np.ones((0, 3))
    assert (tw.matmul(M, N, semiring="min_plus") == np.inf).all()
    assert (tw.matmul(M.astype(int), N.astype(int), semiring="max_plus") == np.iinfo(int).min).all()
    assert (tw.matmul(M, N) == 0).all()


@pytest.mark.parametrize(("M", "N"), [((2, 3), (4, 2)), ((3,), (4,)), ((2, 2, 3), (3, 3, 2)), ((), (3,)), ((3, 3), ())])
def test_shapes_that_do_not_fit_are_refused_as_numpy_does(M, N):
    with pytest.raises(ValueError):  # noqa: PT011  NumPy's own message
        np.matmul(np.ones(M), np.ones(N))
    with pytest.raises(tw.ShapeError):
        tw.matmul(np.ones(M), np.ones(N))


def test_a_refusal_names_both_shapes():
    with pytest.raises(tw.ShapeError, match="M is 2×3 and N is 4×2: the 3 columns of M do not meet the 4 rows of N"):
        tw.matmul(np.ones((2, 3)), np.ones((4, 2)))


@pytest.mark.parametrize(
    ("M", "N"), [("int8", "uint8"), ("int32", "float32"), ("float32", "complex64"), ("bool", "int16")]
)
def test_promotion_follows_numpy(M, N):
    a, b = values((4, 5), M, 1), values((5, 3), N, 2)
    assert_product(tw.matmul(a, b), a, b, "plus_times")


def test_halves_of_two_kinds_have_no_common_dtype():
    with pytest.raises(tw.DtypeError, match="float16 and bfloat16 have no common dtype"):
        tw.matmul(values((2, 2), "float16", 1), values((2, 2), "bfloat16", 2))


class TestOut:
    M, N = rng.standard_normal((5, 4)), rng.standard_normal((4, 5))

    def test_is_what_comes_back(self):
        P = np.full((5, 5), np.nan)
        assert tw.matmul(self.M, self.N, out=P) is P
        close(P, self.M @ self.N)

    def test_may_be_any_view(self):
        memory = np.full((20, 20), np.nan)
        P = memory[::-2, 3:18:3][:5]
        tw.matmul(self.M, self.N, out=P)
        close(P, self.M @ self.N)
        assert np.isnan(memory).sum() == 400 - 25

    def test_may_be_an_operand(self):
        A = rng.standard_normal((40, 40))
        expected = A @ A
        tw.matmul(A, A, out=A)
        close(A, expected)

    def test_may_overlap_an_operand_shifted(self):
        memory = rng.standard_normal((9, 8))
        M, P = memory[:8], memory[1:]
        expected = M @ M
        tw.matmul(M, M, out=P)
        close(P, expected)

    def test_may_be_of_a_wider_or_narrower_dtype_of_the_same_kind(self):
        for dtype in ("float32", "longdouble", "complex128"):
            P = np.empty((5, 5), dtype)
            tw.matmul(self.M, self.N, out=P)
            np.testing.assert_allclose(P, self.M @ self.N, rtol=1e-6)

    def test_may_have_foreign_bytes(self):
        P = np.empty((5, 5), ">f8")
        tw.matmul(self.M.astype(">f8"), self.N, out=P)
        close(P.astype(float), self.M @ self.N)

    def test_may_have_a_larger_stack(self):
        P = np.empty((3, 5, 5))
        tw.matmul(self.M, self.N, out=P)
        close(P, np.broadcast_to(self.M @ self.N, (3, 5, 5)))

    @pytest.mark.parametrize(
        ("out", "error", "message"),
        [
            (np.empty((5, 6)), tw.ShapeError, "out is 5×6, but the product is 5×5"),
            (np.empty((5, 5), int), tw.DtypeError, "out has dtype int64, but the product has float64"),
            (np.broadcast_to(np.zeros(5), (5, 5)), ValueError, "read-only"),
            ([[0.0] * 5] * 5, TypeError, "out must be an array"),
        ],
    )
    def test_that_does_not_fit_is_refused_and_untouched(self, out, error, message):
        before = np.array(out)
        with pytest.raises(error, match=message):
            tw.matmul(self.M, self.N, out=out)
        np.testing.assert_array_equal(np.array(out), before)


class TestAccumulate:
    def test_adds_with_the_semirings_add(self):
        M, N = values((6, 7), "float64", 1), values((7, 5), "float64", 2)
        P = values((6, 5), "float64", 3)
        expected = np.fmin(P, tw.matmul(M, N, semiring="min_plus"))
        tw.matmul(M, N, semiring="min_plus", out=P, accumulate=True)
        np.testing.assert_array_equal(P, expected)

    def test_onto_an_operand(self):
        A = rng.standard_normal((9, 9))
        expected = A + A @ A
        tw.matmul(A, A, out=A, accumulate=True)
        close(A, expected)

    def test_an_out_that_the_product_cannot_be_added_to_is_refused(self):
        M, P = np.ones((3, 3), np.uint64), np.full((3, 3), 5, np.int64)
        with pytest.raises(tw.DtypeError, match="pass an out of dtype uint64"):
            tw.matmul(M, M, out=P, accumulate=True)
        assert (P == 5).all()

    def test_without_an_out_is_refused(self):
        with pytest.raises(tw.UsageError, match="no out was given"):
            tw.matmul([[1]], [[1]], accumulate=True)


class TestSpecialValues:
    def test_an_edge_never_spreads_a_neighbours_nan(self):
        M, N = np.ones((17, 17)), np.ones((17, 17))
        M[3, 16] = np.nan
        N[2, 5] = np.inf
        P = tw.matmul(M, N, tile=16)
        assert np.isnan(P[3]).all()
        assert np.isnan(P).sum() == 17
        assert np.isinf(np.delete(P[:, 5], 3)).all()

    def test_min_and_max_skip_nan(self):
        M, N = np.array([[np.nan, 1.0], [np.nan, np.nan]]), np.zeros((2, 2))
        np.testing.assert_array_equal(tw.matmul(M, N, semiring="min_plus"), [[1, 1], [np.inf, np.inf]])
        np.testing.assert_array_equal(tw.matmul(M, N, semiring="max_plus"), [[1, 1], [-np.inf, -np.inf]])

    def test_max_times_has_no_false_infinity_at_an_edge(self):
        M, N = -np.ones((3, 3)), np.ones((3, 3))
        np.testing.assert_array_equal(tw.matmul(M, N, semiring="max_times", tile=2), -np.ones((3, 3)))

    def test_integer_min_plus_does_not_wrap_at_an_edge(self):
        M, N = np.full((3, 3), 5, np.int32), np.full((3, 3), 6, np.int32)
        np.testing.assert_array_equal(tw.matmul(M, N, semiring="min_plus", tile=2), np.full((3, 3), 11))


@pytest.mark.parametrize("tile", [0, -1, 33, 64, "x", 2.5, True])
def test_a_tile_that_cannot_be_is_refused(tile):
    with pytest.raises(tw.UsageError, match="tile="):
        tw.matmul([[1.0]], [[1.0]], tile=tile)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"semiring": "min_pluss"}, tw.UsageError, "semiring='min_pluss' is not known; known are plus_times"),
        ({"device": "gpu"}, tw.UsageError, "device='gpu' is not known"),
        ({"device": "cuda:x"}, tw.UsageError, "device='cuda:x' is not known"),
        ({"kernel": "fast"}, tw.UsageError, "kernel='fast' is not known"),
        ({"kernel": "tiled"}, tw.DeviceError, "runs on a card"),
        ({"precision": "low"}, tw.UsageError, "precision='low' is not known"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        tw.matmul([[1.0]], [[1.0]], **arguments)


@pytest.mark.parametrize("bad", [np.array([[object()]]), np.array([["a"]]), np.array([["2020-01-01"]], "M8[D]")])
def test_arrays_without_numbers_are_refused(bad):
    with pytest.raises(tw.DtypeError):
        tw.matmul(bad, bad)


def test_a_masked_array_is_refused_rather_than_losing_its_mask():
    with pytest.raises(tw.UsageError, match="mask"):
        tw.matmul(np.ma.ones((2, 2)), np.ones((2, 2)))


def test_complex_numbers_have_no_order():
    with pytest.raises(tw.DtypeError, match="no order"):
        tw.matmul(np.ones((2, 2), complex), np.ones((2, 2), complex), semiring="min_plus")


def test_read_only_operands_are_fine():
    M = rng.standard_normal((3, 3))
    M.flags.writeable = False
    close(tw.matmul(M, M), M @ M)


def test_a_plan_is_readable_and_json_able():
    import json

    plan = tw.plan(np.ones((100, 50), np.float32), np.ones((50, 70), np.float32), kernel="reference")
    assert "TILE_WIDTH 16" in str(plan)
    assert json.loads(json.dumps(plan.to_json()))["grid"] == [7, 5]
    assert "\n" not in repr(plan)


class TestDtypeGiven:
    """`dtype=` in every pair, held against NumPy."""

    NAMES = tuple(np.dtype(c).name for c in "?bhilBHILefdgFDG")

    def test_pairs_are_numpys(self):
        seed = next_seed() % 2**32
        print("seed", seed)
        rng = np.random.default_rng(seed)
        for given, wanted in [*rng.choice(self.NAMES, (16, 2)), ("float64", "float16"), ("uint16", "int8")]:
            self.test_every_pair_is_numpys(str(given), str(wanted))

    @pytest.mark.slow
    @pytest.mark.parametrize("wanted", NAMES)
    @pytest.mark.parametrize("given", NAMES)
    def test_every_pair_is_numpys(self, given, wanted):
        rng = np.random.default_rng(len(given) + 17 * len(wanted))
        least = 0 if np.dtype(given).kind == "u" else -100
        M, N = (rng.uniform(least, 100, shape).astype(given) for shape in ((5, 7), (7, 4)))
        with np.errstate(all="ignore"):
            try:
                expected = np.matmul(M, N, dtype=wanted)
            except TypeError:
                with pytest.raises(tw.DtypeError, match="cannot hold a product"):
                    tw.matmul(M, N, dtype=wanted)
                return
            for _ in range(2):  # a call that is known already too
                made = tw.matmul(M, N, dtype=wanted)
                assert made.dtype == expected.dtype
                tolerance = {"float16": 2e-2, "float32": 1e-4, "complex64": 1e-4}.get(wanted, 1e-10)
                np.testing.assert_allclose(made, expected, rtol=tolerance, atol=500 * tolerance)

    def test_scales_of_what_float32_does_not_hold_are_refused(self):
        for dtype in ("float64", "int32", "complex64"):
            with pytest.raises(tw.DtypeError, match=f"scales= is for 8-bit floats, .* M is {dtype}"):
                tw.matmul(np.ones((2, 2), dtype), np.ones((2, 2), dtype), scales=(2.0, None))


class TestOutThatOverlapsItself:
    @pytest.mark.parametrize(("shape", "strides"), [((3, 4), (0, 8)), ((3, 4), (8, 8)), ((2, 3, 4), (0, 32, 8))])
    def test_is_refused(self, shape, strides):
        out = np.lib.stride_tricks.as_strided(np.zeros(40), shape, strides)
        with pytest.raises(tw.ShapeError, match="several of its cells are one place in memory"):
            tw.matmul(np.ones((*shape[:-1], 2)), np.ones((2, 4)), out=out)

    @pytest.mark.parametrize(("shape", "strides"), [((3, 4), (8, 24)), ((1, 4), (0, 8)), ((3, 2), (16, 24))])
    def test_one_that_only_looks_like_it_is_not(self, shape, strides):
        out = np.lib.stride_tricks.as_strided(np.zeros(40), shape, strides)
        apart = len({i * strides[0] + j * strides[1] for i in range(shape[0]) for j in range(shape[1])}) == out.size
        assert apart
        tw.matmul(np.ones((shape[0], 2)), np.ones((2, shape[1])), out=out)
        assert (out == 2).all()
