"""The laws a semiring must keep, and the fill they lead to."""

from __future__ import annotations

import copy
import gc
import pickle

import numpy as np
import pytest

import tilewise as tw
from operands import DTYPES, SEMIRINGS, works
from seeds import next_seed
from tilewise.algebra.builtin import ALIASES, dtype_table, find_semiring
from tilewise.algebra.dtypes import DTYPES as KNOWN
from tilewise.algebra.semiring import BY_FINGERPRINT, _over, builtin_semiring, check_laws
from tilewise.errors import AlgebraError


@pytest.mark.parametrize("name", SEMIRINGS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_pads_meet_to_zero_and_zero_is_neutral(name, dtype):
    if not works(name, dtype):
        with pytest.raises(tw.DtypeError, match=f"{name} does not work over {dtype}"):
            tw.semirings[name].over(KNOWN[dtype])
        return
    algebra = tw.semirings[name].over(KNOWN[dtype])
    number = algebra.partial.numpy
    pad_m, pad_n, zero = (np.array([v]).astype(number) for v in (algebra.pad_m, algebra.pad_n, algebra.zero))
    with np.errstate(all="ignore"):
        made = algebra.mul(pad_m, pad_n)
        np.testing.assert_array_equal(made, zero)
        value = np.array([1]).astype(number)
        np.testing.assert_array_equal(algebra.add(value, made), value)


@pytest.mark.parametrize("name", SEMIRINGS)
def test_ours_keep_the_laws(name):
    """They are made unchecked, so that a start does not pay for it."""
    semiring = find_semiring(name)
    check_laws(semiring)  # raises AlgebraError on the first law that fails
    assert semiring.name == name


def test_a_law_that_one_of_ours_broke_would_be_found():
    with pytest.raises(AlgebraError, match="not neutral"):
        check_laws(builtin_semiring("min_plus", tw.minimum, lambda x, y: x + y, 0))


def test_the_pads_that_are_not_the_zero():
    """(−∞)·(−∞) is +∞, and MAX + MAX wraps."""
    assert tw.semirings["max_times"].over(KNOWN["float32"]).pad_n == 1
    algebra = tw.semirings["min_plus"].over(KNOWN["int32"])
    assert (algebra.pad_m, algebra.pad_n) == (2**31 - 1, 0)


def test_the_table_of_dtypes():
    table = dtype_table()
    assert set(table) == set(SEMIRINGS)
    for name in SEMIRINGS:
        for dtype in DTYPES:
            expected = ("bool" if name == "lor_land" else dtype) if works(name, dtype) else "refused"
            assert table[name][dtype].partition(":")[0] == expected


def test_aliases():
    for alias, name in ALIASES.items():
        assert find_semiring(alias) is tw.semirings[name]


class TestOnesOwn:
    def test_runs_as_written(self):
        best = tw.Semiring("best_chance", add=tw.maximum, mul=lambda x, y: x * y, zero=0)
        rng = np.random.default_rng(0)
        A, B = rng.random((5, 7)), rng.random((7, 3))
        np.testing.assert_array_equal(tw.matmul(A, B, semiring=best), (A[:, :, None] * B).max(1))

    def test_counts_matches(self):
        matches = tw.Semiring("matches", add=lambda x, y: x + y, mul=lambda x, y: x == y, zero=0)
        rng = np.random.default_rng(0)
        A, B = rng.integers(0, 3, (5, 17)), rng.integers(0, 3, (17, 4))
        np.testing.assert_array_equal(tw.matmul(A, B, semiring=matches), (A[:, :, None] == B).sum(1))
        np.testing.assert_array_equal(
            tw.matmul(A.astype("f4"), B.astype("f4"), semiring=matches, tile=8), (A[:, :, None] == B).sum(1)
        )

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"add": tw.minimum, "zero": 0}, r"zero=0.0 is not neutral: add\(zero, 1\) is 0.0; .* zero=tw.largest"),
            ({"add": lambda x, y: 2 * x - y, "zero": 0}, "not neutral"),
            ({"add": lambda x, y: x + y + x * x * y, "zero": 0}, r"must be commutative, but add\(1.0, 2.0\) is 5.0"),
            ({"add": lambda x, y: x + y + x * y * x * y, "zero": 0}, "must be associative"),
            (
                {"add": tw.maximum, "zero": tw.smallest, "pad_m": tw.smallest, "pad_n": tw.smallest},
                r"mul\(pad_m=-inf, pad_n=-inf\) is inf, but it must be exactly zero=-inf",
            ),
            ({"add": tw.maximum, "zero": tw.smallest, "pad_m": 1}, "both pad_m and pad_n, or neither"),
            ({"add": tw.maximum, "zero": lambda: 0}, "not function"),
            ({"add": tw.minimum, "mul": lambda x, y: x * 0 + 5, "zero": tw.largest}, "no fill is known"),
        ],
    )
    def test_that_breaks_a_law_is_refused_at_definition(self, arguments, message):
        with pytest.raises(tw.AlgebraError, match=message):
            tw.Semiring("bad", **({"mul": lambda x, y: x * y} | arguments))

    def test_bits_and_remainders(self):
        rng = np.random.default_rng(next_seed() % 2**32)
        parity = tw.Semiring("parity", add=lambda x, y: x ^ y, mul=lambda x, y: x & y, zero=0)
        masks = tw.Semiring("masks", add=lambda x, y: x | y, mul=lambda x, y: x & y, zero=0)
        modulo = tw.Semiring("modulo 97", add=lambda x, y: (x + y) % 97, mul=lambda x, y: (x * y) % 97, zero=0)
        M, N = rng.integers(0, 97, (5, 19)), rng.integers(0, 97, (19, 6))
        spread = M[:, :, None] & N
        # every operation over every dtype: tests/algebra/test_to_llvm.py
        elsewhere = (({"device": "simt", "tile": 4}, ("uint16",)), ({"kernel": "reference"}, ("int32",)))
        for how, dtypes in (({}, ("int64", "uint16", "int32")), *elsewhere):
            for dtype in dtypes:
                x, y = M.astype(dtype), N.astype(dtype)
                np.testing.assert_array_equal(tw.matmul(x, y, semiring=parity, **how), np.bitwise_xor.reduce(spread, 1))
                np.testing.assert_array_equal(tw.matmul(x, y, semiring=masks, **how), np.bitwise_or.reduce(spread, 1))
                np.testing.assert_array_equal(tw.matmul(x, y, semiring=modulo, **how), M @ N % 97)
            truths = tw.matmul(M % 2 == 1, N % 2 == 1, semiring=parity, **how)
            np.testing.assert_array_equal(truths, (M % 2) @ (N % 2) % 2 == 1)
        with pytest.raises(tw.DtypeError, match=r"parity does not work over float64: \^ works on the bits of integers"):
            tw.matmul([[1.0]], [[1.0]], semiring=parity)
        with pytest.raises(tw.DtypeError, match="% needs integers, and float64 is not"):
            tw.matmul([[1.0]], [[1.0]], semiring=modulo)

    def test_the_witness_that_is_printed_is_one(self):
        with pytest.raises(tw.AlgebraError, match=r"zero=0.0 is not neutral: add\(zero, 2\) is 1.0"):
            tw.Semiring("any", add=tw.logical_or, mul=lambda x, y: x * y, zero=0)
        with pytest.raises(tw.AlgebraError, match="add must be") as caught:
            tw.Semiring("odd", add=lambda x, y: tw.where(x > 5, x, x + y), mul=lambda x, y: x * y, zero=0)
        assert "add(" in str(caught.value)

    def test_a_constant_that_does_not_fit_refuses_the_dtype(self):
        half = tw.Semiring("half", add=lambda x, y: x + y, mul=lambda x, y: x * y * 0.5, zero=0)
        with pytest.raises(tw.DtypeError, match=r"half does not work over int32: the constant 0\.5 does not fit int32"):
            tw.matmul(np.ones((2, 2), np.int32), np.ones((2, 2), np.int32), semiring=half)

    def test_an_infinity_for_integers_is_refused_with_what_to_write(self):
        mine = tw.Semiring("mine", add=tw.minimum, mul=lambda x, y: x + y, zero=float("inf"))
        with pytest.raises(tw.DtypeError, match=r"write tw\.largest or tw\.smallest"):
            tw.matmul(np.ones((2, 2), int), np.ones((2, 2), int), semiring=mine)


