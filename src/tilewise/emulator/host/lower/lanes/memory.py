"""Loads and stores of all lanes: as one where they stand side by side and nothing is wrong, else lane by lane.

Every lane is checked as one thread is: where the check of all lanes at once fails, each lane's bytes are looked at,
with its threadIdx."""

from __future__ import annotations

from math import prod
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import each, in_span, kind_of, look
from tilewise.emulator.host.lower.checked_memory import load as load_one
from tilewise.emulator.host.lower.checked_memory import store as store_one
from tilewise.emulator.host.lower.lanes.lane_loop import lane_loop
from tilewise.emulator.host.lower.lanes.linear import as_scalar, both, from_linear, widen
from tilewise.emulator.host.lower.lanes.mask import lanes_of, register
from tilewise.emulator.host.lower.lanes.scattered import all_inside, put_apart, take
from tilewise.emulator.host.lower.marks import OK
from tilewise.emulator.host.lower.scalars import scalars
from tilewise.emulator.host.lower.values import (
    FULL,
    INIT,
    KNOWN,
    NotInLockstep,
    OwnPlace,
    Place,
    Value,
    Wide,
    WidePlace,
)  # fmt: skip
from tilewise.emulator.parse import types
from tilewise.emulator.parse.types import Array, Pointer, Scalar, Type, dimensions

ITERATIONS_AHEAD = 8  # that a load is prefetched
CACHE_LINE = 64


class OneLane(Builder):
    """A lane of a function that goes through them: what is wrong is reported of that lane, on the line of the call."""

    def line_text(self) -> str:
        return "%line"

    def who(self, b: Builder) -> None:
        b.emit("call void @set_lane(i64 %l)")


def _function(b: Builder, type_: Scalar, check: int, write: bool) -> str:
    """The name of the function that touches lane by lane, each as a thread alone would."""
    lanes, llvm = lanes_of(b), type_.llvm
    name = f"{'scatter' if write else 'gather'}.{llvm}.{check}"
    if name in lanes.functions:
        return name
    kind, addresses = lanes.vector(llvm), lanes.vector("i64")
    one = OneLane(b.program, b.env, False)
    one.lanes = one
    at = one.make(f"load i64, ptr {one.make('getelementptr i64, ptr %as, i64 %l')}")
    place = Place(type_, one.make(f"inttoptr i64 {at} to ptr"), check)
    cell = one.make(f"getelementptr {llvm}, ptr %vs, i64 %l")
    if write:
        store_one(one, place, one.make(f"load {llvm}, ptr {cell}"))
        head, after = f"void @{name}({addresses} %a, {lanes.bits} %mask, {kind} %v, i32 %line)", "  ret void"
    else:
        one.emit(f"store {llvm} {load_one(one, place).text}, ptr {cell}")
        head = f"{kind} @{name}({addresses} %a, {lanes.bits} %mask, i32 %line)"
        after = f"  %given = load {kind}, ptr %vs\n  ret {kind} %given"
    one.jump("next")
    before = f"  %as = alloca {addresses}\n  store {addresses} %a, ptr %as\n  %vs = alloca {kind}"
    before += f"\n  store {kind} {'%v' if write else 'zeroinitializer'}, ptr %vs"
    lanes.functions[name] = lane_loop(f"{head} noinline", "\n".join(one.lines), lanes.bits, lanes.width, before, after)
    return name


def in_memory(type_: Type) -> Scalar:
    """As what it is loaded and stored: a bool is a byte, a pointer its address."""
    register(type_)  # or it cannot be in a vector
    if isinstance(type_, Pointer):
        return types.LONG
    assert isinstance(type_, Scalar)
    return types.UCHAR if type_ is types.BOOL else type_


