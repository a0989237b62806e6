"""new and delete."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.call import call_choice
from tilewise.emulator.host.lower.checked_memory import check_object, check_range, zero_fill
from tilewise.emulator.host.lower.conversion import convert, rvalue
from tilewise.emulator.host.lower.objects import default_initialise, for_each_element
from tilewise.emulator.host.lower.values import FULL, INIT, Place, Value
from tilewise.emulator.host.lower.virtual import virtual_delete
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Pointer, Record, Type, innermost
from tilewise.emulator.sema.overload import Choice, methods


def lower_new(b: Builder, node: tree.New) -> Value:
    type_ = b.program.resolve(node.type, b.env)
    size = b.program.size_of(type_)
    if node.place is not None:  # placement new
        address = convert(b, b.lower(node.place), types.VOIDP).text
        b.line = node.line
        if size:
            address = check_range(b, address, size, True)
        b.initialise(Place(type_, address, INIT), node.arguments or [])
        return Value(Pointer(type_), address)
    count = "1"
    if node.length is not None:
        count = convert(b, b.lower(node.length), types.LONG).text
    own = _own(b, type_, "operator new", node.length is not None)
    if own is not None:
        bytes_ = b.make(f"mul i64 {count}, {size}") if node.length is not None else str(size)
        address = rvalue(b, call_choice(b, own, None, [Value(types.ULONG, bytes_)], node)).text
        address = check_range(b, address, size, True)
        _construct(b, node, type_, address, count, size)
        return Value(Pointer(type_), address)
    b.program.external("rt_new", "declare ptr @rt_new(i64, i64, i32, i32)")
    name_id = b.program.name_number(str(type_))
    b.line = node.line
    b.note_line(b.line, node.column)
    array = int(node.length is not None)
    address = b.make(f"call ptr @rt_new(i64 {count}, i64 {size}, i32 {name_id + (array << 24)}, i32 {b.line_text()})")
    _construct(b, node, type_, address, count, size)
    return Value(Pointer(type_), address)


def _own(b: Builder, type_: Type, name: str, array: bool) -> Choice | None:
    """The class's own operator new or delete of one pointer or size."""
    found = methods(b.program, type_, name + "[]" * array) if isinstance(type_, Record) else []
    usable = [(f, record, offset) for f, record, offset in found if len(f.parameters) == 1]
    return Choice(usable[0][0], {}, usable[0][1]) if usable else None


def _construct(b: Builder, node: tree.New, type_: Type, address: str, count: str, size: int) -> None:
    if node.length is not None:
        _many(b, node, type_, address, count, size)
    elif node.arguments is not None:
        b.initialise(Place(type_, address, INIT), node.arguments)
    else:
        default_initialise(b, type_, address)


def _many(b: Builder, node: tree.New, type_: Type, address: str, count: str, size: int) -> None:
    given: Any = node.arguments
    if given is not None and not isinstance(type_, Record):
        zero_fill(b, address, b.make(f"mul i64 {count}, {size}"))
    if given and isinstance(given[0], tree.Braces):
        for i, item in enumerate(given[0].items):
            b.initialise(Place(type_, b.offset(address, i * size), INIT), item)
        return
    inner = innermost(type_)
    if isinstance(inner, Record):
        for_each_element(b, address, count, size, lambda at: default_initialise(b, type_, at))


def lower_delete(b: Builder, node: tree.Delete) -> Value:
    pointer = rvalue(b, b.lower(node.operand))
    if not isinstance(pointer.type, Pointer):
        raise b.refuse(f"delete needs a pointer, not {pointer.type}", node)
    b.line = node.line
    to = pointer.type.to
    start = pointer.text
    if isinstance(to, Record) and not b.program.layout(to).trivial:
        there, done = b.label(), b.label()
        whole = b.alloca("ptr")
        b.emit(f"store ptr {start}, ptr {whole}")
        b.branch(b.make(f"icmp ne ptr {pointer.text}, null"), there, done)
        b.begin(there)
        if node.array:
            b.program.external("rt_element_count", "declare i64 @rt_element_count(ptr, i64)")
            count = b.make(f"call i64 @rt_element_count(ptr {pointer.text}, i64 {to.size})")
            b.destroy_array(to, pointer.text, count)
        else:
            behind = virtual_delete(b, to, pointer, FULL)
            if behind is None:
                b.destroy(to, check_object(b, pointer.text, to.size) if to.size else pointer.text)
            else:
                b.emit(f"store ptr {behind}, ptr {whole}")
        b.begin(done)
        start = b.make(f"load ptr, ptr {whole}")
    own = _own(b, to, "operator delete", node.array)
    if own is not None:
        call_choice(b, own, None, [Value(types.VOIDP, start)], node)
        return Value(types.VOID, "")
    b.program.external("rt_delete", "declare void @rt_delete(ptr, i32, i32)")
    b.emit(f"call void @rt_delete(ptr {start}, i32 {int(node.array)}, i32 {b.line_text()})")
    return Value(types.VOID, "")