class TestFingerprint:
    def test_equal_semirings_share_a_fingerprint_and_different_ones_do_not(self):
        def made(name="own", add=tw.maximum, mul=lambda x, y: x * y, zero=0, **how):
            return tw.Semiring(name, add, mul, zero, **how)

        others = [made(), made("other"), made(add=lambda x, y: x + y), made(mul=lambda x, y: x * (y * 2)),
                  made(mul=lambda x, y: x * y * 2), made(mul=lambda x, y: x * y * 2.0), made(zero=tw.smallest),
                  made(pad_m=0, pad_n=0), made(pad_m=0, pad_n=1), made("own' x")]  # fmt: skip
        assert len({own.fingerprint for own in others}) == len(others)
        assert made().fingerprint == others[0].fingerprint == copy.deepcopy(others[0]).fingerprint
        assert pickle.loads(pickle.dumps(others[0])).fingerprint == others[0].fingerprint

    def test_it_finds_a_semiring_as_long_as_one_lives(self):
        first, second = (tw.Semiring("fleeting", tw.maximum, lambda x, y: x * y * 5, 0) for _ in range(2))
        text = first.fingerprint
        del first
        _over.cache_clear()  # which keeps the last thousand
        gc.collect()
        assert BY_FINGERPRINT[text] == second
        del second
        gc.collect()
        assert text not in BY_FINGERPRINT

    def test_common_subexpressions_are_written_once(self):
        def mul(x, y):
            for _ in range(8):
                x = x * x
            return x * y

        assert len(tw.Semiring("deep", tw.maximum, mul, 0).fingerprint) < 500
