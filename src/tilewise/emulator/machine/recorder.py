"""Records the events of the watched blocks, column by column, while a kernel runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.emulator.machine.events import COLUMNS, NONE, EventKind, Events, empty_events
from tilewise.emulator.machine.lanes import Lanes
from tilewise.emulator.machine.memory import Buffer


class Recorder:
    def __init__(self, names: list[str], limit: int = 4_000_000) -> None:
        self.names = names
        self.rows: list[dict[str, Any]] = []
        self.loads: list[dict[str, Any]] = []  # of this statement; a shared store fills in their destination
        self.limit = limit
        self.count = 0
        self.watched: Any = None  # lanes, as a mask; None: all
        self.full = False

    def name(self, text: str) -> int:
        if text not in self.names:
            self.names.append(text)
        return self.names.index(text)

    def _lanes(self, c: Lanes) -> np.ndarray:
        mask = c.mask
        if self.watched is not None:
            mask = self.watched if mask is None else mask & self.watched
        return c.lane_numbers if mask is None else np.flatnonzero(mask)

    def _add(self, c: Lanes, kind: EventKind, lanes: np.ndarray, line: int, **columns: Any) -> dict[str, Any] | None:
        if not len(lanes):
            return None
        self.count += len(lanes)
        if self.count > self.limit:
            self.full = True
            return None
        row: dict[str, Any] = {
            "kind": kind, "step": c.steps, "phase": c.phase, "block": c.block[lanes], "thread": c.thread[lanes],
            "line": line, "lanes": lanes, "value": np.nan, "array": -1, "to_array": -1,
            **dict.fromkeys(("row", "col", "got_row", "got_col"), NONE),
            **{name: np.full(len(lanes), NONE, np.int32) for name in ("to_row", "to_col")}, **columns,
        }  # fmt: skip
        self.rows.append(row)
        return row

    @staticmethod
    def _pick(c: Lanes, value: Any, lanes: np.ndarray) -> Any:
        return np.broadcast_to(np.asarray(value), (c.n,))[lanes]

    def _cells(
        self, c: Lanes, buffer: Buffer, value: Any, lanes: np.ndarray, row: Any, col: Any, got_row: Any, got_col: Any
    ) -> dict[str, Any]:
        """The columns of an event at cells of an array."""
        picked = self._pick(c, value, lanes).astype(np.float64)
        return {"array": buffer.index, "row": row, "col": col, "got_row": got_row, "got_col": got_col, "value": picked}

    def touch(
        self, c: Lanes, kind: EventKind, line: int, buffer: Buffer, index: Any, row: Any, symbol: Any, value: Any
    ) -> None:
        """Record a load, store or use at cell `index` of the block's instance."""
        lanes = self._lanes(c)
        if not len(lanes):
            return
        cell = self._pick(c, index, lanes).astype(np.int64)
        matrix = buffer.matrix
        if matrix is not None:
            element = cell // matrix.cells
            got = (element // matrix.pitch, element % matrix.pitch)
            requested = got
            if row is not None and symbol is not None:
                rows = self._pick(c, row, lanes).astype(np.int64)
                requested = (rows, element - rows * int(c.symbols[symbol]))
        elif len(buffer.dims) >= 2:
            got = requested = (cell // buffer.dims[-1], cell % buffer.dims[-1])
        else:
            got = requested = (np.zeros_like(cell), cell)
        outside = (cell < 0) | (cell >= buffer.size)
        reached = (np.where(outside, NONE, part) for part in got)
        added = self._add(c, kind, lanes, line, **self._cells(c, buffer, value, lanes, *requested, *reached))
        if kind is EventKind.LOAD and added is not None:
            self.loads.append(added)

    def put(self, c: Lanes, line: int, buffer: Buffer, index: Any, value: Any, from_global: bool) -> None:
        """Record a shared store: the destination of this statement's loads, else a fill."""
        lanes = self._lanes(c)
        if not len(lanes):
            return
        cell = self._pick(c, index, lanes).astype(np.int64)
        last = buffer.dims[-1] if len(buffer.dims) >= 2 else max(1, buffer.size)
        rows, cols = cell // last, cell % last
        loaded = np.zeros(len(lanes), np.bool_)
        for load in self.loads:
            position = np.searchsorted(load["lanes"], lanes)
            position = np.minimum(position, len(load["lanes"]) - 1)
            here = load["lanes"][position] == lanes
            loaded |= here
            load["to_array"] = buffer.index
            load["to_row"][position[here]] = rows[here]
            load["to_col"][position[here]] = cols[here]
        rest = ~loaded
        if not from_global and rest.any():
            cells = self._cells(c, buffer, value, lanes[rest], *(rows[rest], cols[rest]) * 2)
            self._add(c, EventKind.FILL, lanes[rest], line, **cells)

    def sum(self, c: Lanes, line: int, name: str, value: Any) -> None:
        lanes = self._lanes(c)
        if len(lanes):
            picked = self._pick(c, value, lanes).astype(np.float64)
            self._add(c, EventKind.SUM, lanes, line, array=self.name(name), value=picked)

    def barrier(self, c: Lanes, line: int) -> None:
        lanes = self._lanes(c)
        self._add(c, EventKind.BARRIER, lanes, line)

    def events(self) -> Events:
        if not self.rows:
            return empty_events()
        ends = np.cumsum([len(row["lanes"]) for row in self.rows]).tolist()
        columns: dict[str, Any] = {}
        for name, dtype in COLUMNS.items():
            made, begin = np.empty(ends[-1], dtype), 0
            for row, end in zip(self.rows, ends, strict=True):  # broadcasts a number that holds for all lanes
                made[begin:end] = row[name]
                begin = end
            columns[name] = made
        return Events(**columns)
