"""Loads and stores of lanes: one vector access where addresses are contiguous and pass one check, else lane by lane.

Every lane is checked as a thread is: if the check of all lanes at once fails, each lane's bytes are checked, and faults
are reported with its threadIdx."""

from __future__ import annotations

from math import prod
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import access_detail, check_states, in_span, state_bytes, states_type
from tilewise.emulator.host.lower.checked_memory import load as load_one
from tilewise.emulator.host.lower.checked_memory import store as store_one
from tilewise.emulator.host.lower.function_text import FunctionText
from tilewise.emulator.host.lower.lanes.lane_loop import lane_loop
from tilewise.emulator.host.lower.lanes.linear import and_i1, as_scalar, from_linear, widen
from tilewise.emulator.host.lower.lanes.mask import lanes_of, register
from tilewise.emulator.host.lower.lanes.scattered import all_inside, gather, scatter
from tilewise.emulator.host.lower.marks import OK
from tilewise.emulator.host.lower.scalars import scalars
from tilewise.emulator.host.lower.values import (
    FULL,
    INIT,
    UNCHECKED,
    InterleavedPlace,
    NotInLockstep,
    Place,
    Value,
    Wide,
    WidePlace,
)  # fmt: skip
from tilewise.emulator.parse import types
from tilewise.emulator.parse.types import Array, Pointer, Scalar, Type, dimensions

ITERATIONS_AHEAD = 8  # how far loads are prefetched
CACHE_LINE = 64


class OneLane(FunctionText):
    """The body of a loop over lanes: faults are reported for the lane %l, on the line that the caller passes."""

    detail = "%detail"

    def line_text(self) -> str:
        return "%line"

    def before_report(self) -> None:
        self.emit("call void @set_lane(i64 %l)")


def _function(b: Builder, type_: Scalar, check: int, write: bool) -> str:
    """The name of the gather or scatter function that checks and accesses one lane after another."""
    lanes, llvm = lanes_of(b), type_.llvm
    name = f"{'scatter' if write else 'gather'}.{llvm}.{check}"
    if name in lanes.functions:
        return name
    kind, addresses = lanes.vector(llvm), lanes.vector("i64")
    one = OneLane(b.program, False)
    at = one.make(f"load i64, ptr {one.make('getelementptr i64, ptr %as, i64 %l')}")
    place = Place(type_, one.make(f"inttoptr i64 {at} to ptr"), check)
    cell = one.make(f"getelementptr {llvm}, ptr %vs, i64 %l")
    if write:
        store_one(one, place, one.make(f"load {llvm}, ptr {cell}"))
        head = f"void @{name}({addresses} %a, {lanes.bits} %mask, {kind} %v, i32 %line, i32 %detail)"
        after = "  ret void"
    else:
        one.emit(f"store {llvm} {load_one(one, place).text}, ptr {cell}")
        head = f"{kind} @{name}({addresses} %a, {lanes.bits} %mask, i32 %line, i32 %detail)"
        after = f"  %given = load {kind}, ptr %vs\n  ret {kind} %given"
    one.jump("next")
    before = f"  %as = alloca {addresses}\n  store {addresses} %a, ptr %as\n  %vs = alloca {kind}"
    before += f"\n  store {kind} {'%v' if write else 'zeroinitializer'}, ptr %vs"
    lanes.functions[name] = lane_loop(f"{head} noinline", "\n".join(one.lines), lanes.bits, lanes.width, before, after)
    return name


def in_memory(type_: Type) -> Scalar:
    """The type that is loaded and stored: a byte for a bool, i64 for a pointer."""
    register(type_)  # raises if it cannot be in a vector
    if isinstance(type_, Pointer):
        return types.LONG
    assert isinstance(type_, Scalar)
    return types.UCHAR if type_ is types.BOOL else type_


def _fast_path(b: Builder, place: WidePlace, size: int, write: bool, slow: str, quick: str) -> str:
    """Branch to `quick` if the lanes' bytes are contiguous and all accessible, else to `slow`; the address."""
    lanes, memory, at = lanes_of(b), b.program.memory, place.at
    whole = lanes.width * size
    fine = and_i1(b, at.valid, lanes.all(b))
    if place.span is not None:
        other = b.label()
        b.branch(and_i1(b, fine, in_span(b, at.base, whole, place.span)), quick, other)
        b.begin(other)
    if place.check == FULL:
        off = b.make(f"sub i64 {at.base}, {memory.base}")
        fine = and_i1(b, fine, b.make(f"icmp ult i64 {off}, {memory.size - 64 - whole}"))
    if place.check == UNCHECKED:
        b.branch(fine, quick, slow)
        b.begin(quick)
        return b.make(f"inttoptr i64 {at.base} to ptr")
    near = b.label()
    b.branch(fine, near, slow, likely=True)
    b.begin(near)
    if not write or place.check == FULL:
        check_states(b, at.base, size, write, quick, slow, lanes.width)
    b.begin(quick)
    if write and place.check != FULL:
        shadow = b.make(f"inttoptr i64 {b.make(f'add i64 {at.base}, {memory.shift}')} to ptr")
        b.emit(f"store {states_type(size, lanes.width)} {state_bytes(3, size, lanes.width)}, ptr {shadow}, align 1{OK}")
    return b.make(f"inttoptr i64 {at.base} to ptr")


