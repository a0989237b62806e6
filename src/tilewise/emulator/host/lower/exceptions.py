"""throw, try and catch without unwind tables: a throw sets a flag that is tested after every call.

If the flag is set, the caller destroys the objects of the scopes that it leaves and jumps to the nearest handler of its
function, or returns, so that its own caller tests the flag. In programs without a catch no code is added: a throw ends
the program. The flag is a byte of the program's memory; the runtime keeps the exception and matches handlers."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.conversion import rvalue
from tilewise.emulator.host.lower.program import Program
from tilewise.emulator.host.lower.values import INIT, UNCHECKED, Local, Place, Value, is_object
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Record, Reference, Type

ANY = -1


def catching(p: Program) -> bool:
    """Whether calls test the flag: the program has a catch, and this is host code."""
    return p.catches and not p.device


def flag(p: Program) -> str:
    if not p.thrown_address:
        p.thrown_address = p.memory.static(8, "", False)
    return f"inttoptr (i64 {p.thrown_address} to ptr)"


def number_of(p: Program, type_: Type) -> int:
    """A number for a thrown or caught type, without const and &."""
    bare = types.bare(type_)
    key: Any = id(bare) if isinstance(bare, Record) else str(bare).replace("const ", "").replace(" const", "")
    return p.exception_numbers.setdefault(key, len(p.exception_numbers))


def _catchable_types(p: Program, type_: Type, offset: int = 0) -> list[tuple[int, int]]:
    """The numbers of a type and its bases, each with its offset in the object."""
    out = [(number_of(p, type_), offset)]
    if isinstance(type_, Record):
        for base, at in p.layout(type_).bases:
            out += _catchable_types(p, base, offset + at)
    return out


def lower_throw(b: Builder, node: tree.Throw) -> Value:
    p = b.program
    if node.value is None:
        p.external("rt_rethrow")
        b.emit(f"call void @rt_rethrow(i32 {b.line_text()})")
    else:
        _raise(b, node)
    b.emit(f"store i8 1, ptr {flag(p)}")
    unwind(b)
    b.begin(b.label())  # unreachable: the rest of the enclosing expression is lowered into it
    return Value(types.VOID, "")


def _raise(b: Builder, node: tree.Throw) -> None:
    """Construct the exception object and hand it to the runtime."""
    p = b.program
    assert node.value is not None
    with b.full_expression():
        value = b.lower(node.value)
        if not is_object(value):
            value = rvalue(b, value)
        type_ = value.type
        p.external("rt_exception_memory")
        space = b.make(f"call ptr @rt_exception_memory(i64 {p.size_of(type_)})")
        b.initialise(Place(type_, space, INIT), value)
        what = "null"
        if isinstance(type_, Record) and p.layout(type_).methods_named("what"):
            what = rvalue(b, b.call_method(Place(type_, space, INIT), "what", [])).text
        p.thrown.append(_catchable_types(p, type_))
        p.external("rt_raise")
        name = p.name_number(str(type_))
        given = f"ptr {space}, i64 {len(p.thrown) - 1}, i32 {name}, ptr {what}, i32 {b.line_text()}"
        b.emit(f"call void @rt_raise({given})")


def unwind(b: Builder) -> None:
    """Jump to the nearest handler of this function, or leave it, with the flag set."""
    depth, label = b.handlers[-1] if b.handlers else (1, "leave")
    if any(s.destroy or s.arrays for s in b.scopes[depth:]):
        b.emit(f"store i8 0, ptr {flag(b.program)}")  # for the calls that destructors make
        b.clean_to(depth)
        b.emit(f"store i8 1, ptr {flag(b.program)}")
    b.jump(label)


def check_thrown(b: Builder) -> None:
    """After a call: unwind if the flag is set."""
    if not catching(b.program) or not b.open:
        return
    thrown, on = b.label(), b.label()
    test = b.make(f"icmp ne i8 {b.make(f'load i8, ptr {flag(b.program)}')}, 0")
    b.branch(test, thrown, on, likely=False)
    b.begin(thrown)
    unwind(b)
    b.begin(on)


def lower_try(b: Builder, node: tree.Try) -> None:
    if not catching(b.program):
        b.statement(node.body)
        return
    handlers, done = b.label(), b.label()
    b.handlers.append((len(b.scopes), handlers))
    b.statement(node.body)
    b.handlers.pop()
    if b.open:
        b.jump(done)
    b.begin(handlers)
    for handler in node.handlers:
        _handler(b, handler, done)
    unwind(b)
    b.begin(done)


def _handler(b: Builder, handler: tree.Handler, done: str) -> None:
    p = b.program
    type_ = None if handler.parameter is None else p.resolve(handler.parameter.type, b.env)
    p.external("rt_catch")
    number = ANY if type_ is None else number_of(p, type_)
    found = b.make(f"call ptr @rt_catch(i32 {number})")
    take, other = b.label(), b.label()
    b.branch(b.make(f"icmp eq ptr {found}, null"), other, take)
    b.begin(take)
    b.emit(f"store i8 0, ptr {flag(p)}")
    with b.scope():
        if type_ is not None and handler.parameter is not None and handler.parameter.name:
            b.declare(handler.parameter.name, _caught(b, type_, found))
        b.statement(handler.body)
    if b.open:
        b.jump(done)
    b.begin(other)


def _caught(b: Builder, type_: Type, address: str) -> Local:
    if not isinstance(type_, Reference):
        return Local(type_, address, INIT if isinstance(type_, Record) else UNCHECKED)
    slot = b.alloca("ptr")
    b.emit(f"store ptr {address}, ptr {slot}")
    return Local(type_, slot, UNCHECKED, reference=True)
