"""Every form of call on Dask arrays: lazy, and the numbers that NumPy's arrays give; nothing is computed unasked."""

from __future__ import annotations

import numpy as np
import pytest

import tilewise as tw

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

RNG = np.random.default_rng(7)
A, B, V = RNG.random((33, 25)), RNG.random((25, 19)), RNG.random(25)
S, T = RNG.random((3, 15, 10)), RNG.random((3, 10, 5))
WHOLE, HALF = RNG.integers(0, 4, (33, 25)), RNG.integers(0, 4, (33, 25)).astype("f2")
HALF[3], HALF[5, 7] = np.inf, np.nan
COUNTED = WHOLE.astype(float), np.ones((33, 25), np.int64)
BIAS, ROWS = RNG.random(19), RNG.random(33).astype("f4")


def lazy(x, chunks=8):
    """As Dask arrays: of tuples, each field; chunks of a stack are of one or two members."""
    if isinstance(x, (tuple, list)):
        return type(x)(lazy(field, chunks) for field in x)
    return da.from_array(x, chunks=(*(2 for _ in x.shape[:-2]), *(chunks for _ in x.shape[-2:])))


def same(x, chunks=8):
    return x


# each call with operands made lazy, or left as they are
CALLS = {
    "a matrix and a vector": lambda d: tw.matmul(d(A), d(V, 7)),
    "a vector and a matrix": lambda d: tw.matmul(d(V), d(B, 9)),
    "two vectors": lambda d: tw.matmul(d(V), d(V, 7)),
    "stacks": lambda d: tw.matmul(d(S), d(T, 6)),
    "a stack and a matrix": lambda d: tw.matmul(d(S), d(T[0], 6), semiring="min_plus"),
    "stacks that broadcast": lambda d: tw.matmul(d(S[:, None]), d(T[None], 6)),
    "a stack and a vector": lambda d: tw.matmul(d(S), d(V[:10], 3)),
    "dtype": lambda d: tw.matmul(d(A), d(B), dtype="float32"),
    "casting": lambda d: tw.matmul(d(A), d(B), dtype="float32", casting="same_kind"),
    "axes": lambda d: tw.matmul(d(A), d(B), axes=[(0, 1), (0, 1), (1, 0)]),
    "the k that won": lambda d: tw.matmul(d(A), d(B, 6), semiring="min_plus", return_arg=True),
    "the first k on a tie": lambda d: tw.matmul(d(WHOLE), d(WHOLE.T, 6), semiring="max_plus", return_arg=True),
    "no k": lambda d: tw.matmul(d(HALF), d(HALF.T, 6), semiring="min_plus", return_arg=True),
    "the k of stacks": lambda d: tw.matmul(d(S), d(T, 6), semiring="max_min", return_arg=True),
    "bias": lambda d: tw.matmul(d(A), d(B), bias=d(BIAS, 5), alpha=0.5),
    "a bias in memory": lambda d: tw.matmul(d(A), d(B), bias=BIAS, activation="gelu"),
    "the bias of stacks": lambda d: tw.matmul(d(S), d(T), bias=BIAS[:5], activation="relu"),
    "scales": lambda d: tw.matmul(d(A.astype("f4")), d(B.astype("f4")), scales=(ROWS, 3.0)),
    "fields": lambda d: tw.matmul(d(COUNTED), d(tuple(x.T for x in COUNTED), 6), semiring="min_count"),
    "fields beside NumPy's": lambda d: tw.matmul(d(COUNTED), tuple(x.T for x in COUNTED), semiring="min_count"),
    "fields of a vector": lambda d: tw.matmul(d(COUNTED), d(tuple(x[0] for x in COUNTED), 6), semiring="min_count"),
    "einsum": lambda d: tw.einsum("ij,jk,lk->il", d(A), d(B), d(B, 6)),
    "einsum of a stack": lambda d: tw.einsum("bij,bjk->bki", d(S), d(T, 6), semiring="max_plus"),
    "einsum without a sum": lambda d: tw.einsum("ij,ij->ji", d(A), d(A, 6), semiring="min_plus"),
    "einsum of one": lambda d: tw.einsum("ij->j", d(A), semiring="max_plus"),
    "a diagonal": lambda d: tw.einsum("ii->i", d(A[:25]), semiring="max_plus"),
    "einsum with dtype": lambda d: tw.einsum("ij,jk", d(A), d(B), dtype="f4", casting="same_kind"),
    "chain": lambda d: tw.chain([d(A), d(B), d(B.T, 6)]),
    "power": lambda d: tw.power(d(A[:25]), 3, semiring="min_plus"),
    "power 0": lambda d: tw.power(d(A[:25]), 0, semiring="min_plus"),
    "matvec": lambda d: tw.matvec(d(S), d(V[:10])),
    "vecdot": lambda d: tw.vecdot(d(A), d(V)),
    "outer": lambda d: tw.outer(d(V), d(BIAS), semiring="max_plus"),
    "tensordot": lambda d: tw.tensordot(d(S), d(T[0]), 1),
    "many": lambda d: tuple(tw.matmul_many([(d(A), d(B)), (d(S), d(T))])),
    "closure of sources": lambda d: tw.closure(d(A[:25]), sources=[4, 1]),
}


