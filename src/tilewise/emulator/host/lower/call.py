"""Calls: functions, methods, function pointers, objects with operator(), and functions of the runtime."""

from __future__ import annotations

from collections.abc import Sequence

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import check_object
from tilewise.emulator.host.lower.conversion import convert, object_place, place_of, rvalue
from tilewise.emulator.host.lower.exceptions import check_thrown
from tilewise.emulator.host.lower.function_pointers import require_function
from tilewise.emulator.host.lower.function_text import by_address
from tilewise.emulator.host.lower.operands import operands
from tilewise.emulator.host.lower.program import AUTO, Instance
from tilewise.emulator.host.lower.recording import SiteKind, mark, refuse_stores
from tilewise.emulator.host.lower.values import FULL, Actual, Lowered, Overloads, Place, Value, is_object
from tilewise.emulator.host.lower.virtual import virtual_callee, virtual_slot
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import FunctionType, Pointer, Record, Reference, Type
from tilewise.emulator.sema.overload import Choice, NoMatch, choose, methods, no_match
from tilewise.emulator.sema.symbol_table import Environment

PREFIX = "host."


def call_method(
    b: Builder, receiver: Lowered, name: str, values: Sequence[Actual], node: tree.Node | None = None
) -> Value | Place:
    """A method by name on an object."""
    if not is_object(receiver):
        what = "a function" if isinstance(receiver, Overloads) else receiver.type
        raise b.refuse(f"{what} has no member {name}", node)
    place = object_place(receiver)
    record = place.type
    assert isinstance(record, Record)
    found = methods(b.program, record, name)
    try:
        choice = choose(b.program, b.env, f"{record}::{name}", found, None, values, place)
    except NoMatch:
        raise b.refuse(no_match(f"{record}::{name}", found, values), node) from None
    return call_choice(b, choice, place, values, node)


def call_choice(
    b: Builder, choice: Choice, receiver: Place | None, values: Sequence[Actual], node: tree.Node | None,
    qualified: bool = False,
) -> Value | Place:  # fmt: skip
    program = b.program
    function = program.definition(choice.node)
    slot = None if qualified or receiver is None else virtual_slot(b, function, choice.record, receiver)
    if receiver is not None and slot is not None and choice.record is not None and "~" not in function.name:
        instance = program.declared(function, choice.record)
        return call_instance(b, instance, None, values, node, virtual_callee(b, receiver, slot))
    if function.tokens is None and function.body is None and not function.defaulted:
        own = program.entities.functions.get(f"__device_{function.name}") if program.device else None
        if own is None:
            return _external(b, function, values, node)
        function = own[0]
    instance = program.instance(function, choice.bindings, choice.record)
    this = None
    if instance.record is not None:
        if receiver is None:
            raise b.refuse(f"{function.name} is called without an object", node)
        this = _receiver(b, receiver, choice.offset)
    return call_instance(b, instance, this, values, node)


def _receiver(b: Builder, place: Place, offset: int) -> str:
    """The address of the object that a method is called on, checked except in calls within the library."""
    address = place.address
    if place.check == FULL and not b.library and isinstance(place.type, Record) and place.type.size:
        address = check_object(b, address, place.type.size)
    return b.offset(address, offset)


def call_instance(
    b: Builder, instance: Instance, this: str | None, values: Sequence[Actual], node: tree.Node | None = None,
    override: tuple[str, str] | None = None,
) -> Value | Place:  # fmt: skip
    """Call it; `override`: the function and the object from the vtable, called instead."""
    given: list[tuple[str, str]] = []
    symbol = instance.symbol
    if override is not None:
        symbol, this = override
    result = instance.result
    if result is AUTO:
        raise b.refuse(f"{instance.node.name} is called before its result is known", node)
    space = ""
    if instance.returns_object:
        space = b.temporary(result)
        given.append((by_address(result), space))
    if this is not None:
        assert instance.record is not None
        given.append((by_address(instance.record), this))
    line = b.line
    for i, type_ in enumerate(instance.parameters):
        if i < len(values):
            given.append(pass_value(b, values[i], type_))
        else:
            with b.environment(instance.env):
                given.append(pass_value(b, operands(b, [instance.node.parameters[i].default])[0], type_))
    if instance.node.variadic:
        given += pack_variadic(b, values[len(instance.parameters) :], checked=True)
    b.line = line
    if instance.node.library and not b.library:
        b.note_line(b.line, _column(node))
    else:
        b.noted_line = 0
    if b.program.recording is not None and instance.node.library and not b.library:
        refuse_stores(b, instance, node)
    mark(b, SiteKind.CALL, symbol)
    text = b.call(result, symbol, given, "void" if space else None)
    mark(b, SiteKind.LEAVE, symbol)
    if not instance.node.library:
        b.noted_line = 0
    check_thrown(b)
    return call_result(b, result, space or text)


