"""Lambdas: closure classes with captures as members and operator() as method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import check_object, store
from tilewise.emulator.host.lower.conversion import bind, rvalue
from tilewise.emulator.host.lower.names import local_place
from tilewise.emulator.host.lower.values import INIT, UNCHECKED, Local, Overloads, Place, Value, is_object
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Field, Pointer, Record, Reference, Type
from tilewise.emulator.sema.symbol_table import Environment


@dataclass
class Captures:
    """The captures, made visible to the lambda's body by `enter`."""

    record: Record
    outer: Environment
    this: Any  # type of the outer `this`, where it is captured

    def enter(self, b: Builder) -> None:
        b.env = Environment(b.env.bindings, self.outer.scope, self.outer.record if self.this is not None else None)
        for f in self.record.fields:
            address = b.offset("%this", f.offset)
            if f.name == "this":
                b.this = Value(f.type, check_object(b, b.make(f"load ptr, ptr {address}"), _size(f.type)))
            elif isinstance(f.type, Reference):
                b.declare(f.name, Local(f.type, address, UNCHECKED, reference=True))
            else:
                b.declare(f.name, Local(f.type, address, INIT))


def _size(type_: Type) -> int:
    return max(1, type_.to.size) if isinstance(type_, Pointer) else 1


def lower_lambda(b: Builder, node: tree.Lambda) -> Value:
    wanted = _wanted(b, node)
    alone = not wanted and not b.env.bindings  # lowering it again gives the same class, as for a global `auto`
    if alone and id(node) in b.program.lambdas:
        return Value(b.program.lambdas[id(node)], b.temporary(b.program.lambdas[id(node)]))
    record = Record(f"lambda at line {node.line}", None, dict(b.env.bindings), laid_out=True, scope=b.env.scope)
    offset = 0
    sources: list[tuple[Field, Any]] = []
    for name, reference, init in wanted:
        type_, value = _captured(b, name, reference, init)
        size = b.program.size_of(type_)
        offset = -(-offset // type_.align) * type_.align
        f = Field(name, type_, offset)
        offset += size
        record.align = max(record.align, type_.align)
        record.fields.append(f)
        if isinstance(type_, Record) and not type_.trivial:
            record.trivial = False
        sources.append((f, value))
    record.size = max(1, -(-offset // record.align) * record.align)
    function = tree.Function(
        "operator()", node.result if node.result is not None else tree.TypeAuto(), node.parameters,
        frozenset({"const method"}), variadic=node.variadic, scope=b.env.scope, library=b.library, body=node.body,
        line=node.line, column=node.column,
    )  # fmt: skip
    record.methods["operator()"] = [function]
    this = b.this.type if b.this is not None and any(f.name == "this" for f, _ in sources) else None
    record.captured = Captures(record, b.env, this)
    if alone:
        b.program.lambdas[id(node)] = record
    space = b.temporary(record)
    for f, value in sources:
        at = b.offset(space, f.offset)
        if isinstance(f.type, Reference):
            store(b, Place(types.VOIDP, at, INIT), bind(b, value, f.type).text)
        else:
            b.initialise(Place(f.type, at, INIT), value)
    return Value(record, space)


def _wanted(b: Builder, node: tree.Lambda) -> list[tuple[str, bool, Any]]:
    out = list(node.captures)
    have = {name for name, _, _ in out}
    if node.default:
        for item in tree.walk(node.body):
            if isinstance(item, tree.Name) and item.name not in have and b.find(item.name) is not None:
                have.add(item.name)
                out.append((item.name, node.default == "&", None))
            elif isinstance(item, tree.This) and "this" not in have:
                have.add("this")
                out.append(("this", False, None))
        if b.this is not None and "this" not in have:
            out.append(("this", False, None))
    return [w for w in out if w[0] != "this" or b.this is not None]


def _captured(b: Builder, name: str, reference: bool, init: Any) -> tuple[Type, Any]:
    if name == "this" and b.this is not None:
        return Pointer(b.env.record) if b.env.record is not None else b.this.type, b.this
    if init is not None:
        value = b.lower(init)
        made = value if is_object(value) else rvalue(b, value)
        return made.type, made if isinstance(value, Overloads) else value
    local = b.find(name)
    if local is None:
        raise b.refuse(f"{name} is not a variable that a lambda can capture")
    place = local_place(b, local, name)
    register = not isinstance(place, Place) or place.register
    return (Reference(place.type) if reference and not register else place.type), place
