"""Lowers expressions to LLVM: TABLE has a function for each kind of node."""

from __future__ import annotations

import struct
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.call import call_method, lower_call
from tilewise.emulator.host.lower.conversion import convert, object_place, place_of, rvalue, truth
from tilewise.emulator.host.lower.lanes import control
from tilewise.emulator.host.lower.lanes.memory import checked_index, interleaved_element, offset_pointer
from tilewise.emulator.host.lower.marks import OK, SMALL, WITHIN
from tilewise.emulator.host.lower.names import lower_member, lower_name
from tilewise.emulator.host.lower.operators import (
    lower_assign,
    lower_binary,
    lower_step,
    lower_unary,
)  # fmt: skip
from tilewise.emulator.host.lower.places import load
from tilewise.emulator.host.lower.values import (
    FULL,
    INIT,
    PRECHECKED,
    SHARED,
    UNCHECKED,
    InterleavedPlace,
    Overloads,
    Place,
    Value,
    Wide,
    WidePlace,
)  # fmt: skip
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.late import late, provide
from tilewise.emulator.parse.types import Array, FunctionType, Pointer, Record, Reference, Scalar, Type


def lower(b: Builder, node: Any) -> Any:
    """A Value, a Place, or Overloads for the name of a function."""
    known = TABLE.get(type(node))
    if known is None:
        raise b.refuse(f"{type(node).__name__} is not supported here", node)
    if node.line:
        b.line = node.line
    if b.lanes is not None:
        b.lanes.varies(node)
        if id(node) in b.computed:
            return b.computed[id(node)]
    return known(b, node)


def operands(b: Builder, nodes: list[Any]) -> list[Any]:
    """Arguments of a call; {…} is lowered later, when the parameter's type is known."""
    return [n if isinstance(n, tree.Braces) else _load_register(b, lower(b, n)) for n in nodes]


def _load_register(b: Builder, value: Any) -> Any:
    """Load a register variable now: a later argument may change it."""
    if isinstance(value, Place) and (value.register or isinstance(value, (WidePlace, InterleavedPlace))):
        return load(b, value)
    return value


def number_text(value: Any, type_: Scalar) -> str:
    if not type_.floating:
        return str(int(value)) if type_.kind != "bool" else ("true" if value else "false")
    real = float(value)
    if type_ is types.FLOAT:
        try:
            real = struct.unpack("<f", struct.pack("<f", real))[0]
        except OverflowError:
            real = float("inf") if real > 0 else float("-inf")
    return f"0x{struct.unpack('<Q', struct.pack('<d', real))[0]:016X}"


def constant(value: Any, type_: Scalar) -> Value:
    return Value(type_, number_text(value, type_))


def _number(b: Builder, node: tree.Number) -> Any:
    if node.type is types.NULLPTR:
        return Value(types.NULLPTR, "null")
    return constant(node.value, node.type)


def _text(b: Builder, node: tree.Text) -> Any:
    address = b.program.literal(node.value)
    return Place(Array(types.CHAR, len(node.value) + 1), f"inttoptr (i64 {address} to ptr)", UNCHECKED, const=True)


def _this(b: Builder, node: tree.This) -> Any:
    if b.this is None:
        raise b.refuse("there is no `this` here", node)
    return b.this


def _ternary(b: Builder, node: tree.Ternary) -> Any:
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
    b.end_temporaries()
    b.jump(done)
    b.lines += tail
    b.open = second_open
    b.temporaries = temps_second
    _join(b, second, type_, space)
    b.end_temporaries()
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


def _or_throw(b: Builder, node: tree.Ternary, condition: str) -> Any:
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


def _join(b: Builder, value: Any, type_: Type, space: str) -> None:
    if type_ is types.VOID or not b.open:
        return
    if isinstance(type_, Record):
        b.set_state(space, str(type_.size), 1)
        late.construct(b, type_, space, [value])
        return
    made = Value(type_, value.address) if isinstance(type_, Reference) else convert(b, value, type_)
    b.emit(f"store {type_.llvm} {made.text}, ptr {space}")


def common_type(b: Builder, first: Any, second: Any) -> Type:
    """The type of c ? a : b."""
    places = isinstance(first, Place) and isinstance(second, Place) and first.type == second.type
    if places and not (first.register or second.register or isinstance(first.type, Array)):
        return Reference(first.type)
    if isinstance(first, Overloads) or isinstance(second, Overloads):
        known = first if not isinstance(first, Overloads) else second
        if isinstance(known, Overloads):
            return rvalue(b, known).type
        return known.type  # type: ignore[no-any-return]
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


def _index(b: Builder, node: tree.Index) -> Any:
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
        return call_method(b, base, "operator[]", value, node)
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
        return WidePlace(to, offset_pointer(b, pointer, index, size), FULL, pointer.type.const, span)
    step = b.make(f"mul i64 {index.text}, {size}")
    return Place(to, b.offset(pointer.text, step), FULL, span=span)


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
    of = late.elements(b, node.base)
    return Place(of, b.offset(b.prechecked[id(node)], b.make(f"mul i64 {index.text}, {of.size}")), PRECHECKED)


