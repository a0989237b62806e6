"""Loads and stores with their checks: inside an object, given a value. One shadow byte a byte of memory says so.

A shadow byte is 0 where nothing may be touched, 1 where there is memory without a value, 3 where there is a value."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.float_to_integer import number, of
from tilewise.emulator.host.lower.lost_values import copy_states
from tilewise.emulator.host.lower.marks import INSIDE, OK, SHADOW, SMALL
from tilewise.emulator.host.lower.races import note_touch
from tilewise.emulator.host.lower.values import FULL, KNOWN, SHARED, TRUSTED, Place, Value
from tilewise.emulator.parse.late import provide
from tilewise.emulator.parse.types import Array, Record, Reference, Scalar, Type, stored


def load(b: Builder, place: Place, checked: bool = True) -> Value:
    """The value in a place; of a class or an array, its address. A variable without one is reported if `checked`."""
    type_ = place.type
    if isinstance(type_, (Record, Array)):
        return Value(type_, place.address)
    if place.register and place.flag and checked:
        has = b.make(f"load i1, ptr {place.flag}")
        lacks = b.make(f"xor i1 {has}, true")
        word = b.program.text(place.name)
        b.complain(lacks, "rt_unset", [("i32", b.line_text()), ("i32", str(word))])
    address = place.address
    if place.check == SHARED:
        note_touch(b, address, type_)
    elif not place.register and place.check not in (KNOWN, TRUSTED):
        address = check_access(b, address, type_.size, place.check, span=place.span)
        if place.check == FULL and b.program.watched and not b.library:
            note_touch(b, address, type_)
    seen = OK if place.check in (FULL, TRUSTED) else ""
    text = b.make(f"load {stored(type_)}, ptr {address}, align 1{seen}")
    return Value(type_, b.from_memory(type_, text))


def store(b: Builder, place: Place, text: str) -> None:
    """Put a scalar into a place; from then on it has a value."""
    type_ = place.type
    if place.register and place.flag:
        b.emit(f"store i1 true, ptr {place.flag}")
    address = place.address
    if not place.register and place.check == FULL:
        address = check_access(b, address, type_.size, FULL, write=True)
    elif not place.register and place.check not in (KNOWN, SHARED, TRUSTED):
        mark(b, address, type_.size)
    text = b.to_memory(type_, text)
    if place.check == SHARED or (place.check == FULL and b.program.watched and not b.library):
        note_touch(b, address, type_, text)
    if b.nest is not None and not place.register:
        b.nest.note_store(b, address, type_.size)
    seen = OK if place.check in (FULL, TRUSTED) else ""
    b.emit(f"store {stored(type_)} {text}, ptr {address}, align 1{seen}")


def _shadow(b: Builder, address: str) -> str:
    at = b.make(f"ptrtoint ptr {address} to i64")
    there = b.make(f"add i64 {at}, {b.program.memory.shift}{SHADOW}")
    return b.make(f"inttoptr i64 {there} to ptr")


def mark(b: Builder, address: str, size: int) -> None:
    """These bytes have a value now. They are known to be a variable's, of the host or of one thread or block."""
    shadow = _shadow(b, address)
    b.emit(f"store i{size * 8} {each(3, size)}, ptr {shadow}, align 1")


def holds_value(b: Builder, at: str, size: int, asked: Any) -> str:
    """Require of `asked` that an address (as i64) is a program's own and has a value: looked at, never told. The
    address, or one that may be read instead."""
    inside = b.make(f"icmp ult i64 {b.make(f'sub i64 {at}, {b.program.memory.base}')}, {b.program.memory.size - 64}")
    safe = b.make(f"select i1 {inside}, i64 {at}, i64 {b.program.memory.base}")
    _, state = _state(b, safe, kind_of(size), seen=OK)
    asked.require(b.make(f"and i1 {inside}, {_has_value(b, state, size)}"))
    return safe


def kind_of(size: int, width: int = 1) -> str:
    """LLVM's type of the states of an element, or of those of all lanes."""
    return of(f"i{size * 8}", width)


def each(byte: int, size: int, width: int = 1) -> str:
    """This state in every byte."""
    return number(f"i{size * 8}", int.from_bytes(bytes([byte]) * size, "little"), width)


