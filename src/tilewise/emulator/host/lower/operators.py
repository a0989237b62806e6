"""Operators on scalars and pointers, with overflow and division checked; those of classes by their functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewise.emulator.host.lower.arithmetic import (
    FLOATING,
    INTEGER,
    SIGNED_COMPARE,
    UNSIGNED_COMPARE,
    operated,
    shifted,
)
from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import load, store
from tilewise.emulator.host.lower.conversion import convert, object_place, rvalue, truth
from tilewise.emulator.host.lower.handed_on import handed_on
from tilewise.emulator.host.lower.values import FULL, Overloads, Place, Value
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.late import late, provide
from tilewise.emulator.parse.types import Array, Pointer, Record, Scalar
from tilewise.emulator.sema.overload import operator_choice

TOLD = 10_000  # overflows of a line that are told


def lower_binary(b: Builder, node: tree.Binary) -> Any:
    op = node.op
    if op == ",":
        late.lower(b, node.left)
        return late.lower(b, node.right)
    if op in ("&&", "||"):
        return _logical(b, node)
    left = late.operands(b, [node.left])[0]
    right = late.operands(b, [node.right])[0]
    b.line = node.line
    if id(node) in b.watched:
        left, right = rvalue(b, left), rvalue(b, right)
        late.note_values(b, b.watched[id(node)], left, right)
    if id(node) in b.limits:
        made, side = b.limits[id(node)]
        left, right = rvalue(b, left), rvalue(b, right)
        result = binary(b, op, left, right, node)
        late.note_limit(b, made, side, op, (left, right), result)
        return result
    return binary(b, op, left, right, node)


def binary(b: Builder, op: str, left: Any, right: Any, node: Any) -> Any:
    overloaded = _overloaded(b, op, [left, right], node)
    if overloaded is not None:
        return overloaded
    first, second = rvalue(b, left), rvalue(b, right)
    first, second = _unboxed(b, first), _unboxed(b, second)
    if isinstance(first.type, Pointer) or isinstance(second.type, Pointer):
        return _pointers(b, op, first, second, node)
    if first.type is types.NULLPTR or second.type is types.NULLPTR:
        return _pointers(b, op, first, second, node)
    if not isinstance(first.type, Scalar) or not isinstance(second.type, Scalar):
        raise b.refuse(f"{op} does not work on {first.type} and {second.type}", node)
    return scalars(b, op, first, second, node)


def _unboxed(b: Builder, value: Value) -> Value:
    """An object that becomes a number by its own operator."""
    if not isinstance(value.type, Record):
        return value
    names = [n for n in b.program.layout(value.type).methods if n.startswith("operator type ")]
    if not names:
        return value
    return rvalue(b, late.call_method(b, value, names[0], []))


def _overloaded(b: Builder, op: str, values: list[Any], node: Any) -> Any:
    """An operator function of a class or of the program; None where there is none for these values."""
    choice = operator_choice(b.program, b.env, f"operator{op}", values)
    if choice is None:
        return None
    if choice.record is not None:
        return late.call_choice(b, choice, object_place(values[0]), values[1:], node)
    return late.call_choice(b, choice, None, values, node)


def _logical(b: Builder, node: tree.Binary) -> Value:
    slot = b.alloca("i1")
    left = truth(b, late.lower(b, node.left))
    b.emit(f"store i1 {left}, ptr {slot}")
    more, done = b.label(), b.label()
    b.branch(left, *((more, done) if node.op == "&&" else (done, more)))
    b.begin(more)
    kept, b.temporaries = b.temporaries, []
    b.emit(f"store i1 {truth(b, late.lower(b, node.right))}, ptr {slot}")
    b.end_temporaries()
    b.temporaries = kept
    b.begin(done)
    return Value(types.BOOL, b.make(f"load i1, ptr {slot}"))


def scalars(b: Builder, op: str, left: Value, right: Value, node: Any) -> Value:
    """The usual arithmetic conversions, then the operation."""
    first, second = left.type, right.type
    assert isinstance(first, Scalar)
    assert isinstance(second, Scalar)
    if op in ("<<", ">>"):
        return _shift(b, op, left, right)
    type_ = types.common(first, second)
    one, two = convert(b, left, type_).text, convert(b, right, type_).text
    if op in SIGNED_COMPARE:
        return Value(types.BOOL, operated(b, op, type_, one, two))
    if op not in (FLOATING if type_.floating else INTEGER):
        raise b.refuse(f"{op} does not work on {type_}", node)
    if not type_.floating and not b.program.device:
        if op in ("/", "%"):
            _divisible(b, type_, one, two)
        elif type_.signed and op in "+-*" and not b.library:
            if b.sure:
                return b.value(type_, f"{INTEGER[op]} nsw {type_.llvm} {one}, {two}")
            return _overflowing(b, op, type_, one, two)
    return Value(type_, operated(b, op, type_, one, two))


def _overflowing(b: Builder, op: str, type_: Scalar, one: str, two: str) -> Value:
    """Signed arithmetic that is told when it overflows, and wraps as the machine does."""
    kind = {"+": "sadd", "-": "ssub", "*": "smul"}[op]
    both = b.make(f"call {{{type_.llvm}, i1}} @llvm.{kind}.with.overflow.{type_.llvm}({type_.llvm} {one}, {type_.llvm} {two})")  # fmt: skip  # noqa: E501
    result = b.make(f"extractvalue {{{type_.llvm}, i1}} {both}, 0")
    over = b.make(f"extractvalue {{{type_.llvm}, i1}} {both}, 1")
    b.program.external(f"llvm.{kind}.with.overflow.{type_.llvm}")
    wide = [v if type_.size == 8 else "" for v in (one, two)]
    if type_.size == 8:
        first, second = wide
    else:
        first = second = ""
    bad, good = b.label(), b.label()
    b.emit(f"br i1 {over}, label %{bad}, label %{good}, !prof !0")
    b.open = False
    b.begin(bad)
    if type_.size < 8:
        first = b.make(f"sext {type_.llvm} {one} to i64")
        second = b.make(f"sext {type_.llvm} {two} to i64")
    b.program.external("rt_overflow")
    sign = {"+": 0, "-": 1, "*": 2}[op]
    _unless_told_often(b, good)
    b.emit(f"call void @rt_overflow(i64 {first}, i64 {second}, i32 {sign}, i32 {type_.size}, i32 {b.line_text()}) cold")
    b.jump(good)
    b.begin(good)
    return Value(type_, result)


def _unless_told_often(b: Builder, good: str) -> None:
    """A line that overflows in every iteration is told of so many times; then it goes on at `good` at once."""
    cells = b.program.overflows
    if b.line not in cells:
        cells[b.line] = b.program.memory.static(8, "", False)
    cell, tell = f"inttoptr (i64 {cells[b.line]} to ptr)", b.label()
    told = b.make(f"load i64, ptr {cell}")
    b.branch(b.make(f"icmp ult i64 {told}, {TOLD}"), tell, good)
    b.begin(tell)
    b.emit(f"store i64 {b.make(f'add i64 {told}, 1')}, ptr {cell}")


def _divisible(b: Builder, type_: Scalar, one: str, two: str) -> None:
    """The host stops at a division by zero, and of the least number by -1."""
    zero = b.make(f"icmp eq {type_.llvm} {two}, 0")
    b.complain(zero, "rt_divide", [("i32", "0"), ("i32", b.line_text())])
    if type_.signed:
        low = b.make(f"icmp eq {type_.llvm} {one}, {-(1 << (type_.size * 8 - 1))}")
        minus = b.make(f"icmp eq {type_.llvm} {two}, -1")
        b.complain(b.make(f"and i1 {low}, {minus}"), "rt_divide", [("i32", "1"), ("i32", b.line_text())])


def _shift(b: Builder, op: str, left: Value, right: Value) -> Value:
    first, second = left.type, right.type
    assert isinstance(first, Scalar)
    assert isinstance(second, Scalar)
    if first.floating or second.floating:
        raise b.refuse(f"{op} does not work on {first} and {second}")
    type_ = types.promote(first)
    one = convert(b, left, type_).text
    count = convert(b, right, types.LONG if type_.size == 8 else types.INT).text
    return Value(type_, shifted(b, op, type_, one, count))


def _pointers(b: Builder, op: str, left: Value, right: Value, node: Any) -> Value:
    if op in SIGNED_COMPARE:
        one = convert(b, left, types.VOIDP, explicit=True).text
        two = convert(b, right, types.VOIDP, explicit=True).text
        return b.value(types.BOOL, f"icmp {UNSIGNED_COMPARE[op]} ptr {one}, {two}")
    if op == "-" and isinstance(left.type, Pointer) and isinstance(right.type, Pointer):
        one = b.make(f"ptrtoint ptr {left.text} to i64")
        two = b.make(f"ptrtoint ptr {right.text} to i64")
        apart = b.make(f"sub i64 {one}, {two}")
        return b.value(types.LONG, f"sdiv i64 {apart}, {late.element_size(b, left.type.to, node)}")
    if op == "+" and isinstance(right.type, Pointer):
        left, right = right, left
    if op not in "+-" or not isinstance(left.type, Pointer) or not isinstance(right.type, Scalar):
        raise b.refuse(f"{op} does not work on {left.type} and {right.type}", node)
    if right.type.floating:
        raise b.refuse(f"a pointer moves by whole elements, not by {right.type}", node)
    count = convert(b, right, types.LONG if right.type.signed else types.ULONG).text
    step = b.make(f"mul i64 {count}, {late.element_size(b, left.type.to, node)}")
    if op == "-":
        step = b.make(f"sub i64 0, {step}")
    return Value(left.type, b.offset(left.text, step))


def lower_unary(b: Builder, node: tree.Unary) -> Any:
    if node.op == "&":
        return _address(b, node)
    value = late.lower(b, node.operand)
    b.line = node.line
    if isinstance(getattr(value, "type", None), Record):
        made = _overloaded(b, node.op, [value], node)
        if made is not None:
            return made
    if node.op == "!":
        return b.value(types.BOOL, f"xor i1 {truth(b, value)}, true")
    if isinstance(value, Overloads) and node.op == "*":
        return value
    made = _unboxed(b, rvalue(b, value))
    if node.op == "*":
        if not isinstance(made.type, Pointer):
            raise b.refuse(f"{made.type} is not a pointer", node)
        if isinstance(made.type.to, types.FunctionType):
            return made
        return Place(made.type.to, made.text, FULL, const=made.type.const)
    if isinstance(made.type, Pointer) and node.op == "+":
        return made
    if not isinstance(made.type, Scalar):
        raise b.refuse(f"{node.op} does not work on {made.type}", node)
    type_ = types.promote(made.type)
    made = convert(b, made, type_)
    if node.op == "+":
        return made
    if node.op == "~":
        return b.value(type_, f"xor {type_.llvm} {made.text}, -1")
    if type_.floating:
        return b.value(type_, f"fneg {type_.llvm} {made.text}")
    return b.value(type_, f"sub {type_.llvm} 0, {made.text}")


def _address(b: Builder, node: tree.Unary) -> Any:
    value = late.lower(b, node.operand)
    b.line = node.line
    if isinstance(value, Overloads):
        return value
    if isinstance(value.type, Record) and any(not m.parameters for m, *_ in value.type.methods_named("operator&")):
        return late.call_method(b, value, "operator&", [], node)
    if isinstance(value, Place):
        local = b.find(node.operand.name) if isinstance(node.operand, tree.Name) else None
        if local is not None and local.size:
            return rvalue(b, value)  # &a of float a[n]: where it begins
        if value.register:
            raise b.refuse(f"the address of {value.name or 'this'} cannot be taken here", node)
        return Value(Pointer(value.type, value.const), value.address)
    if isinstance(value.type, Record):
        return Value(Pointer(value.type), value.text)
    raise b.refuse("this has no address", node)


def lower_step(b: Builder, node: tree.Step) -> Any:
    """++ and --."""
    place = late.lower(b, node.operand)
    b.line = node.line
    if isinstance(getattr(place, "type", None), Record):
        extra = [] if node.prefix else [Value(types.INT, "0")]
        return late.call_method(b, place, f"operator{node.op * 2}", extra, node)
    if not isinstance(place, Place):
        raise b.refuse(f"{node.op * 2} needs a variable", node)
    old = load(b, place)
    one = Value(types.INT, "1")
    changed = binary(b, node.op, old, one, node)
    new = convert(b, changed, place.type)
    store(b, place, new.text)
    return place if node.prefix else old


def _hand_on(b: Builder, node: tree.Assign, source: Any) -> Place:
    value = load(b, replace(late.lower(b, node.value), flag=""))
    target: Place = late.lower(b, node.target)
    b.line = node.line
    store(b, replace(target, flag=""), convert(b, value, target.type).text)
    if target.register:
        b.emit(f"store i1 {b.make(f'load i1, ptr {source.flag}')}, ptr {target.flag}")
    return target


def lower_assign(b: Builder, node: tree.Assign) -> Any:
    source = handed_on(b, node)
    if source is not None:
        return _hand_on(b, node, source)
    value = node.value if isinstance(node.value, tree.Braces) else late.lower(b, node.value)
    if isinstance(value, Place) and value.register:
        value = load(b, value)
    elif isinstance(value, Place) and not isinstance(value.type, (Record, Array)):
        value = rvalue(b, value)
    target = late.lower(b, node.target)
    b.line = node.line
    if isinstance(getattr(target, "type", None), Record):
        if node.op:
            made = _overloaded(b, node.op + "=", [target, value], node)
            if made is not None:
                return made
            made = _overloaded(b, node.op, [target, value], node)
            if made is None:
                raise b.refuse(f"{target.type} has no operator {node.op}=", node)
            return late.assign(b, object_place(target), made)
        return late.assign(b, object_place(target), value)
    if not isinstance(target, Place):
        raise b.refuse("this cannot be assigned to", node)
    if isinstance(target.type, Array):
        raise b.refuse(f"an array ({target.type}) cannot be assigned to", node)
    if target.const and not b.library and target.register:
        raise b.refuse(f"{target.name or 'this'} is const", node)
    if node.op:
        value = binary(b, node.op, load(b, target), value, node)
    if isinstance(value, tree.Braces):
        value = late.lower(b, value.items[0]) if value.items else Value(types.INT, "0")
    made = convert(b, value, target.type, explicit=bool(node.op))
    store(b, target, made.text)
    return target


provide(binary)
