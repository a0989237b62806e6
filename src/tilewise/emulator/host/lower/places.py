"""Loads and stores of what an expression names, of one thread or of all lanes."""

from __future__ import annotations

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import load as load_one
from tilewise.emulator.host.lower.checked_memory import store as store_one
from tilewise.emulator.host.lower.lanes import memory
from tilewise.emulator.host.lower.lanes.lane_loop import lane_loop
from tilewise.emulator.host.lower.lanes.linear import widen
from tilewise.emulator.host.lower.lanes.mask import lanes_of, opposite, vector
from tilewise.emulator.host.lower.values import NotInLockstep, OwnPlace, Place, Value, Wide, WidePlace, WideVariable
from tilewise.emulator.parse import types
from tilewise.emulator.parse.types import Pointer, Scalar

UNSET = """  call void @set_lane(i64 %l)
  call void @rt_unset(i32 %line, i32 %word)
  br label %next"""


def load(b: Builder, place: Place, checked: bool = True) -> Value:
    """The value in a place; of a class or an array, its address. A variable without one is reported if `checked`."""
    if isinstance(place, WideVariable):
        if place.flag and checked:
            truths = lanes_of(b).vector("i1")
            lacks = opposite(b, b.make(f"load {truths}, ptr {place.flag}"))
            _tell_unset(b, b.make(f"and {truths} {lacks}, {lanes_of(b).mask(b)}"), place.name)
        return Wide(place.type, b.make(f"load {vector(b, place.type)}, ptr {place.slot}"))
    if isinstance(place, OwnPlace):
        place = memory.own_address(b, place)
    if isinstance(place, WidePlace):
        return memory.load(b, place)
    return load_one(b, place, checked)


def put(b: Builder, place: Place, value: Value) -> None:
    """A value of the place's type into it."""
    if isinstance(place, WideVariable):
        _assign(b, place, widen(b, value))
        return
    if isinstance(place, OwnPlace):
        place = memory.own_address(b, place)
    if isinstance(value, Wide) and not isinstance(place, WidePlace):  # at one place, in the order of the lanes
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
    """Whether a variable has a value, that may have none: an i1, or one of each lane."""
    return b.make(f"load {_truths(b, place)}, ptr {place.flag}")


def note_value(b: Builder, place: Place, has: str) -> None:
    """From now on it has one, or has none, in the lanes that run."""
    if isinstance(place, WideVariable):
        truths = _truths(b, place)
        has = b.make(f"select {truths} {lanes_of(b).mask(b)}, {truths} {has}, {truths} {has_value(b, place)}")
    b.emit(f"store {_truths(b, place)} {has}, ptr {place.flag}")


def _truths(b: Builder, place: Place) -> str:
    return lanes_of(b).vector("i1") if isinstance(place, WideVariable) else "i1"


def _assign(b: Builder, place: WideVariable, value: Wide) -> None:
    """In the lanes that are active."""
    lanes = lanes_of(b)
    kind, truths, text = vector(b, place.type), lanes.vector("i1"), value.vector
    if place.region != len(lanes.regions):
        old = b.make(f"load {kind}, ptr {place.slot}")
        text = b.make(f"select {truths} {lanes.mask(b)}, {kind} {text}, {kind} {old}")
    b.emit(f"store {kind} {text}, ptr {place.slot}")
    if place.flag:
        b.emit(f"store {truths} {b.make(f'or {truths} {has_value(b, place)}, {lanes.mask(b)}')}, ptr {place.flag}")


def _tell_unset(b: Builder, lacks: str, name: str) -> None:
    """A variable is read that has no value in these lanes."""
    lanes = lanes_of(b)
    head = f"void @unset({lanes.bits} %mask, i32 %line, i32 %word) noinline cold"
    lanes.functions["unset"] = lane_loop(head, UNSET, lanes.bits, lanes.width)
    b.program.external("rt_unset")
    bad, good = b.label(), b.label()
    b.branch(lanes.any(b, lacks), bad, good, likely=False)
    b.begin(bad)
    word = b.program.text(name)
    b.emit(f"call void @unset({lanes.bits} {lanes.mask_bits(b, lacks)}, i32 {b.line_text()}, i32 {word})")
    b.jump(good)
    b.begin(good)