def _inside(b: Builder, address: str) -> tuple[str, str]:
    """Whether the address is in the memory at all, and the address as a number."""
    memory = b.program.memory
    at = b.make(f"ptrtoint ptr {address} to i64")
    off = b.make(f"sub i64 {at}, {memory.base}")
    return b.make(f"icmp ult i64 {off}, {memory.size - 64}"), at


def _state(b: Builder, at: str, kind: str, offset: int = 0, seen: str = "") -> tuple[str, str]:
    """Where the states of these bytes stand, and the states; `seen` is OK where the address is known to be inside."""
    there = b.make(f"add i64 {at}, {b.program.memory.shift + offset}{SHADOW}")
    pointer = b.make(f"inttoptr i64 {there} to ptr")
    return pointer, b.make(f"load {kind}, ptr {pointer}, align 1{seen}")


def _in_every_byte(b: Builder, state: str, byte: int, size: int, width: int) -> str:
    """Whether these bits are set in every byte of all lanes."""
    kind, bits = kind_of(size, width), each(byte, size, width)
    same = b.make(f"icmp eq {kind} {b.make(f'and {kind} {state}, {bits}')}, {bits}")
    return (
        same if width == 1 else b.make(f"icmp eq i{width} {b.make(f'bitcast <{width} x i1> {same} to i{width}')}, -1")
    )


def _has_value(b: Builder, state: str, size: int, width: int = 1) -> str:
    """On the host exactly 3; a thread may also read the card's memory (6), and managed memory that is in use."""
    if not b.program.device:
        return b.make(f"icmp eq {kind_of(size)} {state}, {each(3, size)}")
    return _in_every_byte(b, state, 2, size, width)


def _may_write(b: Builder, state: str, size: int, width: int = 1) -> str:
    """Somebody's memory: bit 1, and for a thread bit 4 too."""
    if b.program.device:
        kind, two = kind_of(size, width), number(f"i{size * 8}", 2, width)
        state = b.make(f"or {kind} {state}, {b.make(f'lshr {kind} {state}, {two}')}")
    return _in_every_byte(b, state, 1, size, width)


def look(b: Builder, at: str, size: int, write: bool, good: str, bad: str, width: int = 1, seen: str = OK) -> list[str]:
    """On at `good` where the states of these bytes allow the access, else at `bad`; the labels `good` is reached from.
    What is written has a value from then on; only a first store changes the state: pages that say so stay shared."""
    here, kind = b.label(), kind_of(size, width)
    b.begin(here)
    pointer, state = _state(b, at, kind, seen=seen)
    has = _has_value(b, state, size, width)
    if not write:
        b.branch(has, good, bad, likely=True)
        return [here]
    first, mine = b.label(), b.label()
    b.branch(has, good, first)
    b.begin(first)
    b.branch(_may_write(b, state, size, width), mine, bad, likely=True)
    b.begin(mine)
    marked = each(3, size)
    if b.program.device:
        marked = b.make(f"or {kind} {state}, {each(2, size, width)}")
    b.emit(f"store {kind} {marked}, ptr {pointer}, align 1{OK}")
    b.jump(good)
    return [here, mine]


def check_access(
    b: Builder, address: str, size: int, check: int, write: bool = False, span: tuple[str, str] | None = None
) -> str:
    """The address to read from or write to: this one, or where a thread of a kernel is led that went astray."""
    good, bad = b.label(), b.label()
    reached: list[str] = []
    if span is not None:
        direct, careful = b.label(), b.label()
        start = b.make(f"ptrtoint ptr {address} to i64")
        b.branch(in_span(b, start, size, span), direct, careful)
        b.begin(direct)
        b.jump(good)
        b.begin(careful)
        reached.append(direct)
    if check == FULL:
        inside, at = _inside(b, address)
        near = b.label()
        b.branch(inside, near, bad, likely=True)
        b.begin(near)
    else:
        at = b.make(f"ptrtoint ptr {address} to i64")
    reached += look(b, at, size, write, good, bad, seen=OK if check == FULL else "")
    return _complain(b, bad, good, "rt_bad_write" if write else "rt_bad_read", address, at, size, reached)


