"""Reads and writes of global and shared memory: the transfer, then shadow memory, costs, counters and events."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.emulator.machine.access import Site, load, resolve, store, uninitialised
from tilewise.emulator.machine.arithmetic import Value
from tilewise.emulator.machine.context import Context
from tilewise.emulator.machine.events import EventKind
from tilewise.emulator.machine.memory import Buffer
from tilewise.errors import EngineError


def _stride(buffer: Buffer, dtype: Any) -> int:
    """Cells of the buffer per leaf of this dtype."""
    have, want = buffer.data.dtype.itemsize, dtype.itemsize
    if want < have:
        raise EngineError(f"{buffer.name} holds {buffer.data.dtype} and is used as {dtype}, which is smaller")
    return int(want // have)


def read(
    c: Context, site: Site, buffer: Buffer, index: Value, row: Value, symbol: Any, guessed: bool, dtypes: list[Any]
) -> list[Value]:
    """Read consecutive leaves from cell `index` on, through a pointer."""
    shared = buffer.space == "shared"
    cells = len(dtypes) * _stride(buffer, dtypes[0])
    flat, ok = resolve(c, site, buffer, index, row, symbol, guessed, cells, "read" if shared else "load")
    if shared:
        return read_at(c, site, buffer, index, with_base(buffer, flat), ok, dtypes)
    return read_at(c, site, buffer, index, flat, ok, dtypes, row, symbol)


def read_at(
    c: Context, site: Site, buffer: Buffer, index: Value, flat: Value, ok: Any, dtypes: list[Any], row: Value = None,
    symbol: Any = None,
) -> list[Value]:  # fmt: skip
    """`flat` counts cells in the whole buffer, `index` in the block's instance."""
    shared, stride = buffer.space == "shared", _stride(buffer, dtypes[0])
    cells = stride * len(dtypes)
    values = [load(c, site, buffer, flat if i == 0 else flat + i * stride, ok, d, i) for i, d in enumerate(dtypes)]
    count = c.active()
    if shared:
        c.shared_read = True
        c.counters["uses"] += count * len(dtypes)
    else:
        buffer.loads += count
        c.counters["loads"] += count
        if c.loaded is not True:
            c.loaded = True if c.mask is None else c.mask if c.loaded is None else c.loaded | c.mask
    if c.checks:
        for i in range(cells):
            at = flat if i == 0 else flat + i
            if buffer.initialised is not None and (shared or i == 0):
                if shared and c.copied is True and cells == 1:
                    c.copied = np.broadcast_to(~buffer.initialised[at], (c.n,))
                else:
                    uninitialised(c, site, buffer, at, ok, "read" if shared else "load")
            if buffer.shadow is not None:
                if shared and buffer.shadow.stale is not None:
                    uninitialised(c, site, buffer, at, ok, "read", buffer.shadow.stale)
                buffer.shadow.read(c, at, c.mask, ok, site.span)
        if c.costs is not None:
            c.costs.request(site.number, buffer.space, flat, c.mask, c.n, buffer.data.dtype.itemsize, cells)
    if c.recorder is not None:
        kind = EventKind.USE if shared else EventKind.LOAD
        c.recorder.touch(c, kind, site.span.line, buffer, index, row, symbol, values[0])
    return values


def write(
    c: Context, site: Site, buffer: Buffer, index: Value, row: Value, symbol: Any, guessed: bool, values: list[Value]
) -> None:
    shared = buffer.space == "shared"
    cells = len(values) * _stride(buffer, values[0].dtype)
    flat, ok = resolve(c, site, buffer, index, row, symbol, guessed, cells, "write" if shared else "store")
    if shared:
        write_at(c, site, buffer, index, with_base(buffer, flat), ok, values)
    else:
        write_at(c, site, buffer, index, flat, ok, values, row, symbol)


def write_at(
    c: Context, site: Site, buffer: Buffer, index: Value, flat: Value, ok: Any, values: list[Value], row: Value = None,
    symbol: Any = None, from_global: bool = False,
) -> None:  # fmt: skip
    """As `read_at`; `from_global`: the values depend on a register loaded from global memory."""
    shared, stride, shadow = buffer.space == "shared", _stride(buffer, values[0].dtype), buffer.shadow
    cells = stride * len(values)
    # previous values are compared only if a cell was written before: storing the same value twice is no race
    plain = c.checks and cells == 1 and shadow is not None and shadow.written
    previous = buffer.data.take(flat, mode="clip") if plain and buffer.data.dtype == values[0].dtype else None
    for i, value in enumerate(values):
        store(c, buffer, flat if i == 0 else flat + i * stride, ok, value)
    count = c.active()
    c.counters["shared_writes" if shared else "stores"] += count
    if not shared:
        buffer.stores += count
    elif not from_global:
        loaded = 0
        if c.loaded is True:
            loaded = count
        elif c.loaded is not None:
            loaded = int(np.count_nonzero(c.loaded if c.mask is None else c.loaded & c.mask))
        c.counters["fills"] += count - loaded
    if c.checks:
        for i in range(cells if shadow is not None else 0):
            value = values[i] if i < len(values) and stride == 1 else values[0]
            shadow.write(c, flat if i == 0 else flat + i, c.mask, ok, site.span, value, previous)
        if c.costs is not None:
            c.costs.request(site.number, buffer.space, flat, c.mask, c.n, buffer.data.dtype.itemsize, cells)
    if c.checks or not shared:
        mark(c, buffer.initialised, flat, ok, cells)
        mark(c, buffer.written, flat, ok, cells)
    if c.checks and shared:
        if isinstance(c.copied, np.ndarray):
            _copy_uninitialised(c, buffer, flat, ok)
        if buffer.initialised is not None and c.whole and buffer.initialised.all():
            buffer.initialised = None
    if c.recorder is not None and shared:
        c.recorder.put(c, site.span.line, buffer, index, values[0], from_global)
    elif c.recorder is not None:
        c.recorder.touch(c, EventKind.STORE, site.span.line, buffer, index, row, symbol, values[0])


def mark(c: Context, marks: Any, flat: Value, ok: Any, cells: int) -> None:
    """Set `marks` at the cells that the active lanes wrote."""
    if marks is None:
        return
    take = c.mask if ok is None else ok if c.mask is None else c.mask & ok
    if not isinstance(flat, np.ndarray):
        if take is None or take.any():
            marks[int(flat) : int(flat) + cells] = True
        return
    where = flat if take is None else flat[take]
    for i in range(cells):
        marks[where + i] = True


def _copy_uninitialised(c: Context, buffer: Buffer, flat: Value, ok: Any) -> None:
    """Copying an uninitialised cell makes the copy uninitialised; only its use in a computation is reported."""
    take = c.copied
    for lanes in (c.mask, ok):
        take = take if lanes is None else take & lanes
    if take.any():
        if buffer.initialised is None:
            buffer.initialised = np.ones(len(buffer.data), np.bool_)
        buffer.initialised[np.broadcast_to(np.asarray(flat), (c.n,))[take]] = False


def with_base(buffer: Buffer, index: Value) -> Value:
    return index if buffer.base is None else index + buffer.base
