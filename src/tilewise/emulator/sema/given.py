"""Arguments of a call, as overload resolution sees them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Record, Type


class Operand(Protocol):
    """What is known of an argument; lowering passes its own values and places."""

    @property
    def type(self) -> Type: ...
    @property
    def lvalue(self) -> bool: ...
    @property
    def const(self) -> bool: ...
    @property
    def zero(self) -> bool:
        """The literal 0, which is a null pointer too."""


@dataclass(slots=True)
class Given:
    """An argument of which nothing else is known."""

    type: Type
    lvalue: bool = False
    const: bool = False
    zero: bool = False


Method: TypeAlias = tuple[tree.Function, Record | None, int]  # its class, and the offset of that in the object


@dataclass(slots=True)
class Overloads:
    """A function's name before its arguments are known."""

    name: str
    candidates: list[Method]
    arguments: list[tree.Node] | None = None  # explicit template arguments
    receiver: Operand | None = None  # of a method: the object
    record: Record | None = None
    qualified: bool = False  # Class::name: not dispatched virtually
    further: list[Method] = field(default_factory=list)  # found by `using namespace`, if none of the candidates fits

    @property
    def functions(self) -> list[tree.Function]:
        return [node for node, _, _ in self.candidates]


def free(functions: Iterable[tree.Function]) -> list[Method]:
    """Functions of no class, as candidates."""
    return [(node, None, 0) for node in functions]


Value: TypeAlias = Operand | Overloads | tree.Braces
