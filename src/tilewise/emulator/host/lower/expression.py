"""Lowers expressions to LLVM: TABLE has a function for each kind of node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.call_expression import lower_call
from tilewise.emulator.host.lower.class_arguments import deduced_class
from tilewise.emulator.host.lower.conversion import convert, object_place, place_of, rvalue, truth
from tilewise.emulator.host.lower.exceptions import lower_throw
from tilewise.emulator.host.lower.heap import lower_delete, lower_new
from tilewise.emulator.host.lower.lambdas import lower_lambda
from tilewise.emulator.host.lower.lanes import control
from tilewise.emulator.host.lower.lanes.memory import checked_index, interleaved_element, offset_pointer
from tilewise.emulator.host.lower.launch import lower_launch
from tilewise.emulator.host.lower.marks import OK, SMALL, WITHIN
from tilewise.emulator.host.lower.names import lower_member, lower_name
from tilewise.emulator.host.lower.operands import common_type, element_size, operands, unevaluated_type
from tilewise.emulator.host.lower.operators import (
    lower_assign,
    lower_binary,
    lower_step,
    lower_unary,
)  # fmt: skip
from tilewise.emulator.host.lower.places import literal
from tilewise.emulator.host.lower.recorded_text import recorded_element, recorded_row
from tilewise.emulator.host.lower.subscripts import elements
from tilewise.emulator.host.lower.values import (  # fmt: skip
    FULL,
    INIT,
    PRECHECKED,
    SHARED,
    UNCHECKED,
    InterleavedPlace,
    Lowered,
    Overloads,
    Place,
    Value,
    Wide,
    WidePlace,
    constant,
)
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Array, Pointer, Record, Reference, Scalar, Type


def lower(b: Builder, node: tree.Node) -> Lowered:
    """A Value, a Place, or Overloads for the name of a function."""
    known = TABLE.get(type(node))
    if known is None:
        raise b.refuse(f"{type(node).__name__} is not supported here", node)
    if node.line:
        b.line = node.line
    if b.lanes is not None:
        b.lanes.varies(node)
        if id(node) in b.computed:
            computed: Lowered = b.computed[id(node)]
            return computed
    made = known(b, node)
    if b.program.recording is not None and isinstance(made, Place):
        made.column = node.column
    return made


def _number(b: Builder, node: tree.Number) -> Lowered:
    if node.type is types.NULLPTR:
        return Value(types.NULLPTR, "null")
    return constant(node.value, node.type)


def _text(b: Builder, node: tree.Text) -> Lowered:
    return literal(b, node.value)


def _this(b: Builder, node: tree.This) -> Lowered:
    if b.this is None:
        raise b.refuse("there is no `this` here", node)
    return b.this


def _ternary(b: Builder, node: tree.Ternary) -> Lowered:
    if b.lanes is not None and b.lanes.varies(node):
        return control.ternary(b, node)
    condition = truth(b, lower(b, node.condition))
    yes, no, done = b.label(), b.label(), b.label()
    if isinstance(node.yes, tree.Throw) or isinstance(node.no, tree.Throw):
        return _or_throw(b, node, condition)
    b.branch(condition, yes, no)
    b.begin(yes)
    outer, b.temporaries = b.temporaries, []
    first = lower(b, node.yes)
    first_open = b.open
    temps_first, b.temporaries = b.temporaries, []
    b.open = True
    b.lines.append(f"{no}:")
    no_start = len(b.lines)
    b.noted_line = 0
    second = lower(b, node.no)
    second_open = b.open
    tail = b.lines[no_start - 1 :]
    del b.lines[no_start - 1 :]
    temps_second, b.temporaries = b.temporaries, temps_first
    type_ = common_type(b, first, second)
    b.open = first_open
    space = _space(b, type_)
    _join(b, first, type_, space)
    outer += b.deferred_temporaries()
    b.jump(done)
    b.lines += tail
    b.open = second_open
    b.temporaries = temps_second
    _join(b, second, type_, space)
    outer += b.deferred_temporaries()
    b.jump(done)
    b.begin(done)
    b.temporaries = outer
    if isinstance(type_, Record):
        if not type_.trivial:
            b.temporaries.append((type_, space))
        return Value(type_, space)
    if isinstance(type_, Reference):
        return place_of(Value(type_, b.make(f"load ptr, ptr {space}")))
    if type_ is types.VOID:
        return Value(type_, "")
    return Value(type_, b.make(f"load {type_.llvm}, ptr {space}"))


def _or_throw(b: Builder, node: tree.Ternary, condition: str) -> Lowered:
    """x > 1 ? throw … : x"""
    thrown, value = (node.yes, node.no) if isinstance(node.yes, tree.Throw) else (node.no, node.yes)
    bad, good = b.label(), b.label()
    b.branch(condition, *((bad, good) if thrown is node.yes else (good, bad)))
    b.begin(bad)
    lower(b, thrown)
    b.jump(good)
    b.begin(good)
    return lower(b, value)


def _space(b: Builder, type_: Type) -> str:
    """Memory for the result of a conditional expression."""
    if isinstance(type_, Record):
        return b.frame_slot(type_.size, type_.align)
    return b.alloca(type_.llvm) if type_ is not types.VOID else ""


def _join(b: Builder, value: Lowered, type_: Type, space: str) -> None:
    if type_ is types.VOID or not b.open:
        return
    if isinstance(type_, Record):
        b.set_state(space, str(type_.size), 1)
        b.initialise(Place(type_, space, INIT), value)
        return
    text = value.address if isinstance(type_, Reference) and isinstance(value, Place) else convert(b, value, type_).text
    b.emit(f"store {type_.llvm} {text}, ptr {space}")


def _index(b: Builder, node: tree.Index) -> Lowered:
    if id(node) in b.prechecked:
        return _prechecked_element(b, node)
    base = lower(b, node.base)
    if isinstance(base, Overloads):
        raise b.refuse("a function has no elements", node)
    local = b.find(node.base.name) if isinstance(node.base, tree.Name) else None
    if local is not None and local.row:
        return _row(b, node, base, local.row)
    if isinstance(base.type, Record):
        value = operands(b, [node.index])
        b.line = node.line
        return b.call_method(base, "operator[]", value, node)
    index = rvalue(b, lower(b, node.index))
    b.line = node.line
    if isinstance(index.type, Pointer) and isinstance(base.type, Scalar):
        base, index = index, rvalue(b, base)
    if isinstance(index.type, Record):
        index = convert(b, index, types.LONG)
    if not isinstance(index.type, Scalar) or not index.type.integral:
        raise b.refuse(f"an index must be an integer, not {index.type}", node)
    index = convert(b, index, types.LONG if index.type.signed else types.ULONG)
    if isinstance(base.type, Array):
        return _element(b, object_place(base), index)
    pointer = rvalue(b, base)
    if not isinstance(pointer.type, Pointer):
        raise b.refuse(f"{pointer.type} has no elements", node)
    to, size = pointer.type.to, element_size(b, pointer.type.to, node)
    span = b.lanes.span(b, node.base.name) if b.lanes is not None and isinstance(node.base, tree.Name) else None
    if isinstance(pointer, Wide) or isinstance(index, Wide):
        place: Place = WidePlace(to, offset_pointer(b, pointer, index, size), FULL, pointer.type.const, span)
    else:
        place = Place(to, b.offset(pointer.text, b.make(f"mul i64 {index.text}, {size}")), FULL, span=span)
    return recorded_element(b, tree.Binary("+", node.base, node.index), place)


def _row(b: Builder, node: tree.Index, base: Any, slot: str) -> Value:
    """a[i] of a variable-length array `float a[n][m]`: a pointer to the row's first element."""
    index = convert(b, rvalue(b, lower(b, node.index)), types.LONG).text
    pointer = rvalue(b, base)
    assert isinstance(pointer.type, Pointer)
    elements = b.make(f"mul i64 {index}, {b.make(f'load i64, ptr {slot}')}")
    step = b.make(f"mul i64 {elements}, {element_size(b, pointer.type.to, node)}")
    return Value(pointer.type, b.offset(pointer.text, step))


