"""NumPy's call forms: axes=, order=, casting=, a tuple as out=; labels and paths as lists. As NumPy gives them."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw

RNG = np.random.default_rng(3)
X, Y, V = RNG.random((2, 3, 4)), RNG.random((2, 4, 3)), RNG.random(4)
A, B, C = RNG.random((3, 4)), RNG.random((4, 5)), RNG.random((5, 2))
FORTRAN = np.asfortranarray(A), np.asfortranarray(B)

CALLS = {
    "axes of stacks": lambda L: L.matmul(X, X, axes=[(0, 2), (2, 0), (1, 2)]),
    "axes of P": lambda L: L.matmul(X, Y, axes=[(-2, -1), (-2, -1), (0, 1)]),
    "axes with out": lambda L: L.matmul(X, Y, axes=[(-2, -1), (-2, -1), (2, 0)], out=np.empty((3, 2, 3))),
    "axes of a vector": lambda L: L.matmul(X, V, axes=[(1, 2), (0,), (0,)]),
    "axes of a vector as a number": lambda L: L.matmul(X, V, axes=[(1, 2), 0, 0]),
    "axes of two vectors": lambda L: L.matmul(V, V, axes=[0, 0, ()]),
    "axes twice": lambda L: L.matmul(X, Y, axes=[(-2, -1), (-2, -1), (0, 0)]),
    "axes too few": lambda L: L.matmul(X, Y, axes=[(-2, -1), (-2, -1)]),
    "axes outside": lambda L: L.matmul(X, Y, axes=[(-2, -1), (-2, 7), (0, 1)]),
    "axes as a number": lambda L: L.matmul(X, Y, axes=5),
    "out in a tuple": lambda L: L.matmul(A, B, out=(np.empty((3, 5)),)),
    "None in a tuple": lambda L: L.matmul(A, B, out=(None,)),
    "two in a tuple": lambda L: L.matmul(A, B, out=(np.empty((3, 5)), None)),
    **{f"order {o}": lambda L, o=o: L.matmul(A, B, order=o) for o in "CFAKQ"},
    **{f"order {o} of stacks": lambda L, o=o: L.matmul(X, Y, order=o) for o in "CFA"},
    **{f"order {o} of Fortran's": lambda L, o=o: L.matmul(*FORTRAN, order=o) for o in "CFA"},
    "casting safe": lambda L: L.matmul(A, B, casting="safe", dtype="f4"),
    "casting no": lambda L: L.matmul(A, B.astype("f4"), casting="no"),
    "casting no, alike": lambda L: L.matmul(A, B, casting="no"),
    "casting no of out": lambda L: L.matmul(A, B, casting="no", out=np.empty((3, 5), "f4")),
    "casting unsafe": lambda L: L.matmul(9 * A, B, casting="unsafe", dtype="i4"),
    "casting unsafe of out": lambda L: L.matmul(9 * A, B, casting="unsafe", out=np.empty((3, 5), "i4")),
    "casting unknown": lambda L: L.matmul(A, B, casting="perhaps"),
    "labels": lambda L: L.einsum(A, [0, 1], B, [1, 2]),
    "labels and output": lambda L: L.einsum(A, [0, 1], B, [1, 2], [2, 0]),
    "labels out of order": lambda L: L.einsum(A, [30, 1], B, [1, 2]),
    "labels with an ellipsis": lambda L: L.einsum(A, [..., 1], B, [1, 2], [2, ...]),
    "labels past 51": lambda L: L.einsum(A, [0, 60]),
    "no labels": lambda L: L.einsum(A, B),
    "a path": lambda L: L.einsum("ij,jk,kl->il", A, B, C, optimize=["einsum_path", (1, 2), (0, 1)]),
    "a path of one step": lambda L: L.einsum("ij,jk,kl->il", A, B, C, optimize=["einsum_path", (0, 1, 2)]),
    "NumPy's path": lambda L: L.einsum("ij,jk,kl", A, B, C, optimize=np.einsum_path("ij,jk,kl", A, B, C)[0]),
    "a path outside": lambda L: L.einsum("ij,jk,kl->il", A, B, C, optimize=["einsum_path", (0, 7)]),
    "a name with a limit": lambda L: L.einsum("ij,jk,kl->il", A, B, C, optimize=("greedy", 1000)),
    "optimize True": lambda L: L.einsum("ij,jk,kl->il", A, B, C, optimize=True),
    "optimize False": lambda L: L.einsum("ij,jk,kl->il", A, B, C, optimize=False),
    "optimize a number": lambda L: L.einsum("ij,jk,kl->il", A, B, C, optimize=3.5),
    "einsum dtype": lambda L: L.einsum("ij,jk", A.astype("f4"), B.astype("f4"), dtype="f8"),
    "einsum dtype, narrower": lambda L: L.einsum("ij,jk", A, B, dtype="f4"),
    "einsum dtype, same_kind": lambda L: L.einsum("ij,jk", A, B, dtype="f4", casting="same_kind"),
    "einsum casting no": lambda L: L.einsum("ij,jk", A, B.astype("f4"), casting="no"),
    "einsum out": lambda L: L.einsum("ij,jk", A, B, out=np.empty((3, 5))),
    "einsum out of float32": lambda L: L.einsum("ij,jk", A, B, out=np.empty((3, 5), "f4")),
    "einsum out, same_kind": lambda L: L.einsum("ij,jk", A, B, out=np.empty((3, 5), "f4"), casting="same_kind"),
    "einsum out of another shape": lambda L: L.einsum("ij,jk", A, B, out=np.empty((3, 6))),
    "einsum out over an operand": lambda L: L.einsum("ij,jk", A, np.eye(4), out=A.copy()),
    "einsum order F": lambda L: L.einsum("ij,jk", A, B, order="F"),
    "einsum order A": lambda L: L.einsum("ij,jk", *FORTRAN, order="A"),
    "einsum order unknown": lambda L: L.einsum("ij,jk", A, B, order="Q"),
}


@pytest.mark.parametrize("call", CALLS)
def test_as_numpy_gives_it(call):
    try:
        want = CALLS[call](np)
    except (ValueError, TypeError, IndexError):
        with pytest.raises(tw.TilewiseError):
            CALLS[call](tw)
        return
    made = CALLS[call](tw)
    assert made.dtype == want.dtype
    np.testing.assert_allclose(made, want, rtol=1e-6)
    if "order" in call:
        assert made.strides == want.strides


def test_out_is_returned_itself():
    P = np.empty((3, 5))
    assert tw.matmul(A, B, out=(P,)) is P
    assert tw.matmul(A, B, out=P, axes=[(0, 1)] * 3) is P
    assert tw.einsum("ij,jk", A, B, out=P) is P
    made, arg = tw.matmul(A, B, out=(P,), semiring="min_plus", return_arg=True)
    assert made is P
    np.testing.assert_array_equal(arg, (A[:, :, None] + B).argmin(1))


def test_axes_of_any_semiring_and_the_k_that_won():
    P, arg = tw.matmul(X, Y, axes=[(1, 2), (1, 2), (0, 1)], semiring="max_plus", return_arg=True)
    spread = X[:, :, :, None] + Y[:, None]
    np.testing.assert_allclose(P, spread.max(2).transpose(1, 2, 0))
    np.testing.assert_array_equal(arg, spread.argmax(2).transpose(1, 2, 0))


@pytest.mark.parametrize("how", [{"order": "F"}, {"casting": "safe"}], ids=str)
def test_numpys_own_rules_are_refused_for_other_arrays(how):
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(tw.UsageError, match=f"{next(iter(how))}= is for NumPy's arrays, and M is csr_array"):
        tw.matmul(sparse.csr_array(A), sparse.csr_array(B), **how)