def element_size(b: Builder, type_: Type, node: Any = None) -> int:
    if type_ is types.VOID or isinstance(type_, FunctionType):
        return 1
    return b.program.size_of(type_)


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
        within = checked_index(b, at, array.length) if array.length else at
        return WidePlace(array.of, offset_pointer(b, first, within, b.program.size_of(array.of)), check, base.const)
    index = at.text
    if array.length and not b.library:
        bad = b.make(f"icmp uge i64 {index}, {array.length}")
        b.report_if(bad, "rt_bad_index", [("i64", index), ("i64", str(array.length)), ("i32", b.line_text())])
        index = b.make(f"select i1 {bad}, i64 0, i64 {index}")
    size = b.program.size_of(array.of)
    step = b.make(f"mul i64 {index}, {size}")
    inside = "" if not array.length or b.library else OK if array.size <= SMALL else WITHIN
    there = b.make(f"getelementptr i8, ptr {base.address}, i64 {step}{inside}")
    return Place(array.of, there, check, name=base.name, const=base.const)


def _cast(b: Builder, node: tree.Cast) -> Any:
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
        return late.make_temporary(b, type_, [value])
    return convert(b, value, type_, explicit=True)


def _construct(b: Builder, node: tree.Construct) -> Any:
    type_ = b.program.resolve(node.type, b.env)
    if isinstance(type_, Record):
        if node.braces:
            return late.make_temporary(b, type_, list(node.arguments))
        return late.make_temporary(b, type_, operands(b, node.arguments))
    items = node.arguments[0].items if node.braces else node.arguments
    if not items:
        return convert(b, Value(types.INT, "0"), type_, explicit=True)
    if len(items) > 1:
        raise b.refuse(f"{type_} is made from one value", node)
    return convert(b, lower(b, items[0]), type_, explicit=True)


def _sizeof(b: Builder, node: tree.SizeOf) -> Any:
    local = b.find(node.operand.name) if isinstance(node.operand, tree.Name) else None
    if local is not None and local.size and not node.alignment:
        return Value(types.ULONG, local.size)
    if isinstance(node.operand, tree.Index) and isinstance(node.operand.base, tree.Name) and not node.alignment:
        rows = b.find(node.operand.base.name)
        if rows is not None and rows.row:  # sizeof(a[0]) of float a[n][m]
            size = element_size(b, rows.type.to, node)  # type: ignore[attr-defined]
            return b.value(types.ULONG, f"mul i64 {b.make(f'load i64, ptr {rows.row}')}, {size}")
    type_ = b.program.resolve(node.type, b.env) if node.type is not None else unevaluated_type(b, node.operand)
    type_ = types.bare(type_)
    size = element_size(b, type_)
    return Value(types.ULONG, str(type_.align if node.alignment else size))


def unevaluated_type(b: Builder, node: Any) -> Type:
    """The type of an operand of sizeof or decltype: lower it, then discard the code."""
    outer, lines, opened, line = b.temporaries, len(b.lines), b.open, b.noted_line
    b.temporaries = []
    value = lower(b, node)
    del b.lines[lines:]
    b.temporaries, b.open, b.noted_line = outer, opened, line
    if not isinstance(value, (Value, Place)):
        raise b.refuse("this is a name and not a value: nothing is known of its type", node)
    return value.type


def _braces(b: Builder, node: tree.Braces) -> Any:
    raise b.refuse("a list in braces needs a type here", node)


def _throw(b: Builder, node: tree.Throw) -> Any:
    """In a program without a catch, or in a kernel: report and end the program."""
    if b.program.catches and not b.program.device:
        return late.lower_throw(b, node)
    text = ""
    if node.value is not None:
        value = lower(b, node.value)
        kind = getattr(value, "type", types.VOID)
        text = str(kind)
        if isinstance(kind, Record) and b.program.layout(kind).methods_named("what"):
            what = rvalue(b, call_method(b, value, "what", []))
            b.program.external("rt_throw_what")
            b.emit(f"call void @rt_throw_what(i32 {b.program.name_number(text)}, ptr {what.text}, i32 {b.line_text()})")
            return Value(types.VOID, "")
    b.program.external("rt_throw")
    b.emit(f"call void @rt_throw(i32 {b.program.name_number(text)}, i32 {b.line_text()})")
    return Value(types.VOID, "")


TABLE: dict[type, Any] = {
    tree.Number: _number, tree.Text: _text, tree.Name: lower_name, tree.This: _this, tree.Unary: lower_unary,
    tree.Step: lower_step, tree.Binary: lower_binary, tree.Assign: lower_assign, tree.Ternary: _ternary,
    tree.Call: lower_call, tree.Index: _index, tree.Member: lower_member, tree.Cast: _cast,
    tree.Construct: _construct, tree.SizeOf: _sizeof, tree.Throw: _throw, tree.Braces: _braces,
    tree.Lambda: lambda b, node: late.lower_lambda(b, node), tree.Launch: lambda b, node: late.lower_launch(b, node),
    tree.New: lambda b, node: late.lower_new(b, node), tree.Delete: lambda b, node: late.lower_delete(b, node),
}  # fmt: skip


provide(unevaluated_type, common_type, constant, element_size, lower, operands)
