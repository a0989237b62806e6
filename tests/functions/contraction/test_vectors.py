"""matvec, vecmat, vecdot, inner, outer and tensordot, as NumPy gives them; over other semirings by their definition."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw

RNG = np.random.default_rng(5)
STACK, CUBE, V = RNG.random((2, 3, 4)), RNG.random((4, 3, 5)), RNG.random(4)
Z = STACK + 1j * RNG.random((2, 3, 4))
CALLS = {
    "matvec": lambda L: L.matvec(Z, Z[0, 0]),
    "matvec of stacks": lambda L: L.matvec(STACK, STACK[:, 0]),
    "matvec of a vector": lambda L: L.matvec(V, V),
    "matvec with out": lambda L: L.matvec(STACK, V, out=np.empty((2, 3))),
    "matvec with dtype": lambda L: L.matvec(STACK, V, dtype="f4"),
    "vecmat conjugates": lambda L: L.vecmat(Z[0, :, 0], Z),
    "vecmat that does not meet": lambda L: L.vecmat(V, STACK),
    "vecdot conjugates": lambda L: L.vecdot(Z, Z[:, :1]),
    "vecdot conjugates foreign bytes": lambda L: L.vecdot(Z.astype(">c16"), Z[:, :1]),
    "vecmat conjugates foreign bytes": lambda L: L.vecmat(Z[0, :, 0].astype(">c8"), Z),
    "vecdot along": lambda L: L.vecdot(Z, Z, axis=0),
    "vecdot along none": lambda L: L.vecdot(Z, Z, axis=5),
    "vecdot of vectors": lambda L: L.vecdot(V, V),
    "inner": lambda L: L.inner(STACK, STACK[0]),
    "inner of vectors": lambda L: L.inner(V, V),
    "inner with a number": lambda L: L.inner(3.0, V),
    "inner that does not meet": lambda L: L.inner(STACK, CUBE),
    "outer": lambda L: L.outer(STACK, V),
    "outer of lists": lambda L: L.outer([1, 2], [3, 4]),
    "outer with out": lambda L: L.outer(V, V, out=np.empty((4, 4), "f4")),
    "tensordot": lambda L: L.tensordot(STACK, CUBE, axes=([1, 2], [1, 0])),
    "tensordot of two axes": lambda L: L.tensordot(STACK, np.ones((3, 4, 2))),
    "tensordot of one": lambda L: L.tensordot(STACK, V, 1),
    "tensordot of none": lambda L: L.tensordot(STACK, V, 0),
    "tensordot of pairs": lambda L: L.tensordot(STACK, CUBE, axes=(2, 0)),
    "tensordot of unequal lists": lambda L: L.tensordot(STACK, CUBE, axes=([1], [1, 0])),
    "tensordot of too many": lambda L: L.tensordot(STACK, STACK, axes=4),
    "tensordot of half": lambda L: L.tensordot(STACK, STACK, axes=1.5),
}


@pytest.mark.parametrize("call", CALLS)
def test_as_numpy_gives_it(call):
    name = call.partition(" ")[0]
    if not hasattr(np, name):
        pytest.skip(f"this NumPy has no {name}")
    try:
        want = CALLS[call](np)
    except (ValueError, TypeError, IndexError):
        with pytest.raises(tw.TilewiseError):
            CALLS[call](tw)
        return
    made = CALLS[call](tw)
    assert np.shape(made) == np.shape(want)
    assert made.dtype == want.dtype
    np.testing.assert_allclose(made, want, rtol=1e-5)


def test_over_min_plus():
    a, b = RNG.random((3, 4)), RNG.random((5, 4))
    spread = a[:, None] + b
    np.testing.assert_array_equal(tw.inner(a, b, semiring="min_plus"), spread.min(-1))
    np.testing.assert_array_equal(tw.tensordot(a, b.T, 1, semiring="min_plus"), spread.min(-1))
    np.testing.assert_array_equal(tw.vecdot(a, b[:3], semiring="min_plus"), (a + b[:3]).min(-1))
    np.testing.assert_array_equal(tw.vecmat(b[0], a.T, semiring="min_plus"), (b[0] + a).min(-1))
    np.testing.assert_array_equal(tw.outer(a, b, semiring="min_plus"), a.ravel()[:, None] + b.ravel())


def test_an_unknown_keyword_is_a_type_error():
    with pytest.raises(TypeError, match=r"matvec\(\) got an unexpected keyword argument 'bias'"):
        tw.matvec(STACK, V, bias=V)
