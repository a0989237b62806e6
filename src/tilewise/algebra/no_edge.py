"""Integers' "no edge": over min_plus and max_plus the zero (MAX or MIN) must not be added, since MAX + 7 would wrap.

Weights are limited to a range. During a product another value represents "no edge": so large that any sum with it
exceeds every sum of two weights, and so small that twice the value does not wrap. Larger sums are stored as "no edge"
again. The steps themselves cost nothing more; the operands are scanned once before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import DTYPES, Array, DType
from tilewise.algebra.expression import Extreme, is_plain
from tilewise.algebra.semiring import Algebra
from tilewise.errors import DtypeError

FEW = 65536  # weights up to which one temporary array is cheaper than two reductions


@dataclass(frozen=True)
class NoEdge:
    """The values of "no edge" in the operands and during a product over one dtype, and the range of weights."""

    dtype: DType
    outside: int  # in M, N and P: the semiring's zero, MAX for min and MIN for max
    inside: int  # during the product
    lightest: int
    heaviest: int

    @property
    def last(self) -> int:
        """The largest sum of two weights (the smallest for max): values beyond are no path."""
        return 2 * (self.heaviest if self.outside > 0 else self.lightest)

    def enter(self, X: Array, name: str) -> tuple[Array, bool]:
        """A copy of an operand, with the same strides, in which `inside` replaces "no edge"; and whether it has any."""
        if self.within(X):
            return X, False
        gone = self.outside == X
        beyond = ((self.lightest > X) | (self.heaviest < X)) & ~gone
        if beyond.any():
            raise DtypeError(
                f"{name} holds the weight {int(X[beyond][0])}: over {self.dtype} weights are from {self.lightest} to "
                f"{self.heaviest}, or {self.outside} for no edge; convert {name} to {_wider(self.dtype)}"
            )
        made = _lying_alike(X)
        np.copyto(made, X)
        np.copyto(made, self.inside, where=gone)
        return made, True

    def within(self, X: Array) -> bool:
        """Whether all are weights. A small array takes one pass: values below the lightest wrap to large ones."""
        if not X.size or X.itemsize < self.dtype.itemsize:  # every value of a narrower dtype is a weight
            return True
        if X.size > FEW:
            return int(X.min()) >= self.lightest and int(X.max()) <= self.heaviest
        natural, lightest, most = self._unsigned
        return int(np.maximum.reduce(X.view(natural) - lightest, None)) <= most

    @cached_property
    def _unsigned(self) -> tuple[Any, Any, int]:
        """The unsigned dtype of the same size, the lightest weight in it, and the heaviest minus the lightest."""
        natural = np.dtype(f"u{self.dtype.itemsize}")
        return natural, natural.type(self.lightest % 2 ** (8 * self.dtype.itemsize)), self.heaviest - self.lightest

    def leave(self, P: Array, arg: Array | None = None) -> None:
        """Store sums that contain "no edge" as "no edge", with −1 as their winning k."""
        gone = self.last < P if self.outside > 0 else self.last > P
        np.copyto(P, self.outside, where=gone)
        if arg is not None:
            np.copyto(arg.reshape(P.shape), -1, where=gone)


def _wider(dtype: DType) -> str:
    wider = f"{dtype.name.rstrip('0123456789')}{16 * dtype.itemsize}"
    return wider if wider in DTYPES else "float64"


def _lying_alike(X: Array) -> Array:
    """Fresh memory with the shape and strides of X, so that a kernel prepared for X takes it too."""
    steps = [(size - 1) * stride for size, stride in zip(X.shape, X.strides, strict=True)]
    before = -sum(step for step in steps if step < 0)
    room = np.empty(before + sum(step for step in steps if step > 0) + X.itemsize, np.uint8)
    return np.ndarray(X.shape, X.dtype, room, before, X.strides)


@lru_cache(maxsize=256)
def no_edge_of(algebra: Algebra) -> NoEdge | None:
    """The values of "no edge" over this algebra; None unless it is min or max of integer sums."""
    dtype, ring = algebra.partial, algebra.semiring
    if not dtype.is_integer or not isinstance(ring.zero, Extreme) or not is_plain(ring.mul, "add"):
        return None
    if is_plain(ring.add, "min") and ring.zero.which == "largest":
        top = int(dtype.largest())
        inside = top // 2
        heaviest = (inside - 1) // 3 if dtype.kind == "i" else (inside - 1) // 2
        return NoEdge(dtype, top, inside, -heaviest if dtype.kind == "i" else 0, heaviest)
    if is_plain(ring.add, "max") and ring.zero.which == "smallest" and dtype.kind == "i":
        inside = -(int(dtype.largest()) // 2)
        heaviest = (-inside - 1) // 3
        return NoEdge(dtype, int(dtype.smallest()), inside, -heaviest, heaviest)
    return None  # unsigned max_plus: its zero is 0, which is a weight


@lru_cache(maxsize=256)
def absorbs(algebra: Algebra) -> bool:
    """Whether mul(zero, x) is zero: where it is not (−∞ · −1), only stored cells may meet."""
    dtype = algebra.partial.numpy
    x = np.array([True] if algebra.partial.kind == "b" else [1, 2, 5, 0, -3]).astype(dtype)
    zero = np.full_like(x, algebra.zero)
    if no_edge_of(algebra) is not None:
        return True
    with np.errstate(all="ignore"):
        made = np.concatenate([algebra.mul(zero, x), algebra.mul(x, zero)])
    return bool((made == algebra.zero).all())


def around(
    edges: NoEdge | None,
    run: Callable[[Array, Array, Array, Array | None], Any],
    M: Array,
    N: Array,
    P: Array,
    arg: Array | None,
    onto: Algebra | None,
) -> Any:
    """Run a product of host arrays with "no edge" replaced; `onto` is the algebra where it is added onto P."""
    if edges is None:
        return run(M, N, P, arg)
    M, missing_m = edges.enter(M, "M")
    N, missing_n = edges.enter(N, "N")
    if not (missing_m or missing_n):
        return run(M, N, P, arg)
    made = P
    if onto is not None:  # the values of P may exceed every sum: they are added afterwards
        made = _lying_alike(P)
        made[...] = edges.outside
    done = run(M, N, made, arg)
    edges.leave(made, arg)
    if onto is not None:
        onto.add(P, made, out=P)
    return done
