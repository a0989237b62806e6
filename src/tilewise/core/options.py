"""The keywords of `tw.matmul` as one value: names, defaults, and how they form a cache key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from tilewise.algebra.names import ActivationName, DTypeName, NumericName, SemiringName
from tilewise.algebra.semiring import Semiring
from tilewise.core.problem import check_precision
from tilewise.core.reproducible import Level, check_reproducible
from tilewise.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import torch

Key = tuple[Any, ...]


DTypeArg: TypeAlias = "DTypeName | type[Any] | np.dtype[Any] | torch.dtype"
AnySemiring: TypeAlias = SemiringName | Semiring
Numeric: TypeAlias = NumericName | Semiring  # whose products have the operands' dtype


class Details(TypedDict, total=False):
    """Keywords of `tw.matmul` that products with vectors have, too; its docstring describes them."""

    out: Any
    device: str
    precision: str
    nonnegative: bool
    casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"]
    reproducible: Level


class MatmulDetails(Details, total=False):
    """And those that they do not have; without semiring, dtype and return_arg, on which the result's type depends."""

    kernel: str | None
    tile: int | None
    accumulate: bool
    memory: int | str | None
    scales: Any
    alpha: float
    bias: Any
    activation: ActivationName | None
    axes: Any
    order: Literal["C", "F", "A", "K"]


@dataclass(frozen=True, eq=False)
class Options:
    """A call's keywords, those left out at their defaults."""

    semiring: str | Semiring = "plus_times"
    out: Any = None
    device: str = "auto"
    kernel: str | None = None
    tile: int | None = None
    precision: str = "high"
    accumulate: bool = False
    return_arg: bool = False
    nonnegative: bool = False
    memory: int | str | None = None
    dtype: Any = None
    scales: Any = None
    alpha: float = 1.0
    bias: Any = None
    activation: str | None = None
    axes: Any = None
    order: str = "K"
    casting: str = "same_kind"
    reproducible: str | None = None

    @classmethod
    def of(cls, keywords: dict[str, Any]) -> Options:
        unknown = [name for name in keywords if name not in NAMES]
        if unknown:
            raise TypeError(f"matmul() got an unexpected keyword argument {unknown[0]!r}")
        o = cls(**keywords)
        check_precision(o.precision)  # here, because routes that precision does not affect never check it
        check_reproducible(o.reproducible)
        if o.accumulate and o.out is None:
            raise UsageError("accumulate=True adds onto out=, and no out was given")
        return o

    def __post_init__(self) -> None:
        """Refuse arrays and other values where True or False, or a name, is meant."""
        for name in FLAGS:
            value = getattr(self, name)
            if not isinstance(value, int) and type(value).__name__ != "bool":  # NumPy's bool is no int
                raise UsageError(f"{name}={value!r} must be True or False")
        for name in NAMED:
            value = getattr(self, name)
            if not isinstance(value, str):
                raise UsageError(f"{name}={value!r} must be a name, such as {DEFAULTS[name]!r}")

    @property
    def has_epilogue(self) -> bool:
        return self.alpha != 1 or self.bias is not None or self.activation is not None

    def keywords(self) -> dict[str, Any]:
        """As keywords of another call: those that were given."""
        return {name: value for name, usual in DEFAULTS.items() if (value := getattr(self, name)) is not usual}

    def given(self, *names: str) -> list[str]:
        """Which of these keywords have another value than their default, as `name=`."""
        found = []
        for name in names:
            value, usual = getattr(self, name), DEFAULTS[name]
            if value is not usual and (value is None or usual is None or value != usual):
                found.append(f"{name}=")
        return found

    def refuse(self, why: str, *names: str) -> None:
        """Raise UsageError if any of these was given; `why` says what excludes them, with its verb in the plural."""
        found = self.given(*names)
        if found:
            verb, rest = why.split(" ", 1)
            raise UsageError(f"{', '.join(found)} {SINGULAR.get(verb, verb) if len(found) == 1 else verb} {rest}")


SINGULAR = {"need": "needs", "have": "has", "do": "does", "are": "is", "pin": "pins"}
DEFAULTS = {field.name: field.default for field in fields(Options)}
NAMES = frozenset(DEFAULTS)
FLAGS = ("accumulate", "return_arg", "nonnegative")
NAMED = ("precision", "order", "casting")
GRADIENT_BYTE = 1  # index in a native signature: not 0 where a gradient is required
UNPREPARED = frozenset(("kernel", "tile", "return_arg", "memory", "scales"))  # keywords of calls that are not cached
UNPREPARED_ON_HOST = frozenset(("memory",))  # the same for NumPy arrays
ARRAYS = frozenset(("out", "bias"))


def keywords_key(
    keywords: Mapping[str, Any],
    of_array: Callable[[Any], tuple[Any, ...] | None],
    unprepared: frozenset[str] = UNPREPARED,
) -> Key | None:
    """The keywords' part of a call's signature; None where such a call is not cached.

    `of_array`: the layout of an array given as out= or bias=, None where it is unknown.
    """
    parts: list[Any] = []
    for name, value in keywords.items():
        if value is None:
            if name not in NAMES:  # will be refused
                return None
            continue
        if name in unprepared and value is not False:
            return None
        if name in ARRAYS:
            value = of_array(value)
        elif name == "scales":
            value = _kinds_of_scales(value, of_array)
        if value is None:
            return None
        parts += (name, value)
    key = tuple(parts)
    try:
        hash(key)
    except TypeError:  # a value that the call itself will refuse
        return None
    return key


def _kinds_of_scales(pair: Any, of_array: Callable[[Any], Key | None]) -> Key | None:
    """The key of two scales: "number", or an array's layout; None where one is something else."""
    if pair.__class__ is not tuple or len(pair) != 2:
        return None
    a, b = ("number" if x is None or x.__class__ in (int, float) else of_array(x) for x in pair)
    return None if a is None or b is None else (a, b)
