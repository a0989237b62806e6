"""Vectors of lanes: broadcasts, and values that are known to be linear in the lane's number."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.arithmetic import INTEGER, converted
from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.lanes.mask import lanes_of, register, vector
from tilewise.emulator.host.lower.values import Value, Wide
from tilewise.emulator.parse.types import Pointer, Scalar, Type

MAX_STRIDE = 1 << 20


def broadcast(b: Builder, llvm: str, text: str) -> str:
    kind = lanes_of(b).vector(llvm)
    first = b.make(f"insertelement {kind} poison, {llvm} {text}, i64 0")
    return b.make(f"shufflevector {kind} {first}, {kind} poison, {lanes_of(b).vector('i32')} zeroinitializer")


def from_linear(b: Builder, type_: Type, base: str, stride: int) -> Wide:
    llvm = register(type_)
    rising = "<" + ", ".join(f"{llvm} {stride * i}" for i in range(lanes_of(b).width)) + ">"
    text = b.make(f"add {vector(b, type_)} {broadcast(b, llvm, base)}, {rising}")
    return Wide(type_, text, base, stride)


def widen(b: Builder, value: Value) -> Wide:
    """The value as a vector; a uniform one is broadcast."""
    if isinstance(value, Wide):
        return value
    text = value.text
    if isinstance(value.type, Pointer):
        text = b.make(f"ptrtoint ptr {text} to i64")
    llvm = register(value.type)
    integer = isinstance(value.type, Pointer) or (isinstance(value.type, Scalar) and value.type.kind == "int")
    return Wide(value.type, broadcast(b, llvm, text), text if integer else "", 0)


def common_width(b: Builder, *values: Any) -> tuple[int, list[Any], list[str]]:
    """The width of an operation on these values (1 if all are uniform), the values in that width, and their texts."""
    if not any(isinstance(v, Wide) for v in values):
        return 1, list(values), [v.text for v in values]
    made = [widen(b, v) for v in values]
    return lanes_of(b).width, made, [v.vector for v in made]


def of_width(type_: Type, text: str, width: int) -> Value:
    return Value(type_, text) if width == 1 else Wide(type_, text)


def and_i1(b: Builder, one: str, two: str) -> str:
    if one == "true" or two == "true":
        return two if one == "true" else one
    return b.make(f"and i1 {one}, {two}")


def as_scalar(b: Builder, value: Value, type_: Scalar) -> Value:
    """A scalar as another type. A linear value stays linear; when it is extended, only if no lane wrapped."""
    source = value.type
    assert isinstance(source, Scalar)
    if source == type_:
        return value
    if not isinstance(value, Wide):
        return Value(type_, converted(b, value.text, source, type_))
    text, valid = converted(b, value.vector, source, type_, lanes_of(b).width), value.valid
    longer = type_.size * 8 > source.bits
    if not value.base or type_.kind != "int" or (longer and source.size < 4):
        return Wide(type_, text)
    if longer and value.stride:
        last = b.make(f"add {source.llvm} {value.base}, {value.stride * (lanes_of(b).width - 1)}")
        order = ("s" if source.signed else "u") + ("ge" if value.stride > 0 else "le")
        valid = and_i1(b, valid, b.make(f"icmp {order} {source.llvm} {last}, {value.base}"))
    return Wide(type_, text, converted(b, value.base, source, type_), value.stride, valid)


def _integer_literal(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdigit() else None


def propagate_linear(b: Builder, op: str, result: Wide, one: Wide, two: Wide) -> None:
    """Give an integer sum, difference or product the base and stride that follow from its operands."""
    if not one.base or not two.base:
        return
    stride = one.stride + two.stride if op == "+" else one.stride - two.stride
    if op == "*":
        times, of = (_integer_literal(two.base), one) if not two.stride else (_integer_literal(one.base), two)
        if one.stride and two.stride:
            return
        if not one.stride and not two.stride:
            stride = 0
        elif times is None:
            return
        else:
            stride = times * of.stride
    if abs(stride) > MAX_STRIDE:
        return
    result.base = b.make(f"{INTEGER[op]} {register(result.type)} {one.base}, {two.base}")
    result.stride, result.valid = stride, and_i1(b, one.valid, two.valid)
