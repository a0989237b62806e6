"""A memory access of all lanes: checks of bounds, rows and initialisation, then the data transfer."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.emulator.machine.arithmetic import Value
from tilewise.emulator.machine.context import Context
from tilewise.emulator.machine.findings import STALE, Kind
from tilewise.emulator.machine.memory import Buffer
from tilewise.emulator.source.source import Span
from tilewise.errors import EngineError

INTP = np.intp
UNSIGNED = {2: np.uint16, 4: np.uint32, 8: np.uint64, 1: np.uint8}


class Site:
    """A memory access in the source; `number` indexes `Context.memo`."""

    __slots__ = ("label", "number", "span")

    def __init__(self, number: int, span: Span, label: str) -> None:
        self.number = number
        self.span = span
        self.label = label


def beyond(index: Value, limit: int) -> Any:
    """Where index < 0 or index >= limit, by one unsigned comparison."""
    if isinstance(index, np.ndarray):
        if limit <= 0:
            return np.ones(len(index), np.bool_)
        if index.dtype.kind == "u":
            return index >= limit
        return index.view(UNSIGNED[index.dtype.itemsize]) >= limit
    return not 0 <= int(index) < limit


def resolve(
    c: Context, site: Site, buffer: Buffer, index: Value, row: Value, symbol: Any, guessed: bool, leaves: int,
    access: str,
) -> tuple[Value, Any]:  # fmt: skip
    """Report invalid accesses; cell numbers that are safe to use, and the lanes for which they are valid (None: all).

    `index` counts cells from the buffer's start; `row` and `symbol` give the intended row (`memory.Pointer`)."""
    memo = c.memo[site.number]
    if memo is not None and memo[0] is index and memo[1] is row and memo[2] is c.mask and memo[3] is buffer:
        return memo[4], None  # only arrays are kept
    bad = beyond(index, buffer.size - leaves + 1)
    lanewise = isinstance(bad, np.ndarray)
    outside = bad
    any_bad = bool(bad.any()) if lanewise else bool(bad)
    safe = index
    if any_bad:
        if not lanewise:
            outside = np.ones(c.n, np.bool_)
        if c.mask is not None:
            outside = outside & c.mask
        safe = np.where(bad, 0, index) if lanewise else index * 0
    wrong: Any = None
    if c.checks and buffer.matrix is not None:
        wrong = _out_of_row(c, site, buffer, index, row, symbol, guessed, leaves, outside if any_bad else None, access)
    if any_bad and outside.any():
        _report(c, Kind.OUT_OF_BOUNDS, site, buffer, index, row, symbol, outside, access)
        return safe, ~outside
    if isinstance(index, np.ndarray) and wrong is None:
        c.memo[site.number] = (index, row, c.mask, buffer, safe)
    return safe, None


