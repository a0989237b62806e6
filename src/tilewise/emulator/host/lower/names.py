"""Names and members: local variables, members of this class, global variables, functions."""

from __future__ import annotations

from dataclasses import replace

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import check_access
from tilewise.emulator.host.lower.conversion import object_place, place_of, rvalue
from tilewise.emulator.host.lower.globals import global_place, static_member
from tilewise.emulator.host.lower.lanes.memory import offset_pointer
from tilewise.emulator.host.lower.values import (
    FULL,
    INIT,
    SHARED,
    UNCHECKED,
    Local,
    Lowered,
    NotInLockstep,
    Overloads,
    Place,
    Value,
    WideLocal,
    WidePlace,
    constant,
    dereference,
    is_object,
)
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Enum, Pointer, Record, Reference
from tilewise.emulator.sema import constants
from tilewise.emulator.sema.given import Method, free
from tilewise.emulator.sema.overload import methods
from tilewise.emulator.sema.symbol_table import Unknown


def lower_name(b: Builder, node: tree.Name) -> Lowered:
    if node.owner is not None:
        return _of_type(b, node)
    local = b.find(node.name)
    if local is not None:
        return local_place(b, local, node.name)
    bound = b.env.bindings.get(node.name)
    if isinstance(bound, tuple):
        return constant(*bound)
    if b.env.record is not None and "::" not in node.name:
        found = _own_member(b, node)
        if found is not None:
            return found
    return _file_level(b, node)


def local_place(b: Builder, local: Local, name: str) -> Value | Place:
    if isinstance(local, WideLocal):
        return local.bound
    if local.reference:
        target = b.make(f"load ptr, ptr {local.address}")
        type_ = local.type
        assert isinstance(type_, Reference)
        return Place(type_.to, target, FULL, name=name, const=type_.const)
    return Place(local.type, local.address, local.check, local.flag, name, local.register, const=local.const)


def _own_member(b: Builder, node: tree.Name) -> Lowered | None:
    """A member of the class whose method this is."""
    record = b.env.record
    assert record is not None
    b.program.layout(record)
    receiver = None
    if b.this is not None:
        receiver = Place(record, b.this.text, INIT, const=isinstance(b.this.type, Pointer) and b.this.type.const)
        if record.field(node.name) is not None:
            return member_place(b, receiver, node.name, node)
    found = methods(b.program, record, node.name)
    if found:
        return Overloads(f"{record}::{node.name}", found, node.arguments, receiver, record)
    return _static_member(b, record, node.name)


def _static_member(b: Builder, record: Record, name: str) -> Value | Place | None:
    try:
        return constant(*constants._member_constant(b.program, record, name))
    except Unknown:
        pass
    if record.node is not None and name in record.node.constants:
        item = record.node.constants[name][1]
        full = f"{record.name}::{name}"
        if isinstance(item, tree.Variable):
            return static_member(b, record, full, item)
    return None


def _of_type(b: Builder, node: tree.Name) -> Lowered:
    """Type::name: an enumerator, a static member, a static method."""
    assert node.owner is not None
    owner = b.program.resolve(node.owner, b.env)
    if isinstance(owner, Enum):
        if f"{owner.name}::{node.name}" not in b.program.entities.enumerators:
            raise b.refuse(f"{owner} has no {node.name}", node)
        return _enumerator(b, f"{owner.name}::{node.name}", node)
    if isinstance(owner, Record):
        b.program.layout(owner)
        found = methods(b.program, owner, node.name)
        if found:
            receiver = None
            if b.this is not None and b.env.record is not None and b.env.record.derives(owner) is not None:
                receiver = Place(b.env.record, b.this.text, INIT)
            return Overloads(f"{owner}::{node.name}", found, node.arguments, receiver, owner, qualified=True)
        made = _static_member(b, owner, node.name)
        if made is not None:
            return made
        inner = f"{owner.name}::{node.name}"
        if inner in b.program.entities.enumerators:
            return _enumerator(b, inner, node)
    raise b.refuse(f"{owner} has no {node.name}", node)


def _enumerator(b: Builder, name: str, node: tree.Name) -> Value:
    try:
        return constant(*b.program.enumerator(name))
    except Unknown:
        raise b.refuse(f"the value of {node.name} is no constant expression", node) from None


