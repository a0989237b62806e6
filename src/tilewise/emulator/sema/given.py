"""What a call is given: as much of each argument as decides which function is meant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewise.emulator.parse.types import Type


@dataclass(slots=True)
class Given:
    """An argument. Executors may hand in values of their own that have these four."""

    type: Type
    lvalue: bool = False  # a place that may not be taken apart
    const: bool = False
    zero: bool = False  # the number 0 as it stands in the program: a null pointer too


@dataclass(slots=True)
class Overloads:
    """A function's name before its arguments are known."""

    name: str
    candidates: list[Any]  # of tree.Function
    arguments: list[Any] | None = None  # template arguments as given
    receiver: Any = None  # Place of the object, for methods
    record: Any = None
    qualified: bool = False  # Class::name: that method, virtual or not
    further: Any = None  # functions of that name that `using namespace` brings, asked where none of these fits
