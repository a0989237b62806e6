"""Types as written, unresolved until the template arguments are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewise.emulator.source.source import Span


@dataclass(eq=False, slots=True, kw_only=True)
class Node:
    """`line` and `column` are those of the operator or first token, `extent` is the whole expression."""

    line: int = 0
    column: int = 0
    extent: Span | None = None

    @property
    def span(self) -> Span:
        return self.extent or Span(self.line, self.column)


@dataclass(eq=False, slots=True)
class TypeName(Node):
    """`std::vector<int>::iterator`: a name, its template arguments, and the member types that follow."""

    name: str
    arguments: list[Any] | None = None
    inner: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class TypeFixed(Node):
    type: Any


@dataclass(eq=False, slots=True)
class TypeAuto(Node):
    pass


@dataclass(eq=False, slots=True)
class TypeOf(Node):
    value: Any  # decltype(e)


@dataclass(eq=False, slots=True)
class TypePointer(Node):
    to: Any


@dataclass(eq=False, slots=True)
class TypeConst(Node):
    of: Any


@dataclass(eq=False, slots=True)
class TypeReference(Node):
    to: Any
    rvalue: bool = False


@dataclass(eq=False, slots=True)
class TypeArray(Node):
    of: Any
    length: Any


@dataclass(eq=False, slots=True)
class TypeFunction(Node):
    result: Any
    parameters: list[Any]


def innermost_replaced(written: Any, replace: Callable[[Any], Any]) -> Any:
    """A type with the node inside const, pointers and references replaced."""
    if isinstance(written, TypeConst):
        return TypeConst(innermost_replaced(written.of, replace))
    if isinstance(written, TypePointer):
        return TypePointer(innermost_replaced(written.to, replace))
    if isinstance(written, TypeReference):
        return TypeReference(innermost_replaced(written.to, replace), written.rvalue)
    return replace(written)


def is_auto(written: Any) -> bool:
    """`auto`, `const auto&`, `auto*`."""
    if isinstance(written, TypeConst):
        return is_auto(written.of)
    return isinstance(written, TypeAuto) or (isinstance(written, (TypeReference, TypePointer)) and is_auto(written.to))