def _prechecked_element(b: Builder, node: tree.Index) -> Place:
    """An element of an array whose accesses were checked before the enclosing loop."""
    outer, b.no_overflow = b.no_overflow, True
    index = convert(b, rvalue(b, lower(b, node.index)), types.LONG)
    b.no_overflow = outer
    of = elements(b, node.base)
    assert of is not None
    return Place(of, b.offset(b.prechecked[id(node)], b.make(f"mul i64 {index.text}, {of.size}")), PRECHECKED)


def _element(b: Builder, base: Place, at: Value) -> Place:
    """An element of an array type: the subscript is checked against its length."""
    array = base.type
    assert isinstance(array, Array)
    if isinstance(base, InterleavedPlace):
        return interleaved_element(b, base, at)
    check = base.check if base.check in (FULL, UNCHECKED, SHARED) else INIT
    if not array.length:  # a flexible array member, a[] or a[0]
        check = FULL
    if isinstance(base, WidePlace) or isinstance(at, Wide):
        first = base.at if isinstance(base, WidePlace) else Value(Pointer(array.of), base.address)
        within = checked_index(b, at, array.length, base.name) if array.length else at
        made = WidePlace(array.of, offset_pointer(b, first, within, b.program.size_of(array.of)), check, base.const)
        made.name = base.name
        return made
    index, bad = at.text, ""
    recorded = check == SHARED and b.program.recording is not None  # checked as a whole, in `checked_memory`
    if array.length and not b.library and not recorded:
        bad = b.make(f"icmp uge i64 {index}, {array.length}")
        named = str(b.program.name_number(base.name))
        given = [("i64", index), ("i64", str(array.length)), ("i32", named), ("i32", b.line_text())]
        b.report_if(bad, "rt_bad_index", given)
        index = b.make(f"select i1 {bad}, i64 0, i64 {index}")
    size = b.program.size_of(array.of)
    step = b.make(f"mul i64 {index}, {size}")
    inside = "" if not array.length or b.library or recorded else OK if array.size <= SMALL else WITHIN
    there = b.make(f"getelementptr i8, ptr {base.address}, i64 {step}{inside}")
    if bad and b.program.instrumented and check == FULL:  # elsewhere: several threads at index 0 would race
        away = b.program.memory.static(max(8, size), "", False)
        there = b.make(f"select i1 {bad}, ptr inttoptr (i64 {away} to ptr), ptr {there}")
    element = Place(array.of, there, check, name=base.name, const=base.const)
    if recorded:
        element.row = recorded_row(b, array, base, index)
    return element


