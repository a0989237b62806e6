"""Initialisation of variables from an expression, arguments, a braced list or a string."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import copy_bytes, store, zero_fill
from tilewise.emulator.host.lower.conversion import bind, convert
from tilewise.emulator.host.lower.objects import construct, default_initialise, for_each_element
from tilewise.emulator.host.lower.operands import operands
from tilewise.emulator.host.lower.places import literal
from tilewise.emulator.host.lower.tables import table_bytes
from tilewise.emulator.host.lower.values import INIT, Place, Value
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Array, Record, Reference, Type, innermost


def initialise(b: Builder, place: Place, init: Any) -> None:
    """`init` is an expression, a tree.Braces, a list of arguments, or a Value or Place."""
    type_ = place.type
    if isinstance(type_, Array):
        _array(b, place, init)
        return
    if isinstance(type_, Record):
        if isinstance(init, list):
            construct(b, type_, place.address, operands(b, init))
        elif isinstance(init, tree.Braces):
            construct(b, type_, place.address, [init])
        else:
            value = init if isinstance(init, (Value, Place)) else b.lower(init)
            _object(b, type_, place, value)
        return
    if isinstance(init, tree.Braces):
        init = list(init.items)
    if isinstance(init, list):
        if len(init) > 1:
            raise b.refuse(f"{type_} is made from one value, {len(init)} are given")
        init = init[0] if init else Value(types.INT, "0")
    value = init if isinstance(init, (Value, Place)) else b.lower(init)
    if isinstance(type_, Reference):
        made = bind(b, value, type_)
        store(b, Place(types.VOIDP, place.address, INIT), made.text)
        return
    store(b, place, convert(b, value, type_).text)


def _object(b: Builder, record: Record, place: Place, value: Any) -> None:
    """T x = value; copy elision: a temporary becomes the variable itself, and is not destroyed."""
    if isinstance(value, Value) and value.type is record:
        elided = [t for t in b.temporaries if t[1] == value.text]
        if elided or record.trivial:
            b.temporaries = [t for t in b.temporaries if t[1] != value.text]
            copy_bytes(b, place.address, value.text, record.size)
            return
    construct(b, record, place.address, [value])


def _array(b: Builder, place: Place, init: Any) -> None:
    array = place.type
    assert isinstance(array, Array)
    size = b.program.size_of(array)
    only = init.items[0] if isinstance(init, tree.Braces) and len(init.items) == 1 else None
    if isinstance(only, tree.Text) and array.of.size == 1:
        init = only
    if isinstance(init, tree.Text):
        zero_fill(b, place.address, size)
        copy_bytes(b, place.address, literal(b, init.value).address, min(size, len(init.value) + 1))
        return
    if isinstance(init, list):
        init = tree.Braces(init, [None] * len(init))
    if not isinstance(init, tree.Braces):
        value = init if isinstance(init, (Value, Place)) else b.lower(init)
        if isinstance(value, Place) and value.type == array:
            copy_bytes(b, place.address, value.address, size)
            return
        raise b.refuse(f"an array ({array}) needs a list of values")
    data = table_bytes(array, init)
    if data is not None:
        copy_bytes(b, place.address, literal(b, data).address, size)
        return
    of, length = array.of, array.length
    if isinstance(of, Array) and init.items and not any(isinstance(i, (tree.Braces, tree.Text)) for i in init.items):
        of = innermost(array)  # brace elision: int a[2][2] = {1, 2, 3, 4}
        length = size // b.program.size_of(of)
    if len(init.items) > length:
        raise b.refuse(f"{len(init.items)} values for an array of {length}")
    inner = b.program.size_of(of)
    if not isinstance(of, Record) or len(init.items) < length:
        zero_fill(b, place.address, size)
    for i, item in enumerate(init.items):
        initialise(b, Place(of, b.offset(place.address, i * inner), INIT), item)
    if isinstance(of, Record):
        rest, left = b.offset(place.address, len(init.items) * inner), length - len(init.items)
        for_each_element(b, rest, str(left), inner, lambda at: default_initialise(b, of, at))


def complete_type(b: Builder, type_: Type, init: Any) -> Type:
    """int a[] = {…}: deduce the length from the list."""
    if isinstance(type_, Array) and type_.length == 0:
        if isinstance(init, tree.Braces):
            if len(init.items) == 1 and isinstance(init.items[0], tree.Text) and type_.of.size == 1:
                return Array(type_.of, len(init.items[0].value) + 1)
            return Array(type_.of, len(init.items))
        if isinstance(init, tree.Text):
            return Array(type_.of, len(init.value) + 1)
    return type_
