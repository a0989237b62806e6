"""Atomic operations, in lane order; they race with plain accesses only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewise.emulator.machine.access import Site, reinterpret, resolve, uninitialised
from tilewise.emulator.machine.context import Context
from tilewise.emulator.machine.load_store import mark, with_base
from tilewise.emulator.machine.memory import Cells

Function = Callable[..., Any]

ATOMICS: dict[str, tuple[int, Function]] = {
    "atomicAdd": (2, lambda old, v: old + v),
    "atomicSub": (2, lambda old, v: old - v),
    "atomicMin": (2, lambda old, v: min(old, v)),
    "atomicMax": (2, lambda old, v: max(old, v)),
    "atomicAnd": (2, lambda old, v: old & v),
    "atomicOr": (2, lambda old, v: old | v),
    "atomicXor": (2, lambda old, v: old ^ v),
    "atomicExch": (2, lambda old, v: v),
    "atomicCAS": (3, lambda old, compare, v: v if old == compare else old),
    "atomicInc": (2, lambda old, v: old * 0 if old >= v else old + old.dtype.type(1)),
    "atomicDec": (2, lambda old, v: v if old == 0 or old > v else old - old.dtype.type(1)),
}
SIGNS = {ATOMICS["atomicAdd"][1]: 1, ATOMICS["atomicSub"][1]: -1}  # of integers: independent of the order


def _added(data: np.ndarray, cells: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Add to integer cells in order; the values before each addition, by prefix sums, which wrap as single sums do."""
    if not len(cells):
        return values
    order = np.argsort(cells, kind="stable")
    cell, value = cells[order], values[order].astype(data.dtype)
    begins = np.concatenate(([True], cell[1:] != cell[:-1]))
    first, group = np.flatnonzero(begins), np.cumsum(begins) - 1
    before = np.cumsum(value, dtype=data.dtype) - value
    found: np.ndarray = data[cell] + (before - before[first][group])
    last = np.concatenate((first[1:] - 1, [len(cell) - 1]))
    data[cell[last]] = found[last] + value[last]
    out: np.ndarray = np.empty_like(found)
    out[order] = found
    return out


def atomic(c: Context, site: Site, located: Any, function: Function, values: list[Any]) -> Any:
    """Execute for the active lanes in lane order; each lane's old value."""
    memory, index, row, symbol, guessed = located
    c.counters["atomics"] += c.active()
    lanes = c.active_lanes()
    if isinstance(memory, Cells):
        cells = np.broadcast_to(np.asarray(index), (c.n,))
        old = np.zeros(c.n, memory.dtypes[0])
        for lane in lanes.tolist():
            held = memory.get(int(cells[lane]))
            mine = held[lane] if isinstance(held, np.ndarray) else held
            old[lane] = mine
        new = function(old, *[np.broadcast_to(np.asarray(v), (c.n,)) for v in values])
        memory.scatter(cells, c.lane_numbers, new, c.mask)
        return old
    shared = memory.space == "shared"
    flat, ok = resolve(c, site, memory, index, row, symbol, guessed, 1, "atomic")
    if shared:
        flat = with_base(memory, flat)
    if c.checks and memory.initialised is not None and function is not ATOMICS["atomicExch"][1]:
        uninitialised(c, site, memory, flat, ok, "read" if shared else "load")
    parts = [np.broadcast_to(np.asarray(v), (c.n,)) for v in values]
    data, places = memory.data, flat
    if data.dtype != parts[0].dtype:  # (int*)&x: works on the bits
        data, places = reinterpret(memory, flat, parts[0].dtype)
    cells = np.broadcast_to(np.asarray(places), (c.n,))
    old = np.zeros(c.n, data.dtype)
    run = lanes if ok is None else lanes[ok[lanes]]
    if data.dtype.kind in "iu" and function in SIGNS:
        old[run] = _added(data, cells[run], parts[0][run] if SIGNS[function] > 0 else -parts[0][run])
    else:
        for lane in run.tolist():
            cell = int(cells[lane])
            found = data[cell]
            old[lane] = found
            data[cell] = function(found, *[p[lane] for p in parts])
    mark(c, memory.initialised, flat, ok, 1)
    mark(c, memory.written, flat, ok, 1)
    if c.checks and memory.shadow is not None:
        compared = function is ATOMICS["atomicCAS"][1]
        memory.shadow.atomic(c, flat, c.mask, ok, site.span, compared)
    if not shared:
        memory.stores += len(lanes)
    return old
