"""Operators on scalars and pointers, with checks for overflow and division; overloaded operators of classes."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.arithmetic import SIGNED_COMPARE, UNSIGNED_COMPARE
from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.call import call_choice
from tilewise.emulator.host.lower.conversion import convert, object_place, rvalue, truth
from tilewise.emulator.host.lower.float_to_integer import lanes_type, splat
from tilewise.emulator.host.lower.lanes import control
from tilewise.emulator.host.lower.lanes.linear import common_width, of_width, widen
from tilewise.emulator.host.lower.lanes.memory import offset_pointer
from tilewise.emulator.host.lower.objects import assign
from tilewise.emulator.host.lower.operands import element_size, operands
from tilewise.emulator.host.lower.places import has_value, load, note_value, put
from tilewise.emulator.host.lower.recorded_text import assignment, note_assigned, recorded_element
from tilewise.emulator.host.lower.reference_comparisons import record_limit, record_values
from tilewise.emulator.host.lower.scalars import scalars
from tilewise.emulator.host.lower.values import (
    INIT,
    Actual,
    Lowered,
    Overloads,
    Place,
    Value,
    Wide,
    WidePlace,
    dereference,
    is_object,
)
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Array, Pointer, Record, Scalar
from tilewise.emulator.sema.overload import operator_choice


def lower_binary(b: Builder, node: tree.Binary) -> Lowered:
    op = node.op
    if op == ",":
        b.lower(node.left)
        return b.lower(node.right)
    if op in ("&&", "||"):
        return _logical(b, node)
    left = operands(b, [node.left])[0]
    right = operands(b, [node.right])[0]
    b.line = node.line
    if id(node) in b.differences:
        left, right = rvalue(b, left), rvalue(b, right)
        record_values(b, b.differences[id(node)], left, right)
    if id(node) in b.limit_tests:
        made, side = b.limit_tests[id(node)]
        left, right = rvalue(b, left), rvalue(b, right)
        result = rvalue(b, binary(b, op, left, right, node))
        record_limit(b, made, side, op, (left, right), result)
        return result
    return binary(b, op, left, right, node)


def binary(b: Builder, op: str, left: Actual, right: Actual, node: tree.Node) -> Lowered:
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
    """An object converted by its conversion operator."""
    if not isinstance(value.type, Record):
        return value
    names = [n for n in b.program.layout(value.type).methods if n.startswith("operator type ")]
    if not names:
        return value
    return rvalue(b, b.call_method(value, names[0], []))


def _overloaded(b: Builder, op: str, values: list[Actual], node: tree.Node) -> Lowered | None:
    """A call of an overloaded operator; None if there is none for these values."""
    choice = operator_choice(b.program, b.env, f"operator{op}", values)
    if choice is None:
        return None
    if choice.record is not None and is_object(values[0]):
        return call_choice(b, choice, object_place(values[0]), values[1:], node)
    return call_choice(b, choice, None, values, node)


def _logical(b: Builder, node: tree.Binary) -> Value:
    if b.lanes is not None and b.lanes.varies(node):
        return control.logical(b, node)
    slot = b.alloca("i1")
    left = truth(b, b.lower(node.left))
    b.emit(f"store i1 {left}, ptr {slot}")
    more, done = b.label(), b.label()
    b.branch(left, *((more, done) if node.op == "&&" else (done, more)))
    b.begin(more)
    with b.full_expression():
        b.emit(f"store i1 {truth(b, b.lower(node.right))}, ptr {slot}")
    b.begin(done)
    return Value(types.BOOL, b.make(f"load i1, ptr {slot}"))


def _pointers(b: Builder, op: str, left: Value, right: Value, node: Any) -> Value:
    if op in SIGNED_COMPARE:
        given = [convert(b, v, types.VOIDP, explicit=True) for v in (left, right)]
        width, _, (one, two) = common_width(b, *given)
        kind = "ptr" if width == 1 else lanes_type("i64", width)
        return of_width(types.BOOL, b.make(f"icmp {UNSIGNED_COMPARE[op]} {kind} {one}, {two}"), width)
    if op == "-" and isinstance(left.type, Pointer) and isinstance(right.type, Pointer):
        size = element_size(b, left.type.to, node)
        if isinstance(left, Wide) or isinstance(right, Wide):
            end, start = (widen(b, v).as_type(types.LONG) for v in (left, right))
            return scalars(b, "/", scalars(b, "-", end, start, node), Value(types.LONG, str(size)), node)
        first, second = (b.make(f"ptrtoint ptr {v.text} to i64") for v in (left, right))
        apart = b.make(f"sub i64 {first}, {second}")
        return b.value(types.LONG, f"sdiv i64 {apart}, {size}")
    if op == "+" and isinstance(right.type, Pointer):
        left, right = right, left
    if op not in "+-" or not isinstance(left.type, Pointer) or not isinstance(right.type, Scalar):
        raise b.refuse(f"{op} does not work on {left.type} and {right.type}", node)
    if right.type.floating:
        raise b.refuse(f"a pointer moves by whole elements, not by {right.type}", node)
    size = element_size(b, left.type.to, node)
    if isinstance(left, Wide) or isinstance(right, Wide):
        return offset_pointer(b, left, right, size if op == "+" else -size).as_type(left.type)
    count = convert(b, right, types.LONG if right.type.signed else types.ULONG).text
    step = b.make(f"mul i64 {count}, {size}")
    if op == "-":
        step = b.make(f"sub i64 0, {step}")
    return Value(left.type, b.offset(left.text, step))


def lower_unary(b: Builder, node: tree.Unary) -> Lowered:
    if node.op == "&":
        return _address(b, node)
    value = b.lower(node.operand)
    b.line = node.line
    if is_object(value):
        made = _overloaded(b, node.op, [value], node)
        if made is not None:
            return made
    if isinstance(value, Overloads) and node.op == "*":
        return value
    if node.op == "!":
        width, _, (text,) = common_width(b, convert(b, value, types.BOOL))
        return of_width(types.BOOL, b.make(f"xor {lanes_type('i1', width)} {text}, {splat('i1', -1, width)}"), width)
    one = _unboxed(b, rvalue(b, value))
    if node.op == "*":
        if not isinstance(one.type, Pointer):
            raise b.refuse(f"{one.type} is not a pointer", node)
        if isinstance(one.type.to, types.FunctionType):
            return one
        return recorded_element(b, node.operand, dereference(one))
    if isinstance(one.type, Pointer) and node.op == "+":
        return one
    if not isinstance(one.type, Scalar):
        raise b.refuse(f"{node.op} does not work on {one.type}", node)
    type_ = types.promote(one.type)
    one = convert(b, one, type_)
    if node.op == "+":
        return one
    if node.op == "-" and isinstance(one, Wide) and not type_.floating:
        return scalars(b, "-", Value(type_, "0"), one)
    width, _, (text,) = common_width(b, one)
    kind = lanes_type(type_.llvm, width)
    if node.op == "~":
        return of_width(type_, b.make(f"xor {kind} {text}, {splat(type_.llvm, -1, width)}"), width)
    return of_width(type_, b.make(f"fneg {kind} {text}" if type_.floating else f"sub {kind} 0, {text}"), width)


def _address(b: Builder, node: tree.Unary) -> Lowered:
    value = b.lower(node.operand)
    b.line = node.line
    if isinstance(value, Overloads):
        return value
    if isinstance(value.type, Record) and any(not m.parameters for m, *_ in value.type.methods_named("operator&")):
        return b.call_method(value, "operator&", [], node)
    if isinstance(value, WidePlace):
        return value.at.as_type(Pointer(value.type, value.const))
    if isinstance(value, Place):
        local = b.find(node.operand.name) if isinstance(node.operand, tree.Name) else None
        if local is not None and local.size:
            return rvalue(b, value)  # &a of a variable-length array
        if value.register:
            raise b.refuse(f"the address of {value.name or 'this'} cannot be taken here", node)
        return Value(Pointer(value.type, value.const), value.address)
    if isinstance(value.type, Record):
        return Value(Pointer(value.type), value.text)
    raise b.refuse("this has no address", node)


def lower_step(b: Builder, node: tree.Step) -> Lowered:
    """++ and --."""
    place = b.lower(node.operand)
    b.line = node.line
    if is_object(place):
        extra = [] if node.prefix else [Value(types.INT, "0")]
        return b.call_method(place, f"operator{node.op * 2}", extra, node)
    if not isinstance(place, Place):
        raise b.refuse(f"{node.op * 2} needs a variable", node)
    old = load(b, place)
    one = Value(types.INT, "1")
    changed = binary(b, node.op, old, one, node)
    new = convert(b, changed, place.type)
    put(b, place, new)
    return place if node.prefix else old


def _copies_variable(b: Builder, node: tree.Assign) -> bool:
    """Whether an assignment in a kernel copies a local variable that may be uninitialised: `prev = curr;`,
    `tile[y][x] = next;`. Stencils that march through a volume do so in edge threads, which never use the copy. It is
    therefore not reported: another variable becomes uninitialised, too; a __shared__ array counts as initialised."""
    if not b.program.device or node.op or not isinstance(node.value, tree.Name):
        return False
    source, target = b.find(node.value.name), node.target
    if source is None or not source.flag:
        return False
    while isinstance(target, tree.Index):
        target = target.base
    local = b.find(target.name) if isinstance(target, tree.Name) else None
    if local is None:
        return False
    if target is not node.target:
        return isinstance(local.type, Array) and local.check != INIT
    return bool(local.flag) and type(local) is type(source) and local.type is source.type


def _copy_variable(b: Builder, node: tree.Assign) -> Place:
    source = b.lower(node.value)
    assert isinstance(source, Place)
    value = load(b, source, checked=False)
    target = b.lower(node.target)
    assert isinstance(target, Place)
    b.line = node.line
    has = has_value(b, source) if target.register else ""
    put(b, target, convert(b, value, target.type))
    if has:
        note_value(b, target, has)
    return target


def lower_assign(b: Builder, node: tree.Assign) -> Lowered:
    with assignment(b, node):
        return _assign(b, node)


def _assign(b: Builder, node: tree.Assign) -> Lowered:
    if _copies_variable(b, node):
        return _copy_variable(b, node)
    value: Actual = node.value if isinstance(node.value, tree.Braces) else b.lower(node.value)
    if isinstance(value, Place) and (value.register or not isinstance(value.type, (Record, Array))):
        value = rvalue(b, value)
    target = b.lower(node.target)
    b.line = node.line
    if is_object(target):
        if node.op:
            made = _overloaded(b, node.op + "=", [target, value], node)
            if made is not None:
                return made
            made = _overloaded(b, node.op, [target, value], node)
            if made is None:
                raise b.refuse(f"{target.type} has no operator {node.op}=", node)
            return assign(b, object_place(target), made)
        return assign(b, object_place(target), value)
    if not isinstance(target, Place):
        raise b.refuse("this cannot be assigned to", node)
    if isinstance(target.type, Array):
        raise b.refuse(f"an array ({target.type}) cannot be assigned to", node)
    if target.const and not b.library and target.register:
        raise b.refuse(f"{target.name or 'this'} is const", node)
    if node.op:
        value = binary(b, node.op, load(b, target), value, node)
    if isinstance(value, tree.Braces):
        value = b.lower(value.items[0]) if value.items else Value(types.INT, "0")
    made = convert(b, value, target.type, explicit=bool(node.op))
    put(b, target, made)
    note_assigned(b, node, target, made)
    return target
