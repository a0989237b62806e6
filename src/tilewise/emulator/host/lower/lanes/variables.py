"""Variables in lanes: a varying scalar is a vector; elements of per-thread arrays are interleaved over the lanes."""

from __future__ import annotations

from math import prod
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import zero_fill
from tilewise.emulator.host.lower.conversion import convert, rvalue
from tilewise.emulator.host.lower.initialise import complete_type
from tilewise.emulator.host.lower.lanes.linear import widen
from tilewise.emulator.host.lower.lanes.mask import lanes_of, vector
from tilewise.emulator.host.lower.places import put
from tilewise.emulator.host.lower.values import InterleavedPlace, NotInLockstep, Value, WideLocal, WideVariable
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Array, Pointer, Reference, Scalar, Type, dimensions, innermost

MAX_INTERLEAVED_BYTES = 1 << 14  # of a per-thread array


def declared_in_lanes(b: Builder, item: tree.Variable) -> bool:
    """Declare a varying variable or a per-thread array; False for a uniform variable."""
    divergence = lanes_of(b).divergence
    varying = id(item) in divergence.varying_variables
    init: Any = item.init if item.init is not None else item.arguments
    if isinstance(init, list) and len(init) == 1:
        init = init[0]
    if item.specifiers & {"__shared__", "static", "extern", "function"}:
        if varying or "static" in item.specifiers:
            raise NotInLockstep(f"{item.name} at line {item.line}")
        return False
    type_ = None if tree.is_auto(item.type) else complete_type(b, b.program.resolve(item.type, b.env), item.init)
    if isinstance(type_, Array):
        _interleaved_array(b, item, type_, init)
        return True
    if type_ is not None and (isinstance(type_, Reference) or item.name in b.escaping):
        raise NotInLockstep(f"{item.name}, whose address is taken, at line {item.line}")
    if not varying:
        return False
    if isinstance(init, tree.Braces):
        init = init.items[0] if len(init.items) == 1 else tree.Number(0, types.INT)
    if isinstance(init, list):
        raise NotInLockstep(f"{item.name} at line {item.line}")
    value = None if init is None else rvalue(b, b.lower(init))
    if type_ is None and value is not None:
        type_ = value.type
    if not isinstance(type_, (Scalar, Pointer)) or type_ is types.VOID:
        raise NotInLockstep(f"{item.name} of type {type_} at line {item.line}")
    declare(b, item.name, type_, value, id(item) in divergence.reassigned)
    return True


def declare(b: Builder, name: str, type_: Type, init: Value | None, assigned: bool) -> None:
    """A varying variable."""
    lanes = lanes_of(b)
    kind, truths = vector(b, type_), lanes.vector("i1")
    value = None if init is None else widen(b, convert(b, init, type_, explicit=True))
    if value is not None and not assigned:
        b.declare(name, WideLocal(value))
        return
    slot, flag = b.alloca(kind), ""
    if value is not None:
        b.emit(f"store {kind} {value.vector}, ptr {slot}")
    else:
        flag = b.alloca(truths)
        b.allocas.append(f"  store {truths} zeroinitializer, ptr {flag}")
        b.allocas.append(f"  store {kind} zeroinitializer, ptr {slot}")
        b.emit(f"store {truths} zeroinitializer, ptr {flag}")
    b.declare(name, WideLocal(WideVariable(type_, slot, flag, name, len(lanes.regions))))


def _interleaved_array(b: Builder, item: tree.Variable, type_: Array, init: Any) -> None:
    """A per-thread array."""
    width, size = lanes_of(b).width, b.program.size_of(type_)
    inner = innermost(type_)
    if (
        size > MAX_INTERLEAVED_BYTES
        or not size
        or not isinstance(inner, (Scalar, Pointer))
        or inner.size not in (1, 2, 4, 8)
    ):
        raise NotInLockstep(f"{item.name}, an array of {size} bytes, at line {item.line}")
    address = b.frame_slot(size * width, 64)
    b.set_state(address, str(size * width), 1)
    place = InterleavedPlace(type_, b.make(f"ptrtoint ptr {address} to i64"), Value(types.LONG, "0"), item.name)
    if init is not None:
        if not isinstance(init, tree.Braces) or any(init.names):
            raise NotInLockstep(f"the initialiser of {item.name} at line {item.line}")
        zero_fill(b, address, size * width)
        _fill(b, place, init, 0)
    else:
        b.program.uninitialised_locals.setdefault(item.name, b.line)
    b.declare(item.name, WideLocal(place))


def _fill(b: Builder, place: InterleavedPlace, given: tree.Braces, first: int) -> None:
    array = place.type
    assert isinstance(array, Array)
    step = prod(dimensions(array.of))
    for i, node in enumerate(given.items):
        part = InterleavedPlace(array.of, place.start, Value(types.LONG, str(first + i * step)), place.name)
        if isinstance(node, tree.Braces) and isinstance(array.of, Array):
            _fill(b, part, node, first + i * step)
        elif isinstance(node, tree.Braces) or isinstance(array.of, Array):
            raise NotInLockstep("a list of values without inner braces")
        else:
            put(b, part, convert(b, b.lower(node), array.of))
