"""A semiring: what takes the place of + and ×, from which value a sum starts, and what fills a tile's empty cells.

The law a fill must keep is mul(pad_m, pad_n) == zero, exactly: in the last phase pads only ever meet pads, and what
they make must leave the sum as it is. The additive identity is not always a right pad: (−∞)·(−∞) = +∞ breaks max_times,
and MAX + MAX wraps in integer min_plus. So pads are found by the law, per dtype, when the semiring is defined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import DTYPES, DType
from tilewise.algebra.expression import (
    Apply,
    Constant,
    Expression,
    Extreme,
    Number,
    check_types,
    constant_over,
    lift,
    trace,
)
from tilewise.algebra.to_numpy import Function, numpy_function
from tilewise.errors import AlgebraError, DtypeError

Operation = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Algebra:
    """A semiring over one dtype: everything an engine needs to know, as plain values."""

    semiring: Semiring
    element: DType  # as it lies in M and N
    partial: DType  # what a sum is kept in
    result: DType  # as it lies in P
    zero: Number
    pad_m: Number
    pad_n: Number

    @property
    def add(self) -> Function:
        """`add` on NumPy arrays of `partial`."""
        return numpy_function(self.semiring.add, self.partial)

    @property
    def mul(self) -> Function:
        """`mul` on NumPy arrays of `partial`."""
        return numpy_function(self.semiring.mul, self.partial)


@dataclass(frozen=True, init=False)
class Semiring:
    """What takes the place of + and ×: two functions and a zero.

    add, mul: functions of two values, traced once (see `tilewise.minimum` and kin).
    zero: the identity of add; `tw.largest` and `tw.smallest` mean ∞, MAX or True as the dtype has it.
    pad_m, pad_n: what fills the edge tiles of M and N; found by the law when not given.
    boolean: operands count as true where they are not 0, and the product is bool.

    >>> best_chance = tw.Semiring("best_chance", add=tw.maximum, mul=lambda x, y: x * y, zero=0)
    >>> tw.matmul([[0.5, 0.25]], [[0.5], [0.75]], semiring=best_chance)
    array([[0.25]])
    """

    name: str
    add: Expression = field(repr=False)
    mul: Expression = field(repr=False)
    zero: Expression = field(repr=False)
    pad_m: Expression | None = field(repr=False)
    pad_n: Expression | None = field(repr=False)
    boolean: bool = field(repr=False)

    def __init__(
        self,
        name: str,
        add: Operation,
        mul: Operation,
        zero: Any,
        *,
        pad_m: Any = None,
        pad_n: Any = None,
        boolean: bool = False,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise AlgebraError(f"a semiring's name must be a word, got {name!r}")
        if (pad_m is None) != (pad_n is None):
            raise AlgebraError(f"semiring {name!r}: give both pad_m and pad_n, or neither")

        def put(key: str, value: object) -> None:
            object.__setattr__(self, key, value)

        put("name", name)
        put("add", trace(add, f"semiring {name!r}: add"))
        put("mul", trace(mul, f"semiring {name!r}: mul"))
        for key, value in (("zero", zero), ("pad_m", pad_m), ("pad_n", pad_n)):
            tree = None if value is None and key != "zero" else lift(value)
            if tree is not None and not isinstance(tree, (Constant, Extreme)):
                raise AlgebraError(f"semiring {name!r}: {key} must be a number, tw.largest or tw.smallest")
            put(key, tree)
        put("boolean", boolean)
        _check_laws(self)

    def over(self, dtype: DType) -> Algebra:
        """This semiring over `dtype`, or a DtypeError that says why not."""
        return _over(self, dtype)

    def with_zero(self, zero: Any) -> Semiring:
        """The same operations from another zero."""
        made = object.__new__(Semiring)
        values = {"name": self.name, "add": self.add, "mul": self.mul, "zero": lift(zero), "boolean": self.boolean}
        for key, value in {**values, "pad_m": None, "pad_n": None}.items():
            object.__setattr__(made, key, value)
        return made

    @property
    def selective(self) -> bool:
        """Whether add picks one of its two values (min, max), so that a product has a winning k."""
        return isinstance(self.add, Apply) and self.add.op in ("min", "max")

    def __str__(self) -> str:
        return self.name


@lru_cache(maxsize=1024)
def _over(semiring: Semiring, dtype: DType) -> Algebra:
    partial = DTYPES["bool"] if semiring.boolean else dtype.partial
    try:
        check_types(semiring.add, partial)
        check_types(semiring.mul, partial)
        zero = constant_over(semiring.zero, partial)
    except DtypeError as error:
        raise DtypeError(f"{semiring.name} does not work over {dtype}: {error}") from None
    result = DTYPES["bool"] if semiring.boolean else dtype
    for pad_m, pad_n in _pad_candidates(semiring, partial, zero):
        if _same(_evaluate(semiring.mul, partial, pad_m, pad_n), zero, partial):
            return Algebra(semiring, dtype, partial, result, zero, pad_m, pad_n)
    if semiring.pad_m is not None:
        pad_m, pad_n = next(_pad_candidates(semiring, partial, zero))
        made = _evaluate(semiring.mul, partial, pad_m, pad_n)
        raise AlgebraError(
            f"semiring {semiring.name!r} over {dtype}: mul(pad_m={pad_m}, pad_n={pad_n}) is {made}, "
            f"but it must be exactly zero={zero}, or an edge would change the product"
        )
    raise AlgebraError(
        f"semiring {semiring.name!r} over {dtype}: no fill is known with mul(pad_m, pad_n) == zero={zero}; "
        "give pad_m= and pad_n="
    )


def _pad_candidates(semiring: Semiring, dtype: DType, zero: Number) -> Iterator[tuple[Number, Number]]:
    """The pads given; else zero with itself, then zero with whatever may be the semiring's one."""
    if semiring.pad_m is not None and semiring.pad_n is not None:
        yield constant_over(semiring.pad_m, dtype), constant_over(semiring.pad_n, dtype)
        return
    yield zero, zero
    for one in (Constant(1), Constant(0), Extreme("largest"), Extreme("smallest")):
        try:
            value = constant_over(one, dtype)
        except DtypeError:
            continue
        yield zero, value
        yield value, zero


