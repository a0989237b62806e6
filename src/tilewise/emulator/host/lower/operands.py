"""Operands: lowered in order, of a common type, or for their type only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.conversion import rvalue
from tilewise.emulator.host.lower.places import load
from tilewise.emulator.host.lower.values import Actual, InterleavedPlace, Lowered, Overloads, Place, Value, WidePlace
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Array, FunctionType, Pointer, Record, Reference, Scalar, Type


def operands(b: Builder, nodes: Sequence[tree.Node], checked: bool = True) -> list[Actual]:
    """Arguments of a call; {…} is lowered later, when the parameter's type is known. `checked`: report uninitialised
    variables."""
    return [n if isinstance(n, tree.Braces) else _load_register(b, b.lower(n), checked) for n in nodes]


def _load_register(b: Builder, value: Lowered, checked: bool) -> Lowered:
    """Load a register variable now: a later argument may change it."""
    if isinstance(value, Place) and (value.register or isinstance(value, (WidePlace, InterleavedPlace))):
        return load(b, value, checked)
    return value


def unevaluated_type(b: Builder, node: tree.Node) -> Type:
    """The type of an operand of sizeof or decltype: lower it, then discard the code."""
    outer, lines, opened, line = b.temporaries, len(b.lines), b.open, b.noted_line
    b.temporaries = []
    value = b.lower(node)
    del b.lines[lines:]
    b.temporaries, b.open, b.noted_line = outer, opened, line
    if not isinstance(value, (Value, Place)):
        raise b.refuse("this is a name and not a value: nothing is known of its type", node)
    return value.type


def element_size(b: Builder, type_: Type, node: Any = None) -> int:
    if type_ is types.VOID or isinstance(type_, FunctionType):
        return 1
    return b.program.size_of(type_)


def common_type(b: Builder, first: Lowered, second: Lowered) -> Type:
    """The type of c ? a : b."""
    memory = [v for v in (first, second) if isinstance(v, Place) and not v.register]
    if len(memory) == 2 and memory[0].type == memory[1].type:
        return Reference(memory[0].type)
    if isinstance(first, Overloads):
        return rvalue(b, first).type if isinstance(second, Overloads) else _decayed(second.type)
    if isinstance(second, Overloads):
        return _decayed(first.type)
    one, two = _decayed(first.type), _decayed(second.type)
    if one == two:
        return one
    if isinstance(one, Scalar) and isinstance(two, Scalar) and one.rank >= 0 and two.rank >= 0:
        return types.common(one, two)
    if one is types.VOID or two is types.VOID:
        return types.VOID
    if isinstance(one, Record) or isinstance(two, Pointer):
        return one if isinstance(one, Record) else two
    return two if isinstance(two, Record) else one


def _decayed(type_: Type) -> Type:
    if isinstance(type_, Array):
        return Pointer(type_.of)
    return Pointer(type_) if isinstance(type_, FunctionType) else type_