def _prefetch(b: Builder, place: WidePlace) -> None:
    """Rows of a matrix are too far apart for hardware prefetchers. In a loop, prefetch a few iterations ahead by the
    distance to the previous one's address; elsewhere, the following bytes: the next group or block loads them."""
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
    """LLVM type and text of the vector as it is stored."""
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
    return from_memory(b, place.type, _access(b, place))


def store(b: Builder, place: WidePlace, value: Wide) -> None:
    _, text = to_memory(b, value)
    _access(b, place, text)


def _access(b: Builder, place: WidePlace, given: str = "") -> str:
    """Load all lanes, or store `given`: as one vector if possible, else lane by lane."""
    lanes, stored, size = lanes_of(b), in_memory(place.type), place.type.size
    kind, name = lanes.vector(stored.llvm), _function(b, stored, place.check, bool(given))

    def lane_by_lane() -> str:
        value, line = f", {kind} {given}" if given else "", f"i32 {b.line_text()}, i32 {access_detail(b, place)}"
        arguments = f"{lanes.vector('i64')} {place.at.vector}, {lanes.bits} {lanes.mask_bits(b)}{value}, {line}"
        if not given:
            return b.make(f"call {kind} @{name}({arguments})")
        b.emit(f"call void @{name}({arguments})")
        return ""

    scattered = not place.at.base or place.at.stride != size
    if scattered and place.span is None:
        return lane_by_lane()
    slow, quick, done = b.label(), b.label(), b.label()
    one = ""
    if scattered:
        assert place.span is not None
        b.branch(all_inside(b, place.at, place.span, size), quick, slow)
        b.begin(quick)
        if given:
            scatter(b, stored.llvm, place.at, given)
        else:
            one = gather(b, stored.llvm, place.at)
    elif given:
        pointer = _fast_path(b, place, size, True, slow, quick)
        b.emit(f"store {kind} {given}, ptr {pointer}, align 1{OK}")
    else:
        _prefetch(b, place)
        pointer = _fast_path(b, place, size, False, slow, quick)
        one = b.make(f"load {kind}, ptr {pointer}, align 1{OK}")
    b.jump(done)
    b.begin(slow)
    two = lane_by_lane()
    b.jump(done)
    b.begin(done)
    return "" if given else b.make(f"phi {kind} [ {one}, %{quick} ], [ {two}, %{slow} ]")


def offset_pointer(b: Builder, pointer: Value, index: Value, size: int) -> Wide:
    """pointer + index * size, as an address."""
    offset = scalars(b, "*", as_scalar(b, index, types.LONG), Value(types.LONG, str(size)))
    address: Any = scalars(b, "+", widen(b, pointer).as_type(types.LONG), offset)
    return widen(b, address)


BAD_INDEX = """
  %pa = getelementptr i64, ptr %as, i64 %l
  %at = load i64, ptr %pa
  call void @set_lane(i64 %l)
  call void @rt_bad_index(i64 %at, i64 %length, i32 %name, i32 %line)
  br label %next"""


def checked_index(b: Builder, index: Value, length: int, name: str) -> Wide:
    """A subscript checked against its array's length: a lane beyond it is reported and continues with index 0."""
    wide, lanes = widen(b, as_scalar(b, index, types.LONG)), lanes_of(b)
    kind, truths = lanes.vector("i64"), lanes.vector("i1")
    b.program.external("rt_bad_index")
    head = f"void @bad_index({kind} %a, {lanes.bits} %mask, i64 %length, i32 %name, i32 %line) noinline cold"
    before = f"  %as = alloca {kind}\n  store {kind} %a, ptr %as"
    lanes.functions["bad_index"] = lane_loop(head, BAD_INDEX, lanes.bits, lanes.width, before)
    bad = b.make(f"icmp uge {kind} {wide.vector}, splat (i64 {length})")
    report, good = b.label(), b.label()
    b.branch(lanes.any(b, bad), report, good, likely=False)
    b.begin(report)
    mask = lanes.mask_bits(b, b.make(f"and {truths} {bad}, {lanes.mask(b)}"))
    given = f"i64 {length}, i32 {b.program.name_number(name)}, i32 {b.line_text()}"
    b.emit(f"call void @bad_index({kind} {wide.vector}, {lanes.bits} {mask}, {given})")
    b.jump(good)
    b.begin(good)
    text = b.make(f"select {truths} {bad}, {kind} zeroinitializer, {kind} {wide.vector}")
    if not wide.base:
        return Wide(types.LONG, text)
    valid = and_i1(b, wide.valid, b.make(f"xor i1 {lanes.any(b, bad)}, true"))
    return Wide(types.LONG, text, wide.base, wide.stride, valid)


def interleaved_element(b: Builder, base: InterleavedPlace, index: Value) -> InterleavedPlace:
    array = base.type
    assert isinstance(array, Array)
    within = checked_index(b, index, array.length, base.name)
    step = scalars(b, "*", within, Value(types.LONG, str(prod(dimensions(array.of)))))
    return InterleavedPlace(array.of, base.start, scalars(b, "+", widen(b, base.element), step), base.name)


def interleaved_address(b: Builder, place: InterleavedPlace) -> WidePlace:
    """The addresses of a scalar element of a per-thread array."""
    type_ = place.type
    if not isinstance(type_, (Scalar, Pointer)):
        raise NotInLockstep(f"a per-thread {type_} as a whole")
    width, size = lanes_of(b).width, type_.size
    start = from_linear(b, types.LONG, place.start, size)
    return WidePlace(type_, offset_pointer(b, start, place.element, size * width), INIT)
