"""Loads and stores with checks that their bytes are addressable and initialised, by a shadow byte per byte of memory.

The shadow is 0 for unaddressable, 1 for uninitialised and 3 for initialised bytes; runtime/memory.py has the others."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.copied_states import copy_states
from tilewise.emulator.host.lower.float_to_integer import lanes_type, splat
from tilewise.emulator.host.lower.function_text import FunctionText
from tilewise.emulator.host.lower.marks import INSIDE, OK, SHADOW, SMALL
from tilewise.emulator.host.lower.races import record_access
from tilewise.emulator.host.lower.recording import SiteKind, record, record_unset, recorded_address
from tilewise.emulator.host.lower.values import FULL, PRECHECKED, SHARED, UNCHECKED, Place, Value
from tilewise.emulator.parse.types import Array, Record, Reference, Scalar, Type, stored

FLOATING, NAMED = 4, 8  # of the kind of a kernel's invalid access


def load(b: FunctionText, place: Place, checked: bool = True) -> Value:
    """The value in a place; for a class or an array, its address. `checked`: report an uninitialised variable."""
    type_ = place.type
    if isinstance(type_, (Record, Array)):
        return Value(type_, place.address)
    if place.register and place.flag and checked:
        has = b.make(f"load i1, ptr {place.flag}")
        lacks = b.make(f"xor i1 {has}, true")
        name_id = b.program.name_number(place.name)
        if b.program.recording is not None and b.program.device and not b.library:
            return record_unset(b, place, has)
        b.report_if(lacks, "rt_uninitialised_variable", [("i32", b.line_text()), ("i32", str(name_id))])
    address = place.address
    recorded = _recorded(b, place)
    if place.check == SHARED:
        address = recorded_address(b, address, type_.size) if recorded else address
    elif not place.register and place.check not in (UNCHECKED, PRECHECKED):
        address = check_access(b, address, type_.size, place.check, span=place.span, detail=access_detail(b, place))
        if place.check == FULL and b.program.instrumented and not b.library:
            record_access(b, address, type_)
    seen = OK if place.check in (FULL, PRECHECKED) else ""
    text = b.from_memory(type_, b.make(f"load {stored(type_)}, ptr {address}, align 1{seen}"))
    if recorded:
        record(b, SiteKind.READ, place, text)
    return Value(type_, text)


def access_detail(b: FunctionText, place: Place) -> str:
    """What the runtime is told of a kernel's invalid access, in the bits above its kind: whether the type is floating,
    and the number of the name."""
    if b.detail or not b.program.device or b.program.recording is not None:
        return b.detail
    floating = isinstance(place.type, Scalar) and place.type.floating
    return str(FLOATING * floating + NAMED * b.program.name_number(place.name))


def _recorded(b: FunctionText, place: Place) -> bool:
    """Whether accesses of this place are logged: of shared and global memory, by the program's own text."""
    return bool(b.program.recording and b.program.device and place.check in (SHARED, FULL) and not b.library)


def store(b: FunctionText, place: Place, text: str) -> None:
    """Store a scalar; its bytes become initialised."""
    type_ = place.type
    if place.register and place.flag:
        b.emit(f"store i1 true, ptr {place.flag}")
    address = place.address
    recorded = _recorded(b, place)
    if recorded:
        record(b, SiteKind.WRITE, place, text)
    if place.check == SHARED:
        address = recorded_address(b, address, type_.size, write=True) if recorded else address
    elif not place.register and place.check == FULL:
        address = check_access(b, address, type_.size, FULL, write=True, detail=access_detail(b, place))
    elif not place.register and place.check not in (UNCHECKED, PRECHECKED):
        mark_initialised(b, address, type_.size)
    text = b.to_memory(type_, text)
    if place.check == FULL and b.program.instrumented and not b.library:
        record_access(b, address, type_, text)
    if not place.register:
        b.note_store(address, type_.size)
    seen = OK if place.check in (FULL, PRECHECKED) else ""
    b.emit(f"store {stored(type_)} {text}, ptr {address}, align 1{seen}")


def _shadow(b: FunctionText, address: str) -> str:
    at = b.make(f"ptrtoint ptr {address} to i64")
    there = b.make(f"add i64 {at}, {b.program.memory.shift}{SHADOW}")
    return b.make(f"inttoptr i64 {there} to ptr")


def mark_initialised(b: FunctionText, address: str, size: int) -> None:
    """Set the state to initialised, for bytes that are known to belong to a variable."""
    shadow = _shadow(b, address)
    b.emit(f"store i{size * 8} {state_bytes(3, size)}, ptr {shadow}, align 1")