def _evaluate(tree: Expression, dtype: DType, x: Number, y: Number) -> Any:
    with np.errstate(all="ignore"):
        a, b = (np.array([v]).astype(dtype.numpy) for v in (x, y))
        return numpy_function(tree, dtype)(a, b)[0]


def _same(value: Any, expected: Number, dtype: DType) -> bool:
    return bool(value == dtype.numpy.type(expected))


# Where values may come from: weights and counts, or chances. zero must be neutral on one of them at least.
_PROBES = ((1, 2, 3), (0.25, 0.5, 1.0))


def _check_laws(semiring: Semiring) -> None:
    """Refuse at definition what could never give right products."""
    name, works = semiring.name, []
    for dtype in DTYPES.values():
        try:
            semiring.over(dtype)
            works.append(dtype)
        except DtypeError:
            continue
        except AlgebraError:
            if dtype.name == "float64":
                raise
    if not works:
        semiring.over(DTYPES["float64"])  # says why
        raise AlgebraError(f"semiring {name!r} works over no dtype")
    if DTYPES["float64"] not in works or semiring.boolean:
        return
    f64 = DTYPES["float64"]

    def add(x: Number, y: Number) -> float:
        return float(_evaluate(semiring.add, f64, x, y))

    zero = constant_over(semiring.zero, f64)
    if not any(all(np.isclose(add(zero, v), v) and np.isclose(add(v, zero), v) for v in probe) for probe in _PROBES):
        raise AlgebraError(
            f"semiring {name!r}: zero={zero} is not neutral: add(zero, 1) is {add(zero, 1)}; "
            "for minimum write zero=tw.largest, for maximum zero=tw.smallest"
        )
    for x, y, z in ((1.0, 2.0, 3.0), (3.0, 0.5, 2.0), (-1.0, 4.0, 0.25)):
        if not np.isclose(add(x, y), add(y, x), equal_nan=True):
            raise AlgebraError(
                f"semiring {name!r}: add must be commutative, but add({x}, {y}) is {add(x, y)} "
                f"and add({y}, {x}) is {add(y, x)}"
            )
        if not np.isclose(add(add(x, y), z), add(x, add(y, z)), equal_nan=True):
            raise AlgebraError(
                f"semiring {name!r}: add must be associative, or the product would depend on the tile: "
                f"add(add({x}, {y}), {z}) is {add(add(x, y), z)}, add({x}, add({y}, {z})) is {add(x, add(y, z))}"
            )