def _file_level(b: Builder, node: tree.Name) -> Lowered:
    program = b.program
    entities = program.entities
    for name in program.names.candidates(node.name, b.env.scope):
        if name in entities.variables:
            try:
                value = program.constant_variable(name)
                if name.rpartition("::")[2] not in b.escaping:
                    return constant(*value)
            except Unknown:
                pass
            return global_place(b, name)
        if name in entities.functions:
            if not program.lenient:
                program.require_declared(node.name, entities.functions[name], node, b.env)
            return Overloads(
                name, free(entities.functions[name]), node.arguments, further=_imported(b, name, node.name)
            )
        if name in entities.enumerators:
            return _enumerator(b, name, node)
    raise b.refuse(f"{node.name} is not known here", node)


def _imported(b: Builder, found: str, name: str) -> list[Method]:
    """Functions of the same name from namespaces that are imported by `using`."""
    if "::" in found:
        return []
    names = [n for n in b.program.names.candidates(name, b.env.scope) if n != found]
    return free(f for n in names for f in b.program.entities.functions.get(n, []))


def lower_member(b: Builder, node: tree.Member) -> Lowered:
    if isinstance(node.base, tree.Name) and node.base.name == "threadIdx" and b.lanes is not None and b.lanes.index:
        index: Value = b.lanes.index[node.name]
        return index
    base = b.lower(node.base)
    b.line = node.line
    if node.arrow:
        while is_object(base):  # a smart pointer
            base = b.call_method(base, "operator->", [], node)
        pointer = rvalue(b, base)
        if not isinstance(pointer.type, Pointer):
            raise b.refuse(f"-> needs a pointer, not {pointer.type}", node)
        place = dereference(pointer)
    else:
        if isinstance(base, Overloads):
            raise b.refuse(f"a function has no member {node.name}", node)
        if isinstance(base.type, Pointer):
            raise b.refuse(f"{base.type} is a pointer: its members are reached with ->{node.name}", node)
        place = object_place(base)
    if not isinstance(place.type, Record):
        if node.name.startswith("~"):
            return Overloads("~", [], None, place)
        raise b.refuse(f"{place.type} has no member {node.name}", node)
    if not node.owner:
        return member_place(b, place, node.name, node, node.arguments)
    found = member_place(b, _base_place(b, place, node.owner), node.name, node, node.arguments)
    if isinstance(found, Overloads):
        found.qualified = True
    return found


def _base_place(b: Builder, place: Place, name: str) -> Place:
    """The subobject of the class `name`: the object itself or a base."""
    record = place.type
    assert isinstance(record, Record)
    b.program.layout(record)
    if record.node is not None and record.node.name.rpartition("::")[2] == name:
        return place
    for base, offset in record.bases:
        part = _base_place(b, replace(place, type=base, address=b.offset(place.address, offset)), name)
        if part.type is not base or (base.node is not None and base.node.name.rpartition("::")[2] == name):
            return part
    return place


def member_place(
    b: Builder, base: Place, name: str, node: tree.Node, arguments: list[tree.Node] | None = None
) -> Place | Value | Overloads:
    record = base.type
    assert isinstance(record, Record)
    b.program.layout(record)
    found = record.field(name)
    if found is not None:
        f, offset = found
        if isinstance(base, WidePlace):
            if isinstance(f.type, Reference):
                raise NotInLockstep(f"the member {name}")
            return WidePlace(
                f.type, offset_pointer(b, base.at, Value(types.LONG, str(offset)), 1), base.check, base.const
            )
        check = base.check if base.check in (FULL, UNCHECKED, SHARED) else INIT
        place = Place(f.type, b.offset(base.address, offset), check, name=name, const=base.const, moved=base.moved)
        if isinstance(f.type, Reference):
            address = check_access(b, place.address, 8, check) if check else place.address
            return place_of(Value(f.type, b.make(f"load ptr, ptr {address}")))
        return place
    key = "~" if name.startswith("~") else name
    candidates = methods(b.program, record, key)
    if candidates:
        return Overloads(f"{record}::{name}", candidates, arguments, base, record)
    static = _static_member(b, record, name)
    if static is not None:
        return static
    raise b.refuse(f"{record} has no member {name}", node)
