"""Types as written, unresolved until the template arguments are known."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import Field, field
from typing import Any, ClassVar, Self, dataclass_transform

from tilewise.emulator.source.source import Span


def _initialise(node: Any, *given: Any, **named: Any) -> None:
    kind = type(node)
    for name, value in kind.defaults:
        setattr(node, name, value)
    for name, make in kind.factories:
        setattr(node, name, make())
    for name, value in zip(kind.positional, given, strict=False):
        setattr(node, name, value)
    for name, value in named.items():
        setattr(node, name, value)


@dataclass_transform(eq_default=False, field_specifiers=(field,))
class NodeType(type):
    """Makes the annotated names of a node its slots and the parameters of its constructor. `dataclass` compiles a
    constructor for each class, a tenth of the time of a small `tilewise trace`."""

    positional: tuple[str, ...] = ()
    defaults: tuple[tuple[str, Any], ...] = ()
    factories: tuple[tuple[str, Callable[[], Any]], ...] = ()

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any], kw_only: bool = False) -> NodeType:
        names = tuple(n for n in members.get("__annotations__", ()) if n != "__slots__")
        own: list[tuple[str, Any]] = [(n, members.pop(n)) for n in names if n in members]
        members["__slots__"] = names
        if not bases:
            members["__init__"] = _initialise
        made = super().__new__(cls, name, bases, members)
        made.positional = made.positional if kw_only else made.positional + names
        fresh = [n for n, value in own if isinstance(value, Field)]
        made.defaults += tuple((n, value) for n, value in own if n not in fresh)
        made.factories += tuple((n, value.default_factory) for n, value in own if n in fresh)
        return made


class Node(metaclass=NodeType, kw_only=True):
    """`line` and `column` are those of the operator or first token, `extent` is the whole expression."""

    __slots__: ClassVar[tuple[str, ...]]
    line: int = 0
    column: int = 0
    extent: Span | None = None

    @property
    def span(self) -> Span:
        return self.extent or Span(self.line, self.column)

    def updated(self, **fields: Any) -> Self:
        made = copy(self)
        for name, value in fields.items():
            setattr(made, name, value)
        return made


class TypeName(Node):
    """`std::vector<int>::iterator`: a name, its template arguments, and the member types that follow."""

    name: str
    arguments: list[Any] | None = None
    inner: tuple[str, ...] = ()


class TypeFixed(Node):
    type: Any


class TypeAuto(Node):
    pass


class TypeOf(Node):
    value: Any  # decltype(e)


class TypePointer(Node):
    to: Any


class TypeConst(Node):
    of: Any


class TypeReference(Node):
    to: Any
    rvalue: bool = False


class TypeArray(Node):
    of: Any
    length: Any


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


def is_changeable(written: Any) -> bool:
    """Whether the type is a reference to non-const."""
    return isinstance(written, TypeReference) and not isinstance(written.to, TypeConst)
