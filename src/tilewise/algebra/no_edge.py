"""Integers' "no edge": over min_plus and max_plus the zero (MAX or MIN) must not be added, since MAX + 7 would wrap.

Weights are limited to a range. During a product another value encodes "no edge": so large that any sum with it exceeds
every sum of two weights, and so small that twice the value does not wrap. Larger sums are stored as "no edge" again.
The inner loop is unchanged; the operands are scanned once before it.
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

FEW = 65536  # up to this many weights one temporary array is cheaper than two reductions


@dataclass(frozen=True)
class NoEdge:
    """The values of "no edge" in the operands and during a product over one dtype, and the range of weights."""

    dtype: DType
    stored: int  # in M, N and P: the semiring's zero, MAX for min and MIN for max
    internal: int  # during the product
    min_weight: int
    max_weight: int

    @property
    def farthest(self) -> int:
        """The largest sum of two weights (the smallest for max): a value beyond means "no edge"."""
        return 2 * (self.max_weight if self.stored > 0 else self.min_weight)

    def encode(self, X: Array, name: str) -> tuple[Array, bool]:
        """A copy of an operand, with the same strides and "no edge" encoded; and whether it has any."""
        if self.within(X):
            return X, False
        missing = self.stored == X
        beyond = ((self.min_weight > X) | (self.max_weight < X)) & ~missing
        if beyond.any():
            raise DtypeError(
                f"{name} holds the weight {int(X[beyond][0])}: over {self.dtype} weights are from {self.min_weight} to "
                f"{self.max_weight}, or {self.stored} for no edge; convert {name} to {_wider(self.dtype)}"
            )
        encoded = _empty_like(X)
        np.copyto(encoded, X)
        np.copyto(encoded, self.internal, where=missing)
        return encoded, True

    def within(self, X: Array) -> bool:
        """Whether all are weights. A small array takes one pass: values below the least weight wrap to large ones."""
        if not X.size or X.itemsize < self.dtype.itemsize:  # every value of a narrower dtype is a weight
            return True
        if X.size > FEW:
            return int(X.min()) >= self.min_weight and int(X.max()) <= self.max_weight
        natural, min_weight, most = self._unsigned
        return int(np.maximum.reduce(X.view(natural) - min_weight, None)) <= most

    @cached_property
    def _unsigned(self) -> tuple[Any, Any, int]:
        """The unsigned dtype of the same size, the least weight in it, and the greatest minus the least."""
        natural = np.dtype(f"u{self.dtype.itemsize}")
        return (
            natural,
            natural.type(self.min_weight % 2 ** (8 * self.dtype.itemsize)),
            self.max_weight - self.min_weight,
        )

    def decode(self, P: Array, arg: Array | None = None) -> None:
        """Replace sums that contain "no edge" by the semiring's zero, and their winning k by −1."""
        missing = self.farthest < P if self.stored > 0 else self.farthest > P
        np.copyto(P, self.stored, where=missing)
        if arg is not None:
            np.copyto(arg.reshape(P.shape), -1, where=missing)


def _wider(dtype: DType) -> str:
    wider = f"{dtype.name.rstrip('0123456789')}{16 * dtype.itemsize}"
    return wider if wider in DTYPES else "float64"


def _empty_like(X: Array) -> Array:
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
        internal = top // 2
        max_weight = (internal - 1) // 3 if dtype.kind == "i" else (internal - 1) // 2
        return NoEdge(dtype, top, internal, -max_weight if dtype.kind == "i" else 0, max_weight)
    if is_plain(ring.add, "max") and ring.zero.which == "smallest" and dtype.kind == "i":
        internal = -(int(dtype.largest()) // 2)
        max_weight = (-internal - 1) // 3
        return NoEdge(dtype, int(dtype.smallest()), internal, -max_weight, max_weight)
    return None  # unsigned max_plus: its zero is 0, which is a weight


@lru_cache(maxsize=256)
def absorbs(algebra: Algebra) -> bool:
    """Whether mul(zero, x) is zero: if not (−∞ · −1), cells that are not stored must be skipped."""
    dtype = algebra.partial.numpy
    x = np.array([True] if algebra.partial.kind == "b" else [1, 2, 5, 0, -3]).astype(dtype)
    zero = np.full_like(x, algebra.zero)
    if no_edge_of(algebra) is not None:
        return True
    with np.errstate(all="ignore"):
        products = np.concatenate([algebra.mul(zero, x), algebra.mul(x, zero)])
    return bool((products == algebra.zero).all())


def run_encoded(
    edges: NoEdge | None,
    run: Callable[[Array, Array, Array, Array | None], Any],
    M: Array,
    N: Array,
    P: Array,
    arg: Array | None,
    onto: Algebra | None,
) -> Any:
    """Run a product of host arrays with "no edge" encoded; `onto`: the algebra of a product that is added to P."""
    if edges is None:
        return run(M, N, P, arg)
    M, has_m = edges.encode(M, "M")
    N, has_n = edges.encode(N, "N")
    if not (has_m or has_n):
        return run(M, N, P, arg)
    encoded_p = P
    if onto is not None:  # the values of P may exceed every sum: they are added afterwards
        encoded_p = _empty_like(P)
        encoded_p[...] = edges.stored
    done = run(M, N, encoded_p, arg)
    edges.decode(encoded_p, arg)
    if onto is not None:
        onto.add(P, encoded_p, out=P)
    return done