def must_not_run(*_: object, **__: object) -> None:
    raise AssertionError("something was computed")


@pytest.mark.drawn(5)  # each compiles kernels of its own
@pytest.mark.parametrize("call", CALLS)
def test_the_same_as_in_memory_and_lazy(call):
    with dask.config.set(scheduler=must_not_run):
        made = CALLS[call](lazy)
    want = CALLS[call](same)
    pairs = zip(made, want, strict=True) if isinstance(want, tuple) else [(made, want)]
    for x, y in pairs:
        assert isinstance(x, da.Array)
        got = x.compute(scheduler="sync")
        assert x.shape == got.shape == np.shape(y)
        assert x.dtype == got.dtype == y.dtype
        np.testing.assert_allclose(got, y, rtol=1e-6)


REFUSED = {
    "out": (lambda: tw.matmul(lazy(A), lazy(B), out=np.empty((33, 19))), "out= does not go with Dask"),
    "kernel": (lambda: tw.matmul(lazy(A), lazy(B), kernel="packed"), "kernel= does not go with Dask"),
    "order": (lambda: tw.matmul(lazy(A), lazy(B), order="F"), "order= is for NumPy's arrays"),
    "a dtype of another kind": (lambda: tw.matmul(lazy(A), lazy(B), dtype=int), "cannot hold a product"),
    "a bias of another length": (lambda: tw.matmul(lazy(A), lazy(B), bias=V), "bias is 25, and P has 19 columns"),
    "no k in a sum": (lambda: tw.matmul(lazy(A), lazy(B), return_arg=True), "plus_times picks none"),
    "fields on a card": (
        lambda: tw.matmul(lazy(COUNTED), lazy(COUNTED), semiring="min_count", device="cuda"), "workers' CPUs"
    ),
    "signs": (lambda: tw.power(lazy(A[:25]), 3, semiring="min_times"), "would have to be computed to look"),
    "groups": (lambda: tw.grouped_matmul(lazy(A), B[None], np.array([33])), "x is a Dask array.*x.compute"),
    "rows": (lambda: tw.scatter_rows(lazy(A), np.arange(33), 33), "y is a Dask array.*y.compute"),
    "masked tiles": (lambda: tw.block_sparse_matmul(lazy(A), B, [[1]]), "M is a Dask array.*M.compute"),
    "a bias of arrays in memory": (lambda: tw.matmul(A, B, bias=lazy(BIAS)), "bias is a Dask array"),
    "a plan": (lambda: tw.plan(lazy(A), lazy(B)), "M is a Dask array"),
}  # fmt: skip


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused_is_refused_with_a_sentence_and_computes_nothing(call):
    made, message = REFUSED[call]
    with dask.config.set(scheduler=must_not_run), pytest.raises(tw.TilewiseError, match=message):
        made()