def _fast(b: Builder, place: WidePlace, size: int, write: bool, slow: str, quick: str) -> str:
    """Go to `quick` where the lanes' bytes lie side by side and each may be touched, else to `slow`; the address."""
    lanes, memory, at = lanes_of(b), b.program.memory, place.at
    whole = lanes.width * size
    fine = both(b, at.valid, lanes.all(b))
    if place.span is not None:
        other = b.label()
        b.branch(both(b, fine, in_span(b, at.base, whole, place.span)), quick, other)
        b.begin(other)
    if place.check == FULL:
        off = b.make(f"sub i64 {at.base}, {memory.base}")
        fine = both(b, fine, b.make(f"icmp ult i64 {off}, {memory.size - 64 - whole}"))
    if place.check == KNOWN:
        b.branch(fine, quick, slow)
        b.begin(quick)
        return b.make(f"inttoptr i64 {at.base} to ptr")
    near = b.label()
    b.branch(fine, near, slow, likely=True)
    b.begin(near)
    if not write or place.check == FULL:
        look(b, at.base, size, write, quick, slow, lanes.width)
    b.begin(quick)
    if write and place.check != FULL:
        shadow = b.make(f"inttoptr i64 {b.make(f'add i64 {at.base}, {memory.shift}')} to ptr")
        b.emit(f"store {kind_of(size, lanes.width)} {each(3, size, lanes.width)}, ptr {shadow}, align 1{OK}")
    return b.make(f"inttoptr i64 {at.base} to ptr")


