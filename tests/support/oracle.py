"""The right answer, computed by code that shares nothing with the backends: broadcast all products, then reduce.

Sums of floats are taken in float64 (or longdouble) and compared within the error a sum of that dtype may have;
everything else is exact and compared exactly.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
EPS |= {np.dtype(np.longdouble).name: 2.0**-52, np.dtype(np.clongdouble).name: 2.0**-52}
EPS |= {"complex64": EPS["float32"], "complex128": EPS["float64"]}
HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


def partial_dtype(dtype):
    return np.dtype(np.float32) if dtype in HALVES else dtype


def extremes(dtype):
    if dtype.kind == "b":
        return False, True
    if dtype.kind in "iu":
        return np.iinfo(dtype).min, np.iinfo(dtype).max
    return -np.inf, np.inf


NEAR = 2**16  # products at a time, which the caches hold


def reduced(add, mul, x, y, start):
    """`add` over k of every `mul` of x and y; a slab of k at a time, so that no m × k × n numbers lie in memory."""
    deep = max(1, NEAR // max(1, x.shape[-2] * y.shape[-1]))
    found = None
    for k in range(0, max(1, x.shape[-1]), deep):
        products = mul(x[..., :, k : k + deep, None], y[..., None, k : k + deep, :])
        if found is None:
            found = add.reduce(products, axis=-2, dtype=products.dtype, initial=products.dtype.type(start))
        else:
            found = add(found, products[..., 0, :] if deep == 1 else add.reduce(products, axis=-2, dtype=found.dtype))
    return found


def oracle(M, N, semiring):
    """P for stacks of matrices over a built-in semiring, as (values, error bound or None when exact)."""
    dtype = np.promote_types(M.dtype, N.dtype)
    work = partial_dtype(dtype)
    x, y = (a.astype(dtype).astype(work) for a in (M, N))
    low, high = extremes(work)
    with np.errstate(all="ignore"):
        if semiring == "lor_land" or (semiring == "plus_times" and dtype.kind == "b"):
            return reduced(np.logical_or, np.logical_and, x != 0, y != 0, False), None
        if semiring == "plus_times":
            if dtype.kind in "iu":
                return reduced(np.add, np.multiply, x, y, 0), None
            wide = np.complex128 if dtype.kind == "c" else np.float64
            exact = np.matmul(x.astype(wide), y.astype(wide))
            bound = np.matmul(abs(x).astype(np.float64), abs(y).astype(np.float64))
            k = x.shape[-1]
            error = bound * EPS[work.name] * (k + 2) * 2
            return exact.astype(dtype), error + abs(exact) * EPS[dtype.name] + 1e-37
        if semiring == "logaddexp_plus":
            exact = reduced(np.logaddexp, lambda x, y: (x + y).astype(np.float64), x, y, -np.inf)
            k = x.shape[-1]
            scale = np.where(np.isfinite(exact), abs(exact), 0) + 1
            return exact.astype(dtype), scale * (EPS[work.name] * (k + 4) * 4 + EPS[dtype.name])
        add, mul = semiring.split("_")
        multiply = {"plus": np.add, "times": np.multiply, "min": np.fmin, "max": np.fmax}[mul]
        reduce, zero = {"min": (np.fmin, high), "max": (np.fmax, low)}[add]
        return reduced(reduce, multiply, x, y, zero).astype(dtype), None


def assert_product(P, M, N, semiring):
    assert P.dtype == (np.dtype(bool) if semiring == "lor_land" else np.promote_types(M.dtype, N.dtype))
    assert_close(P, *oracle(M, N, semiring))


def assert_close(P, expected, error):
    """P is `expected`, exactly where `error` is None."""
    assert P.shape == expected.shape
    assert P.dtype == expected.dtype
    if error is None:
        if P.dtype.kind != "V" and np.array_equal(P, expected):
            return
        if P.dtype in HALVES:  # NumPy does not know that a bfloat16 NaN equals itself here
            P, expected = P.astype(np.float32), expected.astype(np.float32)
        np.testing.assert_array_equal(P, expected)
        return
    wide = np.complex128 if P.dtype.kind == "c" else np.float64
    got, want = P.astype(wide), expected.astype(wide)
    finite = np.isfinite(want)
    if P.dtype.kind != "c":  # the parts of a complex Inf or NaN depend on the order of operations
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        rest = ~finite & ~np.isnan(want)
        np.testing.assert_array_equal(got[rest], want[rest])
    error = np.broadcast_to(error, want.shape)
    with np.errstate(all="ignore"):
        wrong = finite & ~(abs(got - want) <= error)
    assert not wrong.any(), f"{wrong.sum()} cells off, worst {abs(got - want)[wrong].max()}"