def _cast(b: Builder, node: tree.Cast) -> Lowered:
    type_ = b.program.resolve(node.type, b.env)
    value = lower(b, node.operand)
    b.line = node.line
    if isinstance(type_, Reference):
        if isinstance(value, Place) and not value.register:
            wider = b.program.size_of(type_.to) > b.program.size_of(value.type) or isinstance(type_.to, Array)
            check = FULL if wider else value.check  # (Big&)small may extend past the object
            return Place(type_.to, value.address, check, moved=type_.rvalue, const=type_.const)
        return place_of(convert(b, value, type_))
    if isinstance(type_, Record):
        return b.make_temporary(type_, [value])
    return convert(b, value, type_, explicit=True)


def _construct(b: Builder, node: tree.Construct) -> Lowered:
    given = node.arguments[0] if node.braces else node.arguments
    type_ = deduced_class(b, node.type, given) or b.program.resolve(node.type, b.env)
    if isinstance(type_, Record):
        return b.make_temporary(type_, operands(b, node.arguments))
    items = node.items
    if not items:
        return convert(b, Value(types.INT, "0"), type_, explicit=True)
    if len(items) > 1:
        raise b.refuse(f"{type_} is made from one value", node)
    return convert(b, lower(b, items[0]), type_, explicit=True)


def _sizeof(b: Builder, node: tree.SizeOf) -> Lowered:
    local = b.find(node.operand.name) if isinstance(node.operand, tree.Name) else None
    if local is not None and local.size and not node.alignment:
        return Value(types.ULONG, local.size)
    if isinstance(node.operand, tree.Index) and isinstance(node.operand.base, tree.Name) and not node.alignment:
        rows = b.find(node.operand.base.name)
        if rows is not None and rows.row:  # sizeof(a[0]) of float a[n][m]
            size = element_size(b, rows.type.to, node)  # type: ignore[attr-defined]
            return b.value(types.ULONG, f"mul i64 {b.make(f'load i64, ptr {rows.row}')}, {size}")
    type_ = b.program.resolve(node.type, b.env) if node.operand is None else unevaluated_type(b, node.operand)
    type_ = types.bare(type_)
    size = element_size(b, type_)
    return Value(types.ULONG, str(type_.align if node.alignment else size))


def _braces(b: Builder, node: tree.Braces) -> Lowered:
    raise b.refuse("a list in braces needs a type here", node)


def _throw(b: Builder, node: tree.Throw) -> Lowered:
    """In a program without a catch, or in a kernel: report and end the program."""
    if b.program.catches and not b.program.device:
        return lower_throw(b, node)
    text = ""
    if node.value is not None:
        value = lower(b, node.value)
        kind = getattr(value, "type", types.VOID)
        text = str(kind)
        if isinstance(kind, Record) and b.program.layout(kind).methods_named("what"):
            what = rvalue(b, b.call_method(value, "what", []))
            b.program.external("rt_throw_what")
            b.emit(f"call void @rt_throw_what(i32 {b.program.name_number(text)}, ptr {what.text}, i32 {b.line_text()})")
            return Value(types.VOID, "")
    b.program.external("rt_throw")
    b.emit(f"call void @rt_throw(i32 {b.program.name_number(text)}, i32 {b.line_text()})")
    return Value(types.VOID, "")


TABLE: dict[type, Callable[..., Lowered]] = {
    tree.Number: _number, tree.Text: _text, tree.Name: lower_name, tree.This: _this, tree.Unary: lower_unary,
    tree.Step: lower_step, tree.Binary: lower_binary, tree.Assign: lower_assign, tree.Ternary: _ternary,
    tree.Call: lower_call, tree.Index: _index, tree.Member: lower_member, tree.Cast: _cast,
    tree.Construct: _construct, tree.SizeOf: _sizeof, tree.Throw: _throw, tree.Braces: _braces,
    tree.Lambda: lower_lambda, tree.Launch: lower_launch,
    tree.New: lower_new, tree.Delete: lower_delete,
}  # fmt: skip