def require_initialised(b: FunctionText, at: str, size: int, subscripts: Any) -> str:
    """Add to the conditions of `subscripts` that these bytes are initialised; nothing is reported. The address `at`, or
    if it is outside of memory one that is safe to read."""
    inside = b.make(f"icmp ult i64 {b.make(f'sub i64 {at}, {b.program.memory.base}')}, {b.program.memory.size - 64}")
    safe = b.make(f"select i1 {inside}, i64 {at}, i64 {b.program.memory.base}")
    _, state = _load_states(b, safe, states_type(size), seen=OK)
    subscripts.require(b.make(f"and i1 {inside}, {_is_initialised(b, state, size)}"))
    return safe


def states_type(size: int, width: int = 1) -> str:
    """LLVM type of the states of an element's bytes, or of a vector of them."""
    return lanes_type(f"i{size * 8}", width)


def state_bytes(byte: int, size: int, width: int = 1) -> str:
    """A constant with this state in every byte."""
    return splat(f"i{size * 8}", int.from_bytes(bytes([byte]) * size, "little"), width)


def _in_memory(b: FunctionText, address: str) -> tuple[str, str]:
    """Whether the address is in the program's memory, and the address as a number."""
    memory = b.program.memory
    at = b.make(f"ptrtoint ptr {address} to i64")
    off = b.make(f"sub i64 {at}, {memory.base}")
    return b.make(f"icmp ult i64 {off}, {memory.size - 64}"), at


def _load_states(b: FunctionText, at: str, kind: str, offset: int = 0, seen: str = "") -> tuple[str, str]:
    """The address of the states of these bytes, and the states; `seen` is OK if the address was checked."""
    there = b.make(f"add i64 {at}, {b.program.memory.shift + offset}{SHADOW}")
    pointer = b.make(f"inttoptr i64 {there} to ptr")
    return pointer, b.make(f"load {kind}, ptr {pointer}, align 1{seen}")


def _all_bytes_have(b: FunctionText, state: str, byte: int, size: int, width: int) -> str:
    """Whether these bits are set in every byte, of all lanes."""
    kind, bits = states_type(size, width), state_bytes(byte, size, width)
    same = b.make(f"icmp eq {kind} {b.make(f'and {kind} {state}, {bits}')}, {bits}")
    return (
        same if width == 1 else b.make(f"icmp eq i{width} {b.make(f'bitcast <{width} x i1> {same} to i{width}')}, -1")
    )


def _is_initialised(b: FunctionText, state: str, size: int, width: int = 1) -> str:
    """On the host exactly 3; a kernel may also read the card's memory (6) and managed memory that is in use."""
    if not b.program.device:
        return b.make(f"icmp eq {states_type(size)} {state}, {state_bytes(3, size)}")
    return _all_bytes_have(b, state, 2, size, width)


def _is_addressable(b: FunctionText, state: str, size: int, width: int = 1) -> str:
    """Bit 1, and in kernels also bit 4."""
    if b.program.device:
        kind, two = states_type(size, width), splat(f"i{size * 8}", 2, width)
        state = b.make(f"or {kind} {state}, {b.make(f'lshr {kind} {state}, {two}')}")
    return _all_bytes_have(b, state, 1, size, width)


def check_states(
    b: FunctionText, at: str, size: int, write: bool, good: str, bad: str, width: int = 1, seen: str = OK
) -> list[str]:
    """Branch to `good` if the states of these bytes allow the access, else to `bad`; the predecessors of `good`.
    A store makes its bytes initialised, and writes their states only if they change: shared pages stay shared."""
    here, kind = b.label(), states_type(size, width)
    b.begin(here)
    pointer, state = _load_states(b, at, kind, seen=seen)
    has = _is_initialised(b, state, size, width)
    if not write:
        b.branch(has, good, bad, likely=True)
        return [here]
    first, writable = b.label(), b.label()
    b.branch(has, good, first)
    b.begin(first)
    b.branch(_is_addressable(b, state, size, width), writable, bad, likely=True)
    b.begin(writable)
    marked = state_bytes(3, size)
    if b.program.device:
        marked = b.make(f"or {kind} {state}, {state_bytes(2, size, width)}")
    b.emit(f"store {kind} {marked}, ptr {pointer}, align 1{OK}")
    b.jump(good)
    return [here, writable]


def check_access(
    b: FunctionText, address: str, size: int, check: int, write: bool = False, span: tuple[str, str] | None = None,
    detail: str = "",
) -> str:  # fmt: skip
    """Check an access; the address to use: in kernels, scratch memory after an invalid access."""
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
        inside, at = _in_memory(b, address)
        near = b.label()
        b.branch(inside, near, bad, likely=True)
        b.begin(near)
    else:
        at = b.make(f"ptrtoint ptr {address} to i64")
    reached += check_states(b, at, size, write, good, bad, seen=OK if check == FULL else "")
    return _invalid_access(b, bad, good, "rt_bad_write" if write else "rt_bad_read", address, at, size, reached, detail)