def in_span(b: Builder, at: str, size: int, span: tuple[str, str]) -> str:
    """Whether so many bytes lie in a span, also where the address plus its size is past the last address."""
    length = b.make(f"sub i64 {span[1]}, {span[0]}")
    wide = b.make(f"icmp uge i64 {length}, {size}")
    within = b.make(f"icmp ule i64 {b.make(f'sub i64 {at}, {span[0]}')}, {b.make(f'sub i64 {length}, {size}')}")
    return b.make(f"and i1 {wide}, {within}")


def _complain(
    b: Builder, bad: str, good: str, callee: str, address: str, at: str, size: int, reached: list[str]
) -> str:
    """Tell the runtime. A host program goes on or is ended there; a thread goes on at the address it is given."""
    b.begin(bad)
    if not b.program.device:
        b.program.external(callee)
        b.emit(f"call void @{callee}(i64 {at}, i64 {size}, i32 {b.line_text()}) cold")
        b.jump(good)
        b.begin(good)
        b.lines.append(f"{INSIDE}{address}")
        return address
    b.program.external("rt_astray")
    if b.lanes is not None:
        b.lanes.who(b)
    kind = ("rt_bad_read", "rt_bad_write", "range read", "range write").index(callee)
    led = b.make(f"call ptr @rt_astray(i64 {at}, i64 {size}, i32 {kind}, i32 {b.line_text()}) cold")
    b.jump(good)
    b.begin(good)
    as_it_is = "".join(f"[ {address}, %{label} ], " for label in reached)
    return b.make(f"phi ptr {as_it_is}[ {led}, %{bad} ]")


WORDS_INLINE = 16  # objects up to 128 bytes are looked at in place


def check_object(b: Builder, address: str, size: int) -> str:
    """An object whose method is called through a pointer: inside, its members count as being there. Its ends are looked
    at, since a call must not cost as much as a copy."""
    return check_range(b, address, size, False, words=0)


def check_range(b: Builder, address: str, size: int, write: bool, words: int = WORDS_INLINE) -> str:
    """A whole object behind a pointer: it must be there; whether it has a value goes with the copy."""
    good, bad, near = b.label(), b.label(), b.label()
    if size > SMALL:
        b.emit(f"call void @contain(ptr {address}, i64 {size})")
    inside, at = _inside(b, address)
    b.branch(inside, near, bad, likely=True)
    b.begin(near)
    fine = "true"
    done = 0
    for word in (8, 4, 2, 1):
        while size - done >= word and done < max(1, 8 * words):
            _, state = _state(b, at, kind_of(word), done, OK)
            fine = b.make(f"and i1 {fine}, {_may_write(b, state, word)}")
            done += word
    if done < size:  # its end tells for the rest
        _, state = _state(b, at, kind_of(1), size - 1, OK)
        fine = b.make(f"and i1 {fine}, {_may_write(b, state, 1)}")
    b.branch(fine, good, bad, likely=True)
    if b.program.device:
        return _complain(b, bad, good, "range write" if write else "range read", address, at, size, [near])
    b.begin(bad)
    b.program.external("rt_check_range")
    b.emit(f"call void @rt_check_range(i64 {at}, i64 {size}, i32 {int(write)}, i32 {b.line_text()})")
    b.jump(good)
    b.begin(good)
    b.lines.append(f"{INSIDE}{address}")
    return address


def copy_bytes(b: Builder, to: str, source: str, size: int) -> None:
    """An object's bytes and their states; whose memory it is stays as it is."""
    if b.nest is not None:
        b.nest.forget(b)
    b.emit(f"call void @llvm.memmove.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")
    first, second = _shadow(b, to), _shadow(b, source)
    copy_states(b, first, second, size)


def clear(b: Builder, address: str, size: int | str) -> None:
    """Zero bytes, which is a value."""
    b.emit(f"call void @llvm.memset.p0.i64(ptr {address}, i8 0, i64 {size}, i1 false)")
    b.shade(address, str(size), 3)


def is_plain(type_: Type) -> bool:
    """A value that a register holds."""
    return isinstance(type_, Scalar) or (not isinstance(type_, (Record, Array, Reference)))


provide(check_access, copy_bytes, store)
