"""Lvalues: registers, local cells, shared arrays, memory through pointers.

A place is located once, then loaded, stored or both: `a[i++] += x` increments i once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewise.emulator.compile.operand import MIXED, Fn, Operand
from tilewise.emulator.machine import load_store
from tilewise.emulator.machine.access import INTP, Site, beyond
from tilewise.emulator.machine.context import Context
from tilewise.emulator.machine.findings import Kind
from tilewise.emulator.machine.leaves import dtypes_of, leaves, numeric
from tilewise.emulator.machine.memory import UNSET, ZERO, Buffer, Cells, Pointer, as_dtype, merge
from tilewise.emulator.machine.program import Variable
from tilewise.emulator.parse.types import Pointer as PointerTo
from tilewise.emulator.parse.types import Scalar, Type
from tilewise.errors import EngineError


@dataclass
class Subscript:
    index: Operand
    stride: int  # leaves
    length: int | None  # of the array; None: of a pointer


@dataclass
class Lvalue:
    kind: str  # register, cells, shared, pointer
    type: Type
    site: Site
    variable: Variable | None = None
    pointer: Operand | None = None
    offset: int = 0
    subscripts: list[Subscript] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.type = numeric(self.type)

    def inner(self, type_: Type, offset: int = 0, subscript: Subscript | None = None) -> Lvalue:
        more = [*self.subscripts, subscript] if subscript else self.subscripts
        return Lvalue(self.kind, type_, self.site, self.variable, self.pointer, self.offset + offset, more)


def pack(type_: Type, values: list[Any]) -> Any:
    return values[0] if isinstance(type_, (Scalar, PointerTo)) else tuple(values)


def unpack(type_: Type, value: Any) -> list[Any]:
    return [value] if isinstance(type_, (Scalar, PointerTo)) else list(value)


# -- locating


def locate_cells(place: Lvalue) -> Fn:
    """Locates as (cells, leaf index, uniform or per lane)."""
    variable = place.variable
    assert variable is not None
    slot, offset = variable.slot, place.offset
    subs = [(s.index.fn, s.stride, s.length) for s in place.subscripts]
    site = place.site

    def locate(c: Context) -> Any:
        cells = c.registers[slot]
        index: Any = offset
        for fn, stride, length in subs:
            value = fn(c)
            if length is not None and np.any(beyond(value, length)):
                value = clip_local(c, site, cells, value, length)
            if isinstance(value, np.ndarray):
                index = index + value.astype(INTP) * stride
            else:
                index = index + int(value) * stride
        return cells, index

    return locate


def clip_local(c: Context, site: Site, cells: Cells, value: Any, length: int) -> Any:
    """Report subscripts outside a local array; those lanes use 0."""
    bad = np.broadcast_to(np.asarray(beyond(value, length)), (c.n,))
    where = bad if c.mask is None else bad & c.mask
    lanes = np.flatnonzero(where)
    if len(lanes):
        requested = [np.broadcast_to(np.asarray(value), (c.n,))[lanes]]
        outside = np.ones(len(lanes), np.bool_)
        c.collector.add(
            c, Kind.OUT_OF_BOUNDS, site.span, lanes, array=cells.name, access="local",
            requested=requested, reached=requested, outside=outside,
        )  # fmt: skip
    if not isinstance(value, np.ndarray):
        return value.dtype.type(0)
    return np.where(bad, value.dtype.type(0), value)


def locate_shared(place: Lvalue, memo: int) -> Fn:
    """Locates as (buffer, (per-lane, constant) cell in the block's instance, cell in the buffer, ok)."""
    variable = place.variable
    assert variable is not None
    number, offset = variable.buffer, place.offset
    subs = [(s.index.fn, s.stride, s.length) for s in place.subscripts]
    site = place.site

    def locate(c: Context) -> Any:
        buffer = c.buffers[number]
        shift = offset
        arrays: list[Any] = []
        strides: list[int] = []
        lengths: list[Any] = []
        over = False
        for fn, stride, length in subs:
            value = fn(c)
            limit = buffer.size // max(1, stride) if length is None else length  # None: extern, sized by the launch
            if isinstance(value, np.ndarray):
                arrays.append(value)
                strides.append(stride)
                lengths.append(limit)
            else:
                step = int(value)
                shift += step * stride
                if not 0 <= step < limit:
                    over = True
        known = c.memo[memo]
        if (
            known is None
            or len(known[0]) != len(arrays)
            or any(a is not b for a, b in zip(known[0], arrays, strict=True))
        ):
            part: Any = None
            bad = False
            for value, stride, length in zip(arrays, strides, lengths, strict=True):
                wide = value.astype(INTP)
                term = wide if stride == 1 else wide * stride
                part = term if part is None else part + term
                bad = bad or bool(beyond(value, length).any())
            based = buffer.base if part is None else part if buffer.base is None else part + buffer.base
            known = c.memo[memo] = (arrays, part, based, bad)
        _, part, based, bad = known
        flat = shift if based is None else based + shift if shift else based
        if over or bad:
            values = [fn(c) for fn, _, _ in subs]
            open_ended = subs[0][2] is None
            return shared_overrun(c, site, buffer, part, shift, values, lengths_of(subs, buffer), open_ended)
        return buffer, (part, shift), flat, None

    return locate


def lengths_of(subs: list[tuple[Fn, int, Any]], buffer: Buffer) -> list[int]:
    return [buffer.size // max(1, stride) if length is None else length for _, stride, length in subs]


def local_index(located: Any) -> Any:
    part, shift = located
    return shift if part is None else part + shift


def shared_overrun(
    c: Context,
    site: Site,
    buffer: Buffer,
    part: Any,
    shift: int,
    values: list[Any],
    lengths: list[int],
    open_ended: bool,
) -> Any:
    """Report subscripts outside their dimension: a silent overrun inside the array, else out of bounds.
    `open_ended`: extern __shared__, sized by the launch."""
    local = np.broadcast_to(np.asarray(local_index((part, shift))), (c.n,))
    wrong = np.zeros(c.n, np.bool_)
    for value, length in zip(values, lengths, strict=True):
        wrong = wrong | beyond(value, length)
    outside = beyond(local.astype(INTP), buffer.size)
    if open_ended:  # the memory may end inside a vector
        outside = outside | beyond(values[0], lengths[0])
    if c.mask is not None:
        wrong = wrong & c.mask
    for kind, where in ((Kind.SILENT_OVERRUN, wrong & ~outside), (Kind.OUT_OF_BOUNDS, wrong & outside)):
        lanes = np.flatnonzero(where)
        if len(lanes):
            requested = [np.broadcast_to(np.asarray(v), (c.n,))[lanes] for v in values]
            inside = np.clip(local[lanes], 0, max(buffer.size - 1, 0))
            reached = buffer.places(inside)
            c.collector.add(
                c, kind, site.span, lanes, array=buffer.name, access="shared", requested=requested, reached=reached,
                outside=outside[lanes],
            )  # fmt: skip
    safe = np.where(outside, 0, local)
    return buffer, (safe, 0), load_store.with_base(buffer, safe), ~outside if outside.any() else None


def locate_pointer(place: Lvalue, memo: int, constant_symbol: int | None) -> Fn:
    """Locates as (memory, cell, row, symbol, guessed); see `memory.Pointer`."""
    pointer = place.pointer
    assert pointer is not None
    fn, offset, site = pointer.fn, place.offset, place.site
    leaf_size = next((leaf.size for leaf in leaves(place.type)), 1)
    subs = [(s.index, s.stride, s.length) for s in place.subscripts]
    indexed = [(e.fn, stride) for e, stride, _ in subs]
    walked = subs[0][0] if subs else None  # the subscript of the pointer itself
    symbol = row = None
    guessed = False
    if walked is not None:
        symbol, row, guessed = walked.symbol, walked.row, walked.guessed
        if symbol is None and walked.dimension is not None:
            symbol, row, guessed = walked.dimension, _one, True
    by_rows = constant_symbol is not None and len(subs) >= 2 and place.subscripts[-1].length is not None

    def locate(c: Context) -> Any:
        target = fn(c)
        memory = target.memory
        if memory is None or (target.nulls and np.any(target.null if c.mask is None else target.null & c.mask)):
            raise EngineError(f"line {site.span.line}: {site.label} goes through a null pointer")
        values = [f(c) for f, _ in indexed]
        known = c.memo[memo]
        index = None
        if known is not None and known[0] is target.offset and known[1] is memory and len(known[2]) == len(values):
            same = all(a is b for a, b in zip(known[2], values, strict=True))
            index = known[3] if same else None
        if index is None:
            ratio = leaf_size // memory.data.dtype.itemsize if isinstance(memory, Buffer) else 1
            ratio = max(ratio, 1)
            index = target.offset
            if offset:
                index = index + offset * ratio
            for value, (_, stride) in zip(values, indexed, strict=True):
                wide = value.astype(INTP)
                step = stride * ratio
                moved = wide if step == 1 else wide * step
                index = moved if index is ZERO else index + moved
            c.memo[memo] = (target.offset, memory, values, index)
        if by_rows:
            return memory, index, values[0], constant_symbol, False
        row_symbol, rows, uncertain = target.symbol, target.row, target.guessed
        if symbol is not None:
            if symbol == MIXED or (row_symbol is not None and row_symbol != symbol):
                row_symbol = rows = None
            else:
                assert row is not None
                own = row(c)
                rows = own if rows is None else rows + own
                row_symbol, uncertain = symbol, uncertain or guessed
        return memory, index, rows, row_symbol, uncertain

    return locate


def _one(c: Context) -> Any:
    return np.int32(1)


# -- loading and storing what was located


def cells_load(c: Context, site: Site, located: Any, type_: Type) -> Any:
    cells, index = located
    dtypes = dtypes_of(type_)
    if c.checks and isinstance(type_, Scalar):
        report_unset(c, site, cells, index)
    if isinstance(index, np.ndarray):
        values = [cells.gather(index + i, c.lane_numbers) for i in range(len(dtypes))]
    else:
        values = [cells.get(int(index) + i) for i in range(len(dtypes))]
    return pack(type_, values)


def report_unset(c: Context, site: Site, cells: Cells, index: Any) -> None:
    """Report lanes that read a leaf they have not written. Not called for structs: copying unset members is allowed."""
    where = cells.unwritten(index, c.n)
    lanes = np.flatnonzero(where if c.mask is None else where & c.mask)
    if not len(lanes):
        return
    requested = None
    if np.prod(cells.dims, dtype=int) == len(cells.values) and cells.dims:
        leaf = np.broadcast_to(np.asarray(index), (c.n,))[lanes]
        requested = [np.asarray(part) for part in np.unravel_index(leaf, cells.dims)]
    c.collector.add(
        c, Kind.UNINITIALISED_READ, site.span, lanes, array=cells.name, access="register", requested=requested
    )


def cells_store(c: Context, located: Any, type_: Type, value: Any) -> None:
    cells, index = located
    for i, part in enumerate(unpack(type_, value)):
        if isinstance(index, np.ndarray):
            cells.scatter(index + i, c.lane_numbers, part, c.mask)
        else:
            cells.set(int(index) + i, part, c.mask)


def check_cells(c: Context, site: Site, cells: Cells, index: Any, count: int) -> Any:
    """Bounds check of an access through a pointer into cells."""
    limit = len(cells.values) - count + 1
    if np.any(beyond(index, limit)):
        return clip_local(c, site, cells, np.asarray(index)[()] + INTP(0), limit)
    return index


def pointer_load(c: Context, site: Site, located: Any, type_: Type, dtypes: list[Any]) -> Any:
    memory, index, row, symbol, guessed = located
    if isinstance(memory, Cells):
        held = cells_load(c, site, (memory, check_cells(c, site, memory, index, len(dtypes))), type_)
        seen = zip(unpack(type_, held), dtypes, strict=True)
        return pack(type_, [as_dtype(value, dtype, memory.name) for value, dtype in seen])
    if dtypes[0] is None:
        raise EngineError(f"line {site.span.line}: arrays of pointers are not supported")
    return pack(type_, load_store.read(c, site, memory, index, row, symbol, guessed, dtypes))


def pointer_store(c: Context, site: Site, located: Any, type_: Type, value: Any) -> None:
    memory, index, row, symbol, guessed = located
    values = unpack(type_, value)
    if isinstance(memory, Cells):
        index = check_cells(c, site, memory, index, len(values))
        first = 0 if isinstance(index, np.ndarray) else int(index)
        values = [as_dtype(v, memory.dtypes[first + i], memory.name) for i, v in enumerate(values)]
        cells_store(c, (memory, index), type_, pack(type_, values))
        return
    load_store.write(c, site, memory, index, row, symbol, guessed, values)


def register_store(c: Context, slot: int, value: Any) -> None:
    old = c.registers[slot]
    if c.mask is c.declared[slot] or old is UNSET:
        c.registers[slot] = value
    else:
        c.registers[slot] = merge(c.mask, value, old)


def pointer_to(located: Any, kind: str) -> Pointer:
    """The address of a located place."""
    if kind == "cells":
        return Pointer(located[0], located[1])
    if kind == "shared":
        part, shift = located[1]
        return Pointer(located[0], np.int64(shift) if part is None else part + shift)
    memory, index, row, symbol, guessed = located
    return Pointer(memory, index, row, symbol, guessed)
