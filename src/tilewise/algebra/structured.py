"""Semirings over structured values: pairs and small vectors, traced field by field, laws checked on random witnesses.

    >>> shortest = tw.Semiring(
    ...     "shortest", zero=(tw.largest, 0), fields=("length", "paths"),
    ...     add=lambda x, y: (tw.minimum(x.length, y.length),
    ...                       tw.where(x.length <= y.length, x.paths, 0) + tw.where(y.length <= x.length, y.paths, 0)),
    ...     mul=lambda x, y: (x.length + y.length, x.paths * y.paths))

A NaN among structured values is not skipped, and what it does is not specified: min(x, y) is one comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import DTYPES, Array, DType
from tilewise.algebra.expression import Constant, Expression, Extreme, Number, Symbol, Variable, constant_over, lift
from tilewise.algebra.program import StraightLine, flattened, run, step_of, typed
from tilewise.algebra.program_numpy import Arrays
from tilewise.errors import AlgebraError, DtypeError

Values = tuple[Array, ...]  # field by field
WITNESSES = 64  # random values on which each law is checked
MOST_FIELDS = 8
NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")


class Fields(tuple[Symbol, ...]):
    """A structured value while a function is traced: x[0], or x.length where fields have names."""

    names: tuple[str, ...]

    def __getattr__(self, name: str) -> Symbol:
        if name in self.names:
            return self[self.names.index(name)]
        raise AttributeError(f"a value has the fields {', '.join(self.names)}, not {name}")


@dataclass(frozen=True)
class StructuredAlgebra:
    """A structured semiring over the dtypes of its fields."""

    semiring: Structured
    dtypes: tuple[DType, ...]
    zero: tuple[Number, ...]

    @property
    def step(self) -> StraightLine:
        return step_of(self.semiring.add, self.semiring.mul)

    def evaluate(self, program: StraightLine, **operands: Sequence[Array]) -> Values:
        with np.errstate(all="ignore"):
            return tuple(run(program, self.dtypes, operands, Arrays()))


@dataclass(frozen=True, init=False)
class Structured:
    """A semiring of values with fields; `tw.Semiring` returns it where zero is a tuple."""

    name: str
    add: StraightLine = field(repr=False)
    mul: StraightLine = field(repr=False)
    zero: tuple[Expression, ...] = field(repr=False)
    fields: tuple[str, ...]
    fingerprint: str = field(repr=False, compare=False)  # equal rings have equal ones

    def __init__(
        self,
        name: str,
        add: Callable[[Any, Any], Any],
        mul: Callable[[Any, Any], Any],
        zero: tuple[Any, ...],
        *,
        fields: Sequence[str] | None = None,
        witnesses: Callable[[np.random.Generator, int], Sequence[Array]] | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise AlgebraError(f"a semiring's name must be a nonempty string, got {name!r}")
        names = tuple(fields) if fields is not None else tuple(f"f{i}" for i in range(len(zero)))
        if not 1 <= len(zero) <= MOST_FIELDS or len(names) != len(zero) or len(set(names)) != len(names):
            raise AlgebraError(
                f"semiring {name!r}: zero has {len(zero)} fields and {len(names)} names; 1 to {MOST_FIELDS} are taken, "
                "each with a distinct name"
            )
        trees = tuple(lift(value) for value in zero)
        if not all(isinstance(tree, (Constant, Extreme)) for tree in trees):
            raise AlgebraError(f"semiring {name!r}: zero must be numbers, tw.largest or tw.smallest")
        values: dict[str, object] = {"name": name, "zero": trees, "fields": names}
        for role, function in (("add", add), ("mul", mul)):
            values[role] = _traced(function, names, f"semiring {name!r}: {role}")
        values["fingerprint"] = repr(values)
        for key, value in values.items():
            object.__setattr__(self, key, value)
        _check_laws(self, witnesses or _random_fields)

    def over(self, dtypes: Sequence[DType]) -> StructuredAlgebra:
        """This semiring over fields of such dtypes, or a DtypeError that says why not."""
        return _over(self, tuple(dtypes))

    def __str__(self) -> str:
        return self.name


def _traced(function: Callable[[Any, Any], Any], names: tuple[str, ...], what: str) -> StraightLine:
    operands = []
    for letter in "xy":
        value = Fields(Symbol(Variable(f"{letter}{i}")) for i in range(len(names)))
        value.names = names
        operands.append(value)
    try:
        made = function(*operands)
        if not isinstance(made, (tuple, list)) or len(made) != len(names):
            raise AlgebraError(f"it must return {len(names)} values, one for each of {', '.join(names)}")
        return flattened([lift(value) for value in made])
    except AlgebraError as error:
        raise AlgebraError(f"{what}: {error}") from None
    except Exception as error:
        raise AlgebraError(f"{what} must be a function of two values with fields; it raised: {error}") from error


@lru_cache(maxsize=512)
def _over(ring: Structured, dtypes: tuple[DType, ...]) -> StructuredAlgebra:
    for name, dtype in zip(ring.fields, dtypes, strict=True):
        if dtype.name not in NUMBERS:
            raise DtypeError(f"{ring.name}: the field {name} is {dtype}; convert it to one of {', '.join(NUMBERS)}")
    for role in ("add", "mul"):
        typed(getattr(ring, role), dtypes, f"{ring.name}: {role}")
    zero = tuple(constant_over(tree, dtype) for tree, dtype in zip(ring.zero, dtypes, strict=True))
    algebra = StructuredAlgebra(ring, dtypes, zero)
    _check_no_wrap(algebra)
    return algebra


def _check_no_wrap(algebra: StructuredAlgebra) -> None:
    """Integers have no ∞: where zero is MAX, mul must preserve it, but MAX + 7 would wrap."""
    ring = algebra.semiring
    extreme = [i for i, tree in enumerate(ring.zero) if isinstance(tree, Extreme) and algebra.dtypes[i].is_integer]
    if not extreme:
        return
    ones, wide = (1,) * len(algebra.zero), DTYPES["float64"]
    made = algebra.evaluate(ring.mul, x=_filled(algebra, algebra.zero), y=_filled(algebra, ones))
    try:
        real = ring.over((wide,) * len(ones))
    except DtypeError:
        return  # bits and remainders: floats cannot evaluate them
    meant = real.evaluate(ring.mul, x=_filled(real, real.zero), y=_filled(real, ones))
    for i in extreme:
        if np.isinf(meant[i][0]) and made[i][0] != algebra.zero[i]:
            raise DtypeError(
                f"{ring.name} over {algebra.dtypes[i]}: {algebra.zero[i]} stands for no value in the field "
                f"{ring.fields[i]}, and mul makes {made[i][0]} of it and 1; convert the field to float64"
            )


def _filled(algebra: StructuredAlgebra, values: Sequence[Number], count: int = 1) -> Values:
    return tuple(np.full(count, v, d.numpy) for v, d in zip(values, algebra.dtypes, strict=True))


def _random_fields(rng: np.random.Generator, count: int, fields: int) -> list[Array]:
    return [rng.integers(0, 6, count) for _ in range(fields)]


def _check_laws(ring: Structured, witnesses: Callable[..., Sequence[Array]]) -> None:
    """Raise at definition if a law is broken; the message names the values."""
    algebra = None
    for name in ("float64", "int64"):
        try:
            algebra = ring.over((DTYPES[name],) * len(ring.fields))
            break
        except DtypeError as error:
            refused = error
    if algebra is None:
        raise AlgebraError(f"semiring {ring.name!r} works over no dtype: {refused}")
    rng = np.random.default_rng(0)
    more = (len(ring.fields),) if witnesses is _random_fields else ()
    x, y, z = (
        tuple(
            np.asarray(v).astype(d.numpy) for v, d in zip(witnesses(rng, WITNESSES, *more), algebra.dtypes, strict=True)
        )
        for _ in range(3)
    )
    zero = _filled(algebra, algebra.zero, WITNESSES)

    def add(a: Values, b: Values) -> Values:
        return algebra.evaluate(ring.add, x=a, y=b)

    def mul(a: Values, b: Values) -> Values:
        return algebra.evaluate(ring.mul, x=a, y=b)

    laws = (
        ("add must be commutative", "add(x, y)", add(x, y), "add(y, x)", add(y, x)),
        ("zero must be neutral", "add(zero, x)", add(zero, x), "x", x),
        ("add must be associative", "add(add(x, y), z)", add(add(x, y), z), "add(x, add(y, z))", add(x, add(y, z))),
        ("mul must be associative", "mul(mul(x, y), z)", mul(mul(x, y), z), "mul(x, mul(y, z))", mul(x, mul(y, z))),
        ("mul must distribute over add", "mul(add(x, y), z)", mul(add(x, y), z),
         "add(mul(x, z), mul(y, z))", add(mul(x, z), mul(y, z))),
        ("mul must distribute over add", "mul(z, add(x, y))", mul(z, add(x, y)),
         "add(mul(z, x), mul(z, y))", add(mul(z, x), mul(z, y))),
    )  # fmt: skip
    for law, left, made, right, expected in laws:
        off = np.logical_or.reduce(
            [~np.isclose(a, b, rtol=1e-9, equal_nan=True) for a, b in zip(made, expected, strict=True)]
        )
        if off.any():
            i = int(np.argmax(off))
            shown = {"x": x, "y": y, "z": z}
            values = ", ".join(f"{k} = {_written(v, i)}" for k, v in shown.items() if k in left + right)
            raise AlgebraError(
                f"semiring {ring.name!r}: {law}, but for {values} {left} is {_written(made, i)} "
                f"and {right} is {_written(expected, i)}"
            )


def _written(values: Values, i: int) -> str:
    return f"({', '.join(f'{float(v[i]):g}' for v in values)})"
