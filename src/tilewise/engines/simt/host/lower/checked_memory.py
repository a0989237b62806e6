"""Loads and stores with their checks: inside an object, given a value. One shadow byte a byte of memory says so.

A shadow byte is 0 where nothing may be touched, 1 where there is memory without a value, 3 where there is a value."""

from __future__ import annotations

from tilewise.engines.simt.host.language.types import Array, Record, Reference, Scalar, Type, stored
from tilewise.engines.simt.host.lower.builder import Builder
from tilewise.engines.simt.host.lower.late import provide
from tilewise.engines.simt.host.lower.values import FULL, KNOWN, Place, Value


def load(b: Builder, place: Place) -> Value:
    """The value in a place; of a class or an array, its address."""
    type_ = place.type
    if isinstance(type_, (Record, Array)):
        return Value(type_, place.address)
    if place.register:
        if place.flag:
            has = b.make(f"load i1, ptr {place.flag}")
            lacks = b.make(f"xor i1 {has}, true")
            word = b.program.text(place.name)
            b.complain(lacks, "rt_unset", [("i32", b.line_text()), ("i32", str(word))])
    elif place.check != KNOWN:
        check_read(b, place.address, type_.size, place.check)
    text = b.make(f"load {stored(type_)}, ptr {place.address}, align 1")
    return Value(type_, b.from_memory(type_, text))


def store(b: Builder, place: Place, text: str) -> None:
    """Put a scalar into a place; from then on it has a value."""
    type_ = place.type
    if place.register:
        if place.flag:
            b.emit(f"store i1 true, ptr {place.flag}")
    elif place.check == FULL:
        check_write(b, place.address, type_.size)
    elif place.check != KNOWN:
        mark(b, place.address, type_.size)
    text = b.to_memory(type_, text)
    b.emit(f"store {stored(type_)} {text}, ptr {place.address}, align 1")


def _shadow(b: Builder, address: str) -> str:
    at = b.make(f"ptrtoint ptr {address} to i64")
    there = b.make(f"add i64 {at}, {b.program.memory.shift}")
    return b.make(f"inttoptr i64 {there} to ptr")


def mark(b: Builder, address: str, size: int) -> None:
    """These bytes have a value now."""
    shadow = _shadow(b, address)
    b.emit(f"store i{size * 8} {_repeat(3, size)}, ptr {shadow}, align 1")


def _repeat(byte: int, size: int) -> int:
    return int.from_bytes(bytes([byte]) * size, "little")


def _inside(b: Builder, address: str) -> tuple[str, str]:
    """Whether the address is in the memory at all, and the address as a number."""
    memory = b.program.memory
    at = b.make(f"ptrtoint ptr {address} to i64")
    off = b.make(f"sub i64 {at}, {memory.base}")
    return b.make(f"icmp ult i64 {off}, {memory.size - 64}"), at


def check_read(b: Builder, address: str, size: int, check: int) -> None:
    bits = size * 8
    good = b.label()
    bad = b.label()
    if check == FULL:
        inside, at = _inside(b, address)
        look = b.label()
        b.emit(f"br i1 {inside}, label %{look}, label %{bad}, !prof !1")
        b.open = False
        b.begin(look)
    else:
        at = b.make(f"ptrtoint ptr {address} to i64")
    there = b.make(f"add i64 {at}, {b.program.memory.shift}")
    pointer = b.make(f"inttoptr i64 {there} to ptr")
    state = b.make(f"load i{bits}, ptr {pointer}, align 1")
    fine = b.make(f"icmp eq i{bits} {state}, {_repeat(3, size)}")
    b.emit(f"br i1 {fine}, label %{good}, label %{bad}, !prof !1")
    b.open = False
    _complain(b, bad, good, "rt_bad_read", at, size)


def check_write(b: Builder, address: str, size: int) -> None:
    bits = size * 8
    good, bad, look = b.label(), b.label(), b.label()
    inside, at = _inside(b, address)
    b.emit(f"br i1 {inside}, label %{look}, label %{bad}, !prof !1")
    b.open = False
    b.begin(look)
    there = b.make(f"add i64 {at}, {b.program.memory.shift}")
    pointer = b.make(f"inttoptr i64 {there} to ptr")
    state = b.make(f"load i{bits}, ptr {pointer}, align 1")
    ones = _repeat(1, size)
    some = b.make(f"and i{bits} {state}, {ones}")
    fine = b.make(f"icmp eq i{bits} {some}, {ones}")
    mark_label = b.label()
    b.emit(f"br i1 {fine}, label %{mark_label}, label %{bad}, !prof !1")
    b.open = False
    b.begin(mark_label)
    b.emit(f"store i{bits} {_repeat(3, size)}, ptr {pointer}, align 1")
    b.jump(good)
    _complain(b, bad, good, "rt_bad_write", at, size)


def _complain(b: Builder, bad: str, good: str, callee: str, at: str, size: int) -> None:
    b.begin(bad)
    b.program.external(callee)
    b.emit(f"call void @{callee}(i64 {at}, i64 {size}, i32 {b.line_text()}) cold")
    b.jump(good)
    b.begin(good)


def check_range(b: Builder, address: str, size: int, write: bool) -> None:
    """A whole object behind a pointer: it must be there; whether it has a value goes with the copy."""
    b.program.external("rt_check_range")
    at = b.make(f"ptrtoint ptr {address} to i64")
    b.emit(f"call void @rt_check_range(i64 {at}, i64 {size}, i32 {int(write)}, i32 {b.line_text()})")


def copy_bytes(b: Builder, to: str, source: str, size: int) -> None:
    """An object's bytes and their states."""
    for first, second in ((to, source), (_shadow(b, to), _shadow(b, source))):
        b.emit(f"call void @llvm.memmove.p0.p0.i64(ptr {first}, ptr {second}, i64 {size}, i1 false)")


def clear(b: Builder, address: str, size: int | str) -> None:
    """Zero bytes, which is a value."""
    b.emit(f"call void @llvm.memset.p0.i64(ptr {address}, i8 0, i64 {size}, i1 false)")
    b.shade(address, str(size), 3)


def is_plain(type_: Type) -> bool:
    """A value that a register holds."""
    return isinstance(type_, Scalar) or (not isinstance(type_, (Record, Array, Reference)))


provide(check_read, copy_bytes, store)