def _prefetch(b: Builder, place: WidePlace) -> None:
    """Rows of a matrix lie so far apart that no processor guesses the next, and each load would wait for the memory. In
    a loop: what it will load a few iterations on, by how far it went since the last one; elsewhere: what lies behind,
    which the next group loads, or the next block."""
    if place.check != FULL:
        return
    b.program.external("llvm.prefetch.p0", "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    at, whole = place.at.base, lanes_of(b).width * place.type.size
    there = b.make(f"add i64 {at}, {whole}")
    if b.targets:
        slot = b.alloca("i64")
        before = b.make(f"load i64, ptr {slot}")
        b.emit(f"store i64 {at}, ptr {slot}")
        ahead = b.make(f"mul i64 {b.make(f'sub i64 {at}, {before}')}, {ITERATIONS_AHEAD}")
        there = b.make(f"add i64 {at}, {ahead}")
    for line in range(0, whole, CACHE_LINE):
        pointer = b.make(f"inttoptr i64 {b.make(f'add i64 {there}, {line}')} to ptr")
        b.emit(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 3, i32 1)")


def to_memory(b: Builder, value: Wide) -> tuple[str, str]:
    """A vector as it is stored, and LLVM's type of that."""
    lanes = lanes_of(b)
    kind = lanes.vector(in_memory(value.type).llvm)
    if value.type is types.BOOL:
        return kind, b.make(f"zext {lanes.vector('i1')} {value.vector} to {kind}")
    return kind, value.vector


def from_memory(b: Builder, type_: Type, text: str) -> Wide:
    if type_ is types.BOOL:
        lanes = lanes_of(b)
        text = b.make(f"trunc {lanes.vector('i8')} {text} to {lanes.vector('i1')}")
    return Wide(type_, text)


def load(b: Builder, place: WidePlace) -> Wide:
    if isinstance(place.type, Array):
        return place.at.as_type(Pointer(place.type.of))
    return from_memory(b, place.type, _touch(b, place))


def store(b: Builder, place: WidePlace, value: Wide) -> None:
    _, text = to_memory(b, value)
    _touch(b, place, text)


def _touch(b: Builder, place: WidePlace, given: str = "") -> str:
    """What all lanes load, or the store of what is given: as one, or lane by lane."""
    lanes, stored, size = lanes_of(b), in_memory(place.type), place.type.size
    kind, name = lanes.vector(stored.llvm), _function(b, stored, place.check, bool(given))

    def one_by_one() -> str:
        value, line = f", {kind} {given}" if given else "", b.line_text()
        arguments = f"{lanes.vector('i64')} {place.at.vector}, {lanes.bits} {lanes.mask_bits(b)}{value}, i32 {line}"
        if not given:
            return b.make(f"call {kind} @{name}({arguments})")
        b.emit(f"call void @{name}({arguments})")
        return ""

    apart = not place.at.base or place.at.stride != size
    if apart and place.span is None:
        return one_by_one()
    slow, quick, done = b.label(), b.label(), b.label()
    one = ""
    if apart:
        assert place.span is not None
        b.branch(all_inside(b, place.at, place.span, size), quick, slow)
        b.begin(quick)
        if given:
            put_apart(b, stored.llvm, place.at, given)
        else:
            one = take(b, stored.llvm, place.at)
    elif given:
        pointer = _fast(b, place, size, True, slow, quick)
        b.emit(f"store {kind} {given}, ptr {pointer}, align 1{OK}")
    else:
        _prefetch(b, place)
        pointer = _fast(b, place, size, False, slow, quick)
        one = b.make(f"load {kind}, ptr {pointer}, align 1{OK}")
    b.jump(done)
    b.begin(slow)
    two = one_by_one()
    b.jump(done)
    b.begin(done)
    return "" if given else b.make(f"phi {kind} [ {one}, %{quick} ], [ {two}, %{slow} ]")


def moved(b: Builder, pointer: Value, index: Value, size: int) -> Wide:
    """An address that many elements of `size` bytes on."""
    far = scalars(b, "*", as_scalar(b, index, types.LONG), Value(types.LONG, str(size)))
    there: Any = scalars(b, "+", widen(b, pointer).as_type(types.LONG), far)
    return widen(b, there)


BAD_INDEX = """
  %pa = getelementptr i64, ptr %as, i64 %l
  %at = load i64, ptr %pa
  call void @set_lane(i64 %l)
  call void @rt_bad_index(i64 %at, i64 %length, i32 %line)
  br label %next"""


def held(b: Builder, index: Value, length: int) -> Wide:
    """A subscript against the length of its array: a lane beyond it is reported and goes on at 0."""
    wide, lanes = widen(b, as_scalar(b, index, types.LONG)), lanes_of(b)
    kind, truths = lanes.vector("i64"), lanes.vector("i1")
    b.program.external("rt_bad_index")
    head = f"void @bad_index({kind} %a, {lanes.bits} %mask, i64 %length, i32 %line) noinline cold"
    before = f"  %as = alloca {kind}\n  store {kind} %a, ptr %as"
    lanes.functions["bad_index"] = lane_loop(head, BAD_INDEX, lanes.bits, lanes.width, before)
    bad = b.make(f"icmp uge {kind} {wide.vector}, splat (i64 {length})")
    wrong, good = b.label(), b.label()
    b.branch(lanes.any(b, bad), wrong, good, likely=False)
    b.begin(wrong)
    beyond = b.make(f"and {truths} {bad}, {lanes.mask(b)}")
    mask = lanes.mask_bits(b, beyond)
    b.emit(f"call void @bad_index({kind} {wide.vector}, {lanes.bits} {mask}, i64 {length}, i32 {b.line_text()})")
    b.jump(good)
    b.begin(good)
    text = b.make(f"select {truths} {bad}, {kind} zeroinitializer, {kind} {wide.vector}")
    if not wide.base:
        return Wide(types.LONG, text)
    valid = both(b, wide.valid, b.make(f"xor i1 {lanes.any(b, bad)}, true"))
    return Wide(types.LONG, text, wide.base, wide.stride, valid)


def own_element(b: Builder, base: OwnPlace, index: Value) -> OwnPlace:
    """Of a thread's own array."""
    array = base.type
    assert isinstance(array, Array)
    within = held(b, index, array.length)
    step = scalars(b, "*", within, Value(types.LONG, str(prod(dimensions(array.of)))))
    return OwnPlace(array.of, base.start, scalars(b, "+", widen(b, base.element), step))


def own_address(b: Builder, place: OwnPlace) -> WidePlace:
    """A scalar of a thread's own array, in memory."""
    type_ = place.type
    if not isinstance(type_, (Scalar, Pointer)):
        raise NotInLockstep(f"a thread's own {type_} as a whole")
    width, size = lanes_of(b).width, type_.size
    start = from_linear(b, types.LONG, place.start, size)
    return WidePlace(type_, moved(b, start, place.element, size * width), INIT)
