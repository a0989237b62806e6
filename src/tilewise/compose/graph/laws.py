"""Requirements of a closure on its semiring and its weights, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array, DType
from tilewise.algebra.expression import Apply, Number
from tilewise.algebra.no_edge import absorbs
from tilewise.algebra.semiring import Algebra
from tilewise.arrays.labelled import as_host
from tilewise.errors import AlgebraError, DtypeError, UsageError

Progress = Callable[[int, int], None]  # called with the blocks done and those in all


@lru_cache(maxsize=256)
def is_idempotent(algebra: Algebra) -> bool:
    """Whether add(x, x) is x, so that walking a cycle again adds nothing."""
    samples = _samples(algebra.partial)
    with np.errstate(all="ignore"):
        return np.array_equal(algebra.add(samples, samples), samples)


def check_idempotent(algebra: Algebra) -> None:
    if not is_idempotent(algebra):
        raise AlgebraError(
            f"{algebra.semiring} has no add with add(x, x) == x (min, max, or): its closure takes a matrix that lies "
            "whole in the host's memory"
        )
    check_no_edge(algebra)
    check_absorbs(algebra)


def check_absorbs(algebra: Algebra) -> None:
    """Refuse a zero that mul turns into an edge: products in blocks multiply it. Searches read edges only."""
    if not absorbs(algebra):
        raise AlgebraError(
            f"{algebra.zero} is the zero of {algebra.semiring} over {algebra.element}, and mul makes an edge of it and "
            "a weight below 0: W is searched as an array on the host, not in blocks or on a card"
        )


def check_no_edge(algebra: Algebra) -> None:
    """Over bool mul(zero, x) must be zero: there is no third value for "no edge"."""
    if algebra.partial.kind != "b":
        return
    samples = _samples(algebra.partial)
    nothing = np.full_like(samples, algebra.zero)
    if not (algebra.mul(nothing, samples) == nothing).all() or not (algebra.mul(samples, nothing) == nothing).all():
        raise DtypeError(
            f"over bool {algebra.zero} is the zero of {algebra.semiring}, and mul makes an edge of it: use lor_land, "
            "or convert the weights to float64"
        )


@lru_cache(maxsize=256)
def one_of(algebra: Algebra) -> Number:
    """The neutral element of mul, the weight of the empty path: for all weights if there is one (−∞ for max), else
    for weights that are not below 0."""
    dtype = algebra.partial
    above = _samples(dtype)
    for samples in (above,) if dtype.kind in "bu" else (np.concatenate([above, -above]), above):
        one = neutral(algebra, samples, (0, 1, dtype.smallest(), dtype.largest()))
        if one is not None:
            return one
    raise AlgebraError(f"closure needs a one with mul(one, x) == x, and {algebra.semiring} has none over {dtype}")


def neutral(algebra: Algebra, samples: Array, candidates: tuple[Number, ...]) -> Number | None:
    """The first candidate with mul(one, x) == x == mul(x, one) for all samples."""
    for one in candidates:
        unit = np.full_like(samples, one)
        with np.errstate(all="ignore"):
            right, left = algebra.mul(samples, unit), algebra.mul(unit, samples)
        if np.array_equal(right, samples) and np.array_equal(left, samples):
            return one
    return None


def _samples(dtype: DType) -> Array:
    if dtype.kind == "b":
        return np.array([False, True])
    return np.array([1, 2, 3, 5]).astype(dtype.numpy)


def sentinel_of(weights: Array, nodes: int, algebra: Algebra) -> bool | int | float:
    """The value for "no edge" while integers are added: twice it does not wrap. For other operations the zero."""

    def heaviest() -> int:
        edges = weights[algebra.zero != weights]
        return max((abs(int(edges.max())), abs(int(edges.min()))) if edges.size else (0,))

    return choose_sentinel(algebra, nodes, heaviest)


def choose_sentinel(algebra: Algebra, nodes: int, heaviest: Callable[[], int]) -> bool | int | float:
    """`sentinel_of` by a function that returns the largest |weight| and is called only if needed.

    DtypeError if a path could reach the sentinel, or if mul could overflow otherwise.
    """
    mul, dtype = algebra.semiring.mul, algebra.partial
    cannot_overflow = isinstance(mul, Apply) and mul.op in ("min", "max", "and", "or")
    if not dtype.is_integer or cannot_overflow:
        assert not isinstance(algebra.zero, complex)
        return algebra.zero
    if not (isinstance(mul, Apply) and mul.op == "add" and dtype.kind == "i"):
        raise DtypeError(
            f"closure over {algebra.semiring} could leave the range of {dtype}: convert the weights to float64"
        )
    info = np.iinfo(dtype.numpy)
    most = heaviest()
    if most * max(nodes, 1) >= info.max // 4:
        raise DtypeError(
            f"weights up to {most} over paths of up to {nodes} edges could leave the range of {dtype}: "
            "convert them to a wider integer dtype or to float64"
        )
    return info.max // 2 if algebra.zero == info.max else -(info.max // 2)


def algebra_with_zero(algebra: Algebra, absent: bool | int | float) -> Algebra:
    """The algebra with the sentinel for "no edge" as its zero."""
    if absent == algebra.zero:
        return algebra
    return algebra.semiring.with_zero(absent).over(algebra.element)


def nodes_of(sources: Any, nodes: int) -> Array | None:
    """`sources=` as an array of node numbers, a single number as an array of one. Searches index memory by them, so
    none may be outside the graph."""
    if sources is None:
        return None
    given = np.atleast_1d(as_host(sources, "sources"))
    if given.shape == (0,):  # NumPy makes floats of an empty list
        return given.astype(np.int64)
    if given.dtype.kind not in "iu" or given.ndim != 1 or not ((given >= 0) & (given < nodes)).all():
        raise UsageError(f"sources={given.tolist()} must be numbers of nodes, from 0 to {nodes - 1}")
    return given.astype(np.int64)
