"""The signature by machine code distinguishes the same calls as the one by Python."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed, sample_size
from tilewise.arrays.numpy_signature import numpy_signature, quickest_signature, written_directly
from tilewise.system.builtin_call import native_calls

DTYPES = [np.dtype(name) for name in ("f4", "f8", ">f4", "i2", "u8", "?", "f2", "c8")]


def drawn(rng):
    """A matrix or a stack: an owner of its memory, a view, a view of a view, or a view of foreign memory."""
    shape = tuple(rng.integers(0, 6, rng.choice([1, 2, 2, 2, 3])))
    whole = np.zeros(tuple(2 * extent + 1 for extent in shape), rng.choice(DTYPES))
    view = whole[tuple(slice(rng.integers(0, 2), None, rng.choice([1, 2, -1])) for _ in shape)]
    strange = np.frombuffer(bytearray(whole.nbytes + 1)[:-1], whole.dtype).reshape(whole.shape) if whole.size else whole
    kinds = (whole, view, view.T, view.view(), np.lib.stride_tricks.as_strided(whole), whole.copy(order="F"), strange)
    return kinds[rng.integers(len(kinds))]


def test_keys_are_equal_where_they_should_be_and_only_there():
    quick, seed = quickest_signature(), next_seed() % 2**32
    if quick is numpy_signature:
        pytest.skip("no machine code here")
    rng = np.random.default_rng(seed)
    by_key, by_python, held = {}, {}, []
    for _ in range(sample_size(4000)):
        M, N = drawn(rng), drawn(rng)
        held.append((M, N))  # keys contain addresses of dtypes
        quick_key, python_key = quick(M, N, {}), numpy_signature(M, N, {})
        assert (quick_key is None) == (python_key is None), f"seed {seed}"
        if quick_key is None:
            continue
        named = (*python_key[:4], id(M.dtype), id(N.dtype))
        assert by_key.setdefault(quick_key, named) == named, f"seed {seed}"
        assert by_python.setdefault(named, quick_key) == quick_key, f"seed {seed}"
    assert len(by_key) > 100


def test_machine_code_signs_where_it_can_be_made():
    pytest.importorskip("llvmlite")
    if native_calls():
        assert quickest_signature() is not numpy_signature, "the text was refused"


KEYWORDS = {
    "semiring": ["min_plus", "plus_times", tw.modular(7), tw.modular(11)], "alpha": [1.0, 2.0, 3], "device": ["cpu"],
    "bias": [np.ones(3), np.ones(4), np.ones(8)[::2], np.ones(4, np.float32), np.ones((1, 1, 4)), None],
    "out": [np.ones((3, 3)), np.ones((3, 3), order="F"), np.ones((3, 3), np.float32), np.ones(3)[None], None],
    "activation": ["relu", "gelu", None], "accumulate": [True, False], "dtype": [np.float32, "float32", float, None],
    "scales": [(1.0, 2.0), (None, np.ones(3, np.float32)), (3, 4), [1.0, 2.0]],
    "memory": ["1GB", None], "tile": [8, None],
}  # fmt: skip


def test_keywords_are_distinguished_as_by_python():
    quick, seed = quickest_signature(), next_seed() % 2**32
    rng = np.random.default_rng(seed)
    M, N = np.ones((3, 3)), np.ones((3, 3))
    by_key = {}
    for _ in range(4000):
        names = rng.permutation(list(KEYWORDS))[: rng.integers(0, 5)]
        keywords = {str(name): KEYWORDS[name][rng.integers(len(KEYWORDS[name]))] for name in names}
        keywords = {sys.intern(name): value for name, value in keywords.items()}
        quick_key, python_key = quick(M, N, keywords), numpy_signature(M, N, keywords)
        assert (quick_key is None) == (python_key is None), f"seed {seed}: {keywords}"
        if quick_key is None:
            continue
        assert by_key.setdefault(quick_key, python_key) == python_key, f"seed {seed}: {keywords}"
    assert len(by_key) > 500
    assert len(by_key) < 2 * len(set(by_key.values())), "a call may have a key from Python beside its own, no more"


def test_vectors_have_other_keys_than_matrices_of_one_row_or_column():
    quick, v = quickest_signature(), np.ones(3)
    operands = (v, v[:1], np.ones(6)[::2], np.ones((3, 1)), np.ones((1, 3)), np.ones((3, 3)), np.float32(v))
    assert len({quick(M, N, {}) for M in operands for N in operands}) == len(operands) ** 2


def test_unknown_keywords_and_other_classes_are_signed_by_python():
    quick, A = quickest_signature(), np.ones((3, 3), np.float32)
    spelled = "".join(["semi", "ring"])  # another string than the one that is looked for
    for keywords in ({spelled: "min_plus"}, {"alpha": np.float64(2)}, {"dtype": np.dtype("f4")}, {"wrong": 1}):
        assert quick(A, A, keywords) == numpy_signature(A, A, keywords)
    assert quick(A, A, {"semiring": []}) is None
    assert quick(A, A, {"wrong": None}) is None
    assert quick(A, [[1.0]], {}) is None
    assert quick(A, np.ma.array(A), {}) is None


def test_an_out_is_known_at_once_only_where_it_can_be_written_directly():
    quick = quickest_signature()
    if quick is numpy_signature:
        pytest.skip("no machine code here")
    M, N, P = (np.ones((4, 4), np.float32) for _ in range(3))
    locked = np.ones((4, 4), np.float32)
    locked.flags.writeable = False
    assert written_directly(quick(M, N, {"out": P}))
    for out in (M, N, np.ones((8, 8), np.float32)[:4, :4], locked, np.ones((1, 4, 4), np.float32), M.T, None, [[0.0]]):
        assert not written_directly(quick(M, N, {"out": out}))
    assert written_directly(quick(M, N[0].copy(), {"out": np.ones(4, np.float32)}))
    assert not written_directly(quick(M[:], N, {"out": P})), "a view may be of P"
    assert not written_directly(quick(M, N, {"semiring": "min_plus"}))


def test_products_into_the_same_and_other_arrays_are_right():
    """Overlaps, read-only and wrong outs beside right ones, again and again."""
    seed = next_seed() % 2**32
    rng = np.random.default_rng(seed)
    whole = rng.random((9, 9))
    for _ in range(300):
        n = int(rng.integers(1, 5))
        M, N = rng.random((n, n)), whole[:n, :n]
        out = [np.empty((n, n)), M, N, whole[1 : n + 1, 2 : n + 2], np.empty((n, n), order="F")][rng.integers(5)]
        expected = M @ N
        assert tw.matmul(M, N, out=out) is out
        np.testing.assert_allclose(out, expected, err_msg=f"seed {seed}")
    locked = np.empty((2, 2))
    locked.flags.writeable = False
    for _ in range(3):
        with pytest.raises(tw.TilewiseError):
            tw.matmul(np.ones((2, 2)), np.ones((2, 2)), out=locked)


def test_a_dtype_of_its_own_is_never_taken_for_another():
    """A byte-swapped dtype may die and leave its address to another; a call that knows it keeps it."""
    one, two = np.float32([[1, 2], [3, 4]]), np.float32([[1, 0], [0, 1]])
    for order in "<>" * 50:
        dtype = np.dtype(f"{order}f4")
        A = one.astype(dtype)
        assert np.array_equal(tw.matmul(A, two.astype(dtype)), one)
        del A, dtype
