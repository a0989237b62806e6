"""Arguments of a call, as overload resolution sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewise.emulator.parse.types import Type


@dataclass(slots=True)
class Given:
    """An argument; the host compiler passes its own values with these four attributes."""

    type: Type
    lvalue: bool = False
    const: bool = False
    zero: bool = False  # the literal 0, which is a null pointer too


@dataclass(slots=True)
class Overloads:
    """A function's name before its arguments are known."""

    name: str
    candidates: list[Any]  # of tree.Function
    arguments: list[Any] | None = None  # explicit template arguments
    receiver: Any = None  # of a method: the object
    record: Any = None
    qualified: bool = False  # Class::name: not dispatched virtually
    further: Any = None  # functions found by `using namespace`, if none of the candidates fits