def call_result(b: Builder, result: Type, text: str) -> Value | Place:
    """A call's result as a value or a place; a returned object is destroyed at the end of the full expression."""
    if isinstance(result, Reference):
        return place_of(Value(result, text))
    if isinstance(result, Record):
        b.program.layout(result)
        if not result.trivial:
            b.temporaries.append((result, text))
    return Value(result, text)


def pass_value(b: Builder, value: Actual, type_: Type) -> tuple[str, str]:
    """LLVM type and text of an argument: scalars by value, objects as the address of a copy."""
    if isinstance(value, tree.Braces):
        target = types.bare(type_)
        if isinstance(target, Record):
            return by_address(target), b.make_temporary(target, [value]).text
        if not value.items:
            return pass_value(b, Value(types.INT, "0"), type_)
        return pass_value(b, b.lower(value.items[0]), type_)
    made = convert(b, value, type_)
    return by_address(type_) if isinstance(type_, Record) else type_.llvm, made.text


def _external(b: Builder, function: tree.Function, values: Sequence[Actual], node: tree.Node | None) -> Value | Place:
    """A function of the runtime or of the C library, declared in a known header."""
    program = b.program
    if not function.library:
        raise b.refuse(f"{function.name} is declared and never defined: its file is not part of this program", node)
    env = Environment(scope=function.scope)
    parameters = [program.resolve(p.type, env) for p in function.parameters]
    result = program.resolve(function.result, env)
    given = [pass_value(b, v, t) for v, t in zip(values, parameters, strict=False)]
    for (_, text), type_ in zip(given, parameters, strict=False):  # callbacks, as of atexit
        if isinstance(type_, Pointer) and isinstance(type_.to, FunctionType):
            require_function(b, text, type_.to)
    if len(values) < len(parameters):
        for parameter, type_ in zip(function.parameters[len(values) :], parameters[len(values) :], strict=True):
            given.append(pass_value(b, operands(b, [parameter.default])[0], type_))
    if function.variadic:
        given += pack_variadic(b, values[len(parameters) :])
    # a prefixed name: LLVM emits calls of memset and memmove itself, which must not reach these
    name = PREFIX + function.name.rpartition("::")[2]
    kinds = ", ".join(t.partition(" ")[0] for t, _ in given)
    llvm = "i8" if result is types.BOOL else result.llvm
    program.external(name, f"declare {llvm} @{name}({kinds})")
    program.functions_called[name] = function
    b.note_line(b.line, _column(node))
    text = b.call(result, f"@{name}", [("i8" if t == "i1" else t, _widened(b, t, v)) for t, v in given], llvm)
    if result is types.BOOL:
        text = b.make(f"icmp ne i8 {text}, 0")
    return call_result(b, result, text)


def _column(node: tree.Node | None) -> int:
    return node.function.column if isinstance(node, tree.Call) else 0


def _widened(b: Builder, llvm: str, text: str) -> str:
    return b.make(f"zext i1 {text} to i8") if llvm == "i1" else text


def pack_variadic(b: Builder, values: Sequence[Actual], checked: bool = False) -> list[tuple[str, str]]:
    """Variadic arguments as pairs of a tag and eight bytes, and their count; `checked` if the program reads them."""
    count = len(values)
    if checked:
        space = b.frame_slot(16 * max(1, count), 16)
        b.set_state(space, str(16 * max(1, count)), 3)
    else:
        space = b.alloca(f"[{max(1, 2 * count)} x i64]")
    for i, value in enumerate(values):
        tag, bits = _pack_argument(b, value)
        b.emit(f"store i64 {tag}, ptr {b.offset(space, 16 * i)}")
        b.emit(f"store i64 {bits}, ptr {b.offset(space, 16 * i + 8)}")
    return [("ptr", space), ("i64", str(count))]


def _pack_argument(b: Builder, value: Actual) -> tuple[int, str]:
    made = rvalue(b, value)
    type_ = made.type
    if isinstance(type_, Record):
        return 6, b.make(f"ptrtoint ptr {made.text} to i64")
    if isinstance(type_, Pointer) or type_ is types.NULLPTR:
        text = made.text if type_ is not types.NULLPTR else "null"
        return 5, b.make(f"ptrtoint ptr {text} to i64")
    assert isinstance(type_, types.Scalar)
    if type_.floating:
        wide = convert(b, made, types.DOUBLE)
        return 4, b.make(f"bitcast double {wide.text} to i64")
    kind = types.promote(type_)
    wide = convert(b, made, kind)
    tag = (0 if kind.size == 4 else 2) + (0 if kind.signed else 1)
    return tag, convert(b, wide, types.LONG).text
