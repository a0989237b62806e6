"""Operators on scalars, of one thread or of lanes: the usual arithmetic conversions, then the operation.

On the host overflow and division are checked."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.arithmetic import FLOATING, INTEGER, SIGNED_COMPARE, operated, shifted
from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.float_to_integer import lanes_type
from tilewise.emulator.host.lower.lanes.linear import as_scalar, common_width, of_width, propagate_linear
from tilewise.emulator.host.lower.values import NotInLockstep, Value
from tilewise.emulator.parse import types
from tilewise.emulator.parse.types import Scalar

MAX_OVERFLOWS = 10_000  # reports of a line; later overflows are not counted


def scalars(b: Builder, op: str, left: Value, right: Value, node: Any = None) -> Value:
    first, second = left.type, right.type
    if not isinstance(first, Scalar) or not isinstance(second, Scalar):
        raise b.refuse(f"{op} does not work on {first} and {second}", node)
    if op in ("<<", ">>"):
        return _shift(b, op, left, right, node)
    type_ = types.common(first, second)
    width, wide, (one, two) = common_width(b, as_scalar(b, left, type_), as_scalar(b, right, type_))
    if op in SIGNED_COMPARE:
        return of_width(types.BOOL, operated(b, op, type_, one, two, width), width)
    if op not in (FLOATING if type_.floating else INTEGER):
        raise b.refuse(f"{op} does not work on {type_}", node)
    if not type_.floating and not b.program.device:
        if op in ("/", "%"):
            _divisible(b, type_, one, two, width)
        elif type_.signed and op in "+-*" and not b.library:
            if b.no_overflow and width == 1:
                return b.value(type_, f"{INTEGER[op]} nsw {type_.llvm} {one}, {two}")
            return _overflowing(b, op, type_, one, two, width)
    result = of_width(type_, operated(b, op, type_, one, two, width), width)
    if width > 1 and not type_.floating and op in "+-*":
        propagate_linear(b, op, result, *wide)  # type: ignore[arg-type]
    return result


def _shift(b: Builder, op: str, left: Value, right: Value, node: Any) -> Value:
    first, second = left.type, right.type
    assert isinstance(first, Scalar)
    assert isinstance(second, Scalar)
    if first.floating or second.floating:
        raise b.refuse(f"{op} does not work on {first} and {second}", node)
    type_ = types.promote(first)
    count = as_scalar(b, right, types.LONG if type_.size == 8 else types.INT)
    width, _, (one, by) = common_width(b, as_scalar(b, left, type_), count)
    return of_width(type_, shifted(b, op, type_, one, by, width), width)


def _overflowing(b: Builder, op: str, type_: Scalar, one: str, two: str, width: int) -> Value:
    """Signed arithmetic that wraps, with overflows reported; in lanes they are collected in a mask."""
    result, over = with_overflow(b, op, type_, one, two, width)
    if width > 1:
        truth = lanes_type("i1", width)
        slot = b.lanes.overflow = b.lanes.overflow or b.alloca(truth)
        before = b.make(f"load {truth}, ptr {slot}")
        b.emit(f"store {truth} {b.make(f'or {truth} {before}, {over}')}, ptr {slot}")
        return of_width(type_, result, width)
    first, second = one, two
    bad, good = b.label(), b.label()
    b.branch(over, bad, good, likely=False)
    b.begin(bad)
    if type_.size < 8:
        first = b.make(f"sext {type_.llvm} {one} to i64")
        second = b.make(f"sext {type_.llvm} {two} to i64")
    b.program.external("rt_overflow")
    sign = {"+": 0, "-": 1, "*": 2}[op]
    _limit_reports(b, good)
    b.emit(f"call void @rt_overflow(i64 {first}, i64 {second}, i32 {sign}, i32 {type_.size}, i32 {b.line_text()}) cold")
    b.jump(good)
    b.begin(good)
    return Value(type_, result)


def with_overflow(b: Builder, op: str, type_: Scalar, one: str, two: str, width: int = 1) -> list[str]:
    """A signed sum, difference or product, and whether it overflowed."""
    kind, lanes = lanes_type(type_.llvm, width), f"v{width}" if width > 1 else ""
    intrinsic = {"+": "sadd", "-": "ssub", "*": "smul"}[op]
    name, pair = f"llvm.{intrinsic}.with.overflow.{lanes}{type_.llvm}", f"{{{kind}, {lanes_type('i1', width)}}}"
    b.program.external(name, f"declare {pair} @{name}({kind}, {kind})")
    both = b.make(f"call {pair} @{name}({kind} {one}, {kind} {two})")
    return [b.make(f"extractvalue {pair} {both}, {i}") for i in range(2)]


def _limit_reports(b: Builder, good: str) -> None:
    """Count the overflows of this line; after MAX_OVERFLOWS branch to `good` without a report."""
    cells = b.program.overflows
    if b.line not in cells:
        cells[b.line] = b.program.memory.static(8, "", False)
    cell, report = f"inttoptr (i64 {cells[b.line]} to ptr)", b.label()
    count = b.make(f"load i64, ptr {cell}")
    b.branch(b.make(f"icmp ult i64 {count}, {MAX_OVERFLOWS}"), report, good)
    b.begin(report)
    b.emit(f"store i64 {b.make(f'add i64 {count}, 1')}, ptr {cell}")


def _divisible(b: Builder, type_: Scalar, one: str, two: str, width: int) -> None:
    """x86-64 traps on x / 0 and INT_MIN / -1: report both."""
    if width > 1:
        raise NotInLockstep("a division on the host")
    zero = b.make(f"icmp eq {type_.llvm} {two}, 0")
    b.report_if(zero, "rt_divide", [("i32", "0"), ("i32", b.line_text())])
    if type_.signed:
        low = b.make(f"icmp eq {type_.llvm} {one}, {-(1 << (type_.size * 8 - 1))}")
        minus = b.make(f"icmp eq {type_.llvm} {two}, -1")
        b.report_if(b.make(f"and i1 {low}, {minus}"), "rt_divide", [("i32", "1"), ("i32", b.line_text())])
