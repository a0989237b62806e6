"""Loads and stores of places, of one thread or of lanes."""

from __future__ import annotations

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import load as load_one
from tilewise.emulator.host.lower.checked_memory import store as store_one
from tilewise.emulator.host.lower.lanes import memory
from tilewise.emulator.host.lower.lanes.lane_loop import lane_loop
from tilewise.emulator.host.lower.lanes.linear import widen
from tilewise.emulator.host.lower.lanes.mask import inverted, lanes_of, vector
from tilewise.emulator.host.lower.values import (
    UNCHECKED,
    InterleavedPlace,
    NotInLockstep,
    Place,
    Value,
    Wide,
    WidePlace,
    WideVariable,
)
from tilewise.emulator.parse import types
from tilewise.emulator.parse.types import Array, Pointer, Scalar

UNSET = """  call void @set_lane(i64 %l)
  call void @rt_uninitialised_variable(i32 %line, i32 %name_id)
  br label %next"""


def literal(b: Builder, value: bytes) -> Place:
    """A text, with the zero behind it."""
    address = b.program.literal(value)
    return Place(Array(types.CHAR, len(value) + 1), f"inttoptr (i64 {address} to ptr)", UNCHECKED, const=True)


def load(b: Builder, place: Place, checked: bool = True) -> Value:
    """The value in a place; for a class or an array, its address. `checked`: report an uninitialised variable."""
    if isinstance(place, WideVariable):
        if place.flag and checked:
            truths = lanes_of(b).vector("i1")
            lacks = inverted(b, b.make(f"load {truths}, ptr {place.flag}"))
            _report_uninitialised(b, b.make(f"and {truths} {lacks}, {lanes_of(b).mask(b)}"), place.name)
        return Wide(place.type, b.make(f"load {vector(b, place.type)}, ptr {place.slot}"))
    if isinstance(place, InterleavedPlace):
        place = memory.interleaved_address(b, place)
    if isinstance(place, WidePlace):
        return memory.load(b, place)
    return load_one(b, place, checked)


def put(b: Builder, place: Place, value: Value) -> None:
    """Store a value of the place's type."""
    if isinstance(place, WideVariable):
        _assign(b, place, widen(b, value))
        return
    if isinstance(place, InterleavedPlace):
        place = memory.interleaved_address(b, place)
    if isinstance(value, Wide) and not isinstance(place, WidePlace):  # all lanes store to one address, in order
        if place.register:
            raise NotInLockstep(f"lanes that differ in {place.name}")
        at = widen(b, Value(Pointer(place.type), place.address))
        place = WidePlace(place.type, Wide(types.LONG, at.vector), place.check, place.const)
    if not isinstance(place, WidePlace):
        store_one(b, place, value.text)
    elif isinstance(place.type, (Scalar, Pointer)):
        memory.store(b, place, widen(b, value))
    else:
        raise NotInLockstep("an assignment to such an object")


def has_value(b: Builder, place: Place) -> str:
    """The variable's initialisation flag: an i1, or one for each lane."""
    return b.make(f"load {_truths(b, place)}, ptr {place.flag}")


def note_value(b: Builder, place: Place, has: str) -> None:
    """Set the flag, in the active lanes."""
    if isinstance(place, WideVariable):
        truths = _truths(b, place)
        has = b.make(f"select {truths} {lanes_of(b).mask(b)}, {truths} {has}, {truths} {has_value(b, place)}")
    b.emit(f"store {_truths(b, place)} {has}, ptr {place.flag}")


def _truths(b: Builder, place: Place) -> str:
    return lanes_of(b).vector("i1") if isinstance(place, WideVariable) else "i1"


def _assign(b: Builder, place: WideVariable, value: Wide) -> None:
    lanes = lanes_of(b)
    kind, truths, text = vector(b, place.type), lanes.vector("i1"), value.vector
    if place.region != len(lanes.regions):
        old = b.make(f"load {kind}, ptr {place.slot}")
        text = b.make(f"select {truths} {lanes.mask(b)}, {kind} {text}, {kind} {old}")
    b.emit(f"store {kind} {text}, ptr {place.slot}")
    if place.flag:
        b.emit(f"store {truths} {b.make(f'or {truths} {has_value(b, place)}, {lanes.mask(b)}')}, ptr {place.flag}")


def _report_uninitialised(b: Builder, lacks: str, name: str) -> None:
    """Report the read of a variable that is uninitialised in these lanes."""
    lanes = lanes_of(b)
    head = f"void @unset({lanes.bits} %mask, i32 %line, i32 %name_id) noinline cold"
    lanes.functions["unset"] = lane_loop(head, UNSET, lanes.bits, lanes.width)
    b.program.external("rt_uninitialised_variable")
    bad, good = b.label(), b.label()
    b.branch(lanes.any(b, lacks), bad, good, likely=False)
    b.begin(bad)
    name_id = b.program.name_number(name)
    b.emit(f"call void @unset({lanes.bits} {lanes.mask_bits(b, lacks)}, i32 {b.line_text()}, i32 {name_id})")
    b.jump(good)
    b.begin(good)