def _out_of_row(
    c: Context, site: Site, buffer: Buffer, index: Value, row: Value, symbol: Any, guessed: bool, leaves: int,
    outside: Any, access: str,
) -> Any:  # fmt: skip
    """Report lanes whose access leaves its row but stays in the allocation."""
    matrix = buffer.matrix
    assert matrix is not None
    element = index if matrix.cells == 1 else index // matrix.cells
    if row is None or symbol is None:
        if matrix.rows > 1 and np.any(_active(c, beyond(element, matrix.cols), outside)):
            c.collector.add(c, Kind.NOT_DECIDABLE, site.span, c.lane_numbers[:0], array=buffer.name, access=access)
        return None
    ld = int(c.symbols[symbol])
    row = row.astype(np.int64) if isinstance(row, np.ndarray) else int(row)
    start = row * ld
    column = element - start
    width = max(1, leaves // matrix.cells)
    wrong = beyond(column, matrix.cols - width + 1) | beyond(row, matrix.rows)
    if ld != matrix.pitch:
        wrong = wrong | (row * matrix.pitch + column != element)
    if not np.any(wrong):
        return None
    if not isinstance(wrong, np.ndarray):
        wrong = np.full(c.n, wrong)
    if c.mask is not None:
        wrong = wrong & c.mask
    if outside is not None:
        wrong = wrong & ~outside
    if not wrong.any():
        return None
    kind = Kind.NOT_DECIDABLE if guessed else Kind.SILENT_OVERRUN
    _report(c, kind, site, buffer, index, row, symbol, wrong, access)
    return wrong


def _active(c: Context, where: Any, outside: Any) -> Any:
    """Restricts to the active lanes that stay in the allocation."""
    if c.mask is not None:
        where = where & c.mask
    return where if outside is None else where & ~outside


def _report(
    c: Context,
    kind: Kind,
    site: Site,
    buffer: Buffer,
    index: Value,
    row: Value,
    symbol: Any,
    where: Any,
    access: str,
) -> None:
    lanes = np.flatnonzero(where)
    first = lanes[: c.limits.touches]
    cell = np.broadcast_to(np.asarray(index), (c.n,))[first]
    outside = (cell < 0) | (cell >= buffer.size)
    requested = reached = [cell] if buffer.matrix is None else buffer.places(cell)
    if buffer.matrix is not None and row is not None and symbol is not None:
        rows = np.broadcast_to(np.asarray(row), (c.n,))[first].astype(np.int64)
        requested = [rows, cell // buffer.matrix.cells - rows * int(c.symbols[symbol])]
    if kind is Kind.NOT_DECIDABLE:
        lanes = lanes[:0]
    c.collector.add(
        c,
        kind,
        site.span,
        lanes,
        array=buffer.name,
        access=access,
        requested=requested,
        reached=reached,
        outside=outside,
    )


def load(c: Context, site: Site, buffer: Buffer, flat: Value, ok: Any, dtype: Any, leaf: int) -> Value:
    """Read one leaf at the resolved cells `flat` as `dtype`. An integer from outside is 0, as in compiled code: as a
    loop's limit or a subscript poison would only add consequences, and time."""
    data = buffer.data
    if data.dtype != dtype:
        data, flat = reinterpret(buffer, flat, dtype)
    # clip: a vector that starts inside a small array may end outside it; `ok` is false for it
    value = data.take(flat, mode="clip") if isinstance(flat, np.ndarray) else data[min(int(flat), len(data) - 1)]
    if ok is not None:
        value = np.where(ok, value, dtype.type(0) if dtype.kind in "iub" else np.asarray(buffer.poison).astype(dtype))
    return value


def store(c: Context, buffer: Buffer, flat: Value, ok: Any, value: Value) -> None:
    """Write one leaf for the active lanes that are `ok`."""
    data = buffer.data
    dtype = value.dtype
    if data.dtype != dtype:
        data, flat = reinterpret(buffer, flat, dtype)
    take = c.mask if ok is None else ok if c.mask is None else c.mask & ok
    if not isinstance(flat, np.ndarray):
        lanes = c.lane_numbers if take is None else np.flatnonzero(take)
        if len(lanes):
            data[int(flat)] = value[lanes[-1]] if isinstance(value, np.ndarray) else value
    elif take is None:
        data[flat] = value
    else:
        data[flat[take]] = value[take] if isinstance(value, np.ndarray) else value


def reinterpret(buffer: Buffer, flat: Value, dtype: Any) -> tuple[np.ndarray, Value]:
    """A view of the buffer as another dtype, and the cell numbers in it."""
    have, want = buffer.data.dtype.itemsize, np.dtype(dtype).itemsize
    if have == want:
        return buffer.data.view(dtype), flat
    if want % have:
        raise EngineError(f"{buffer.name} holds {buffer.data.dtype} and is read as {np.dtype(dtype)}")
    ratio = want // have
    if np.any(flat % ratio):
        raise EngineError(f"{buffer.name} is read as {np.dtype(dtype)} at an address that is not aligned to it")
    usable = len(buffer.data) // ratio * ratio
    return buffer.data[:usable].view(dtype), flat // ratio


def uninitialised(
    c: Context, site: Site, buffer: Buffer, flat: Value, ok: Any, access: str, stale: np.ndarray | None = None
) -> None:
    """Report lanes that read an uninitialised cell, or one of the `stale` ones (`Shadow`)."""
    if stale is not None:
        unset = stale[flat]
    else:
        assert buffer.initialised is not None
        unset = ~buffer.initialised[flat]
    if not isinstance(unset, np.ndarray) or unset.ndim == 0:
        unset = np.full(c.n, bool(unset))
    if ok is not None:
        unset = unset & ok
    if c.mask is not None:
        unset = unset & c.mask
    if not unset.any():
        return
    lanes = np.flatnonzero(unset)
    cells = np.broadcast_to(np.asarray(flat), (c.n,))[lanes[: c.limits.touches]]
    requested = buffer.places(cells)
    hazard, other = ("", None) if stale is None else (STALE, buffer.shadow.stored_at(int(cells[0])))
    c.collector.add(
        c, Kind.UNINITIALISED_READ, site.span, lanes, array=buffer.name, access=access, hazard=hazard,
        requested=requested, reached=requested, other_span=other,
    )  # fmt: skip
