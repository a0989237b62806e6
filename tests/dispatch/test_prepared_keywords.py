"""Every keyword of a call of NumPy arrays is served by a prepared call the second time, and gives the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed, sample_size
from tilewise import api
from tilewise.dispatch.prepared import PREPARED

KEYWORDS = {
    "nothing": {}, "semiring": {"semiring": "max_min"}, "return_arg": {"semiring": "min_plus", "return_arg": True},
    "alpha": {"alpha": 2.5}, "bias": {"bias": True}, "relu": {"activation": "relu"},
    "all of them": {"alpha": -0.5, "bias": True, "activation": "gelu"}, "silu": {"activation": "silu"},
    "narrower": {"dtype": "float32"}, "narrower with a bias": {"dtype": "float32", "bias": True},
    "narrower with the arg": {"dtype": "float32", "semiring": "max_plus", "return_arg": True},
    "kernel": {"kernel": "packed"},
    "tile": {"tile": 8}, "device": {"device": "cpu"}, "precision": {"precision": "ieee"},
    "nonnegative": {"nonnegative": True}, "memory": {"memory": None}, "gelu": {"activation": "gelu"},
    "gelu_tanh": {"activation": "gelu_tanh", "bias": True},
}  # fmt: skip


def unlike(name, keywords, rng, n):
    return {key: rng.random(n).astype(np.float32) if key == "bias" else value for key, value in keywords.items()}


def all_of(product):
    return product if isinstance(product, tuple) else (product,)


@pytest.mark.parametrize("name", KEYWORDS)
@pytest.mark.parametrize("shape", [(5, 7, 6), (3, 5, 7, 6)], ids=["matrices", "stacks"])
def test_the_second_call_is_a_prepared_one(name, shape, monkeypatch):
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    *stack, m, k, n = shape
    for dtype in ("float64", "float32"):

        def drawn(dtype=dtype):
            return (rng.standard_normal((*stack, m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype))

        PREPARED.clear()
        tw.matmul(*drawn(), **unlike(name, KEYWORDS[name], rng, n))
        M, N = drawn()
        keywords = unlike(name, KEYWORDS[name], rng, n)
        with monkeypatch.context() as never:
            never.setattr(api, "first_call", lambda *_: pytest.fail("the call was bound again"))
            made = all_of(tw.matmul(M, N, **keywords))
        PREPARED.clear()
        for one, two in zip(made, all_of(tw.matmul(M, N, **keywords)), strict=True):
            assert one.dtype == two.dtype
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    "keywords",
    [
        {"bias": True, "out": True}, {"alpha": 0.5, "activation": "gelu", "out": True},
        {"bias": True, "accumulate": True},
        {"scales": (2.0, 0.5)}, {"scales": ("rows", None)}, {"scales": (3, "columns")}, {"scales": ("one", "columns")},
        {"scales": ("rows", "columns")}, {"scales": ("one", 2.0)}, {"scales": (None, -0.25)},
        {"semiring": tw.modular(97)}, {"semiring": tw.modular(2**31)},
    ],
    ids=str,
)  # fmt: skip
def test_more_of_them(keywords, monkeypatch):
    """With out, scales and modulo p, again and again on other values; refusals stay refusals."""
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    whole, PREPARED_BEFORE = "semiring" in keywords, dict(PREPARED)
    PREPARED.clear()
    for turn in range(4):
        M, N = (rng.random((6, 6)).astype(np.float32) - 0.5 for _ in range(2))
        if whole:
            M, N = (rng.integers(-9, 2**40, (6, 6)) for _ in range(2))
        given, onto = dict(keywords), rng.random((6, 6)).astype(np.float32)
        if "bias" in given:
            given["bias"] = rng.random(6)
        if "scales" in given:
            drawn = {"rows": rng.random(6), "columns": rng.random(6), "one": rng.random(1)}
            given["scales"] = tuple(drawn[x].astype(np.float32) if isinstance(x, str) else x for x in given["scales"])
        if {"out", "accumulate"} & set(given):
            given["out"] = onto.copy()
        with monkeypatch.context() as never:
            if turn:
                never.setattr(api, "first_call", lambda *_: pytest.fail("the call was bound again"))
            made = tw.matmul(M, N, **given)
        np.testing.assert_allclose(made, expected_of(M, N, given, onto), rtol=2e-5, atol=1e-6)
        assert "out" not in given or made is given["out"]
    PREPARED.update(PREPARED_BEFORE)


def expected_of(M, N, given, onto):
    if "semiring" in given:
        return (M.astype(object) @ N.astype(object) % given["semiring"].modulus).astype(np.int64)
    P = given.get("alpha", 1) * (M.astype(float) @ N.astype(float)) + given.get("bias", 0)
    if "scales" in given:
        a, b = (1 if x is None else x for x in given["scales"])
        P = np.reshape(a, (-1, 1)) * P * np.reshape(b, (1, -1))
    P = P + onto if given.get("accumulate") else P
    return np.vectorize(lambda x: x / 2 * (1 + math.erf(x / math.sqrt(2))))(P) if "activation" in given else P


def test_an_out_that_cannot_be_written_is_refused_again_and_again():
    M, locked = np.ones((4, 4)), np.ones((4, 4))
    tw.matmul(M, M, alpha=2.0, out=np.ones((4, 4)))
    locked.flags.writeable = False
    for _ in range(2):
        with pytest.raises(tw.TilewiseError, match=r"read-only|writ"):
            tw.matmul(M, M, alpha=2.0, out=locked)


def test_an_unknown_keyword_is_refused_whatever_its_value():
    for _ in range(2):
        tw.matmul(np.ones((2, 2)), np.ones((2, 2)))
        for value in (None, 1):
            with pytest.raises(TypeError, match="transpose"):
                tw.matmul(np.ones((2, 2)), np.ones((2, 2)), transpose=value)


def test_lists_are_what_numpy_makes_of_them():
    A = [[1, 2], [3, 4]]
    for left, right in ((A, A), (A, np.array(A)), (np.array(A, float), A), ([1.5, 2], A), ([A, A], A)):
        for _ in range(2):
            made = tw.matmul(left, right)
            assert made.dtype == np.matmul(left, right).dtype
            np.testing.assert_array_equal(made, np.matmul(left, right))
    for bad, error in ((["a"], tw.DtypeError), ([[1, 2], [3]], tw.UsageError), ([None], tw.DtypeError)):
        with pytest.raises(error):
            tw.matmul(bad, A)


def test_an_out_beside_them_is_still_right():
    rng = np.random.default_rng(0)
    M, N, bias = rng.random((4, 5)), rng.random((5, 3)), rng.random(3)
    for _ in range(3):
        out = np.ones((4, 3))
        assert tw.matmul(M, N, alpha=2.0, bias=bias, out=out) is out
        np.testing.assert_allclose(out, 2 * M @ N + bias)
        onto = np.ones((4, 3))
        tw.matmul(M, N, alpha=2.0, bias=bias, out=onto, accumulate=True)
        np.testing.assert_allclose(onto, 2 * M @ N + bias + 1)
        P, arg = tw.matmul(M, N, semiring="min_plus", return_arg=True, out=out)
        assert P is out
        np.testing.assert_array_equal(arg, (M[:, :, None] + N).argmin(1))


def test_vectors_with_an_epilogue():
    rng = np.random.default_rng(0)
    x, N = rng.random(5), rng.random((5, 3))
    for _ in range(2):
        np.testing.assert_allclose(tw.matmul(x, N, alpha=3.0), 3 * x @ N)
        value, arg = tw.matmul(x, x, semiring="max_plus", return_arg=True)
        assert (float(value), int(arg)) == ((2 * x).max(), int(x.argmax()))


@pytest.mark.parametrize("order", [">f8", "packed"])
def test_operands_that_are_copied_for_another_reason_stay_right(order):
    rng = np.random.default_rng(0)
    for _ in range(3):
        A = rng.random((6, 6))
        if order == "packed":
            records = np.zeros((6, 6), [("tag", "i1"), ("value", "f8")])
            records["value"] = A
            M = records["value"]
        else:
            M = A.astype(order)
        np.testing.assert_allclose(tw.matmul(M, A), A @ A)
        np.testing.assert_allclose(tw.matmul(M, A, alpha=2.0), 2 * A @ A)


def test_pairs_of_scales_with_another_layout_have_another_signature():
    """One signature covers all numbers, or arrays of one layout, and nothing else."""
    M = np.eye(4, dtype=np.float32)
    line = np.arange(8, dtype=np.float32)
    for scales in (
        (line[:4], 2),
        (line[::2], 2),
        (line[:4].reshape(4, 1), 2),
        (line[4:], 2.0),
        (None, line[::-2]),
        (2, 3),
    ):
        for _ in range(2):
            a, b = (np.reshape(1 if x is None else x, (-1,)) for x in scales)
            np.testing.assert_array_equal(tw.matmul(M, M, scales=scales), M * a[:, None] * b[None])
    for wrong in ((line[:3], 2), (line, 2), (np.arange(4.0), 2), (1, 2, 3), "ab", ("a", 2)):
        for _ in range(2):
            with pytest.raises(tw.TilewiseError):
                tw.matmul(M, M, scales=wrong)


def test_scales_of_vectors_and_of_whole_numbers():
    M, x = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(3, np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(tw.matmul(M, x, scales=(None, np.array([2], np.float32))), 2 * M @ x)
        np.testing.assert_array_equal(tw.matmul(x, x, scales=(2.0, None)), 6)
    whole = np.full((3, 3), 60, np.uint8)
    for _ in range(2):
        with pytest.raises(
            tw.DtypeError, match="scales= makes floats, and this product is uint8: pass dtype='float32'"
        ):
            tw.matmul(whole, whole, scales=(2.0, 3.0))
        np.testing.assert_array_equal(tw.matmul(whole, whole, scales=(2.0, 3.0), dtype="float32"), 3 * 3600 * 6)


def test_small_products_modulo_p_of_any_dtypes_and_strides():
    seed = next_seed() % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    kinds = [np.dtype(f"{sign}{size}") for sign in "iu" for size in (1, 2, 4, 8)]
    for _ in range(sample_size(60)):
        p, (m, k, n) = int(rng.choice((2, 97, 127, 65_537, 2**31 - 1, 2**31))), rng.integers(1, 12, 3)
        M, N = (
            rng.integers(np.iinfo(d).min, np.iinfo(d).max, shape, d, endpoint=True)
            for d, shape in zip(rng.choice(kinds, 2), ((m, k), (k, n)), strict=True)
        )
        M, N = M if rng.random() < 0.5 else np.asfortranarray(M), N if rng.random() < 0.5 else N[:, ::-1]
        common = np.promote_types(M.dtype, N.dtype)
        if common.kind == "f" or p - 1 > np.iinfo(common).max:
            with pytest.raises(tw.DtypeError, match=r"no whole numbers in common|does not hold remainders"):
                tw.matmul(M, N, semiring=tw.modular(p))
            continue
        made = tw.matmul(M, N, semiring=tw.modular(p))
        assert made.dtype == common
        assert (made.astype(object) == M.astype(object) @ N.astype(object) % p).all()