def in_span(b: FunctionText, at: str, size: int, span: tuple[str, str]) -> str:
    """Whether `size` bytes lie in a span; computed so that the address plus the size cannot wrap."""
    length = b.make(f"sub i64 {span[1]}, {span[0]}")
    wide = b.make(f"icmp uge i64 {length}, {size}")
    within = b.make(f"icmp ule i64 {b.make(f'sub i64 {at}, {span[0]}')}, {b.make(f'sub i64 {length}, {size}')}")
    return b.make(f"and i1 {wide}, {within}")


def _invalid_access(
    b: FunctionText, bad: str, good: str, callee: str, address: str, at: str, size: int, reached: list[str],
    detail: str = "",
) -> str:  # fmt: skip
    """Report it. The runtime may end a host program; a thread continues with the address that the runtime returns."""
    b.begin(bad)
    if not b.program.device:
        b.program.external(callee)
        b.emit(f"call void @{callee}(i64 {at}, i64 {size}, i32 {b.line_text()}) cold")
        b.jump(good)
        b.begin(good)
        b.lines.append(f"{INSIDE}{address}")
        return address
    b.program.external("rt_invalid_access")
    b.before_report()
    kind = ("rt_bad_read", "rt_bad_write", "range read", "range write").index(callee)
    given = b.make(f"add i32 {detail}, {kind}") if detail else kind
    redirected = b.make(f"call ptr @rt_invalid_access(i64 {at}, i64 {size}, i32 {given}, i32 {b.line_text()}) cold")
    b.jump(good)
    b.begin(good)
    valid = "".join(f"[ {address}, %{label} ], " for label in reached)
    return b.make(f"phi ptr {valid}[ {redirected}, %{bad} ]")


MAX_INLINE_WORDS = 16  # of states that are checked inline: those of 128 bytes


def check_object(b: FunctionText, address: str, size: int) -> str:
    """Check the first and last byte of an object whose method is called through a pointer; the method relies on it.
    Checking all bytes would make each call as expensive as a copy."""
    return check_range(b, address, size, False, words=0)


def check_range(b: FunctionText, address: str, size: int, write: bool, words: int = MAX_INLINE_WORDS) -> str:
    """Check that a whole object is addressable. Copies may read uninitialised bytes: they copy their states."""
    if b.program.recording is not None and not b.library:
        raise b.refuse("a kernel that copies whole objects to or from memory cannot be recorded")
    good, bad, near = b.label(), b.label(), b.label()
    if size > SMALL:
        b.emit(f"call void @contain(ptr {address}, i64 {size})")
    inside, at = _in_memory(b, address)
    b.branch(inside, near, bad, likely=True)
    b.begin(near)
    fine = "true"
    done = 0
    for word in (8, 4, 2, 1):
        while size - done >= word and done < max(1, 8 * words):
            _, state = _load_states(b, at, states_type(word), done, OK)
            fine = b.make(f"and i1 {fine}, {_is_addressable(b, state, word)}")
            done += word
    if done < size:  # the last byte stands for the rest
        _, state = _load_states(b, at, states_type(1), size - 1, OK)
        fine = b.make(f"and i1 {fine}, {_is_addressable(b, state, 1)}")
    b.branch(fine, good, bad, likely=True)
    if b.program.device:
        return _invalid_access(b, bad, good, "range write" if write else "range read", address, at, size, [near])
    b.begin(bad)
    b.program.external("rt_check_range")
    b.emit(f"call void @rt_check_range(i64 {at}, i64 {size}, i32 {int(write)}, i32 {b.line_text()})")
    b.jump(good)
    b.begin(good)
    b.lines.append(f"{INSIDE}{address}")
    return address


def copy_bytes(b: FunctionText, to: str, source: str, size: int) -> None:
    """Copy an object's bytes and whether they are initialised."""
    b.note_store(to, 0)
    b.emit(f"call void @llvm.memmove.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")
    first, second = _shadow(b, to), _shadow(b, source)
    copy_states(b, first, second, size)


def zero_fill(b: FunctionText, address: str, size: int | str) -> None:
    b.emit(f"call void @llvm.memset.p0.i64(ptr {address}, i8 0, i64 {size}, i1 false)")
    b.set_state(address, str(size), 3)


def is_plain(type_: Type) -> bool:
    """A type whose values fit a register."""
    return isinstance(type_, Scalar) or (not isinstance(type_, (Record, Array, Reference)))
