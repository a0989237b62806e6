"""What a kernel did, in columns: one row per thread and event, for the requested blocks.

Every view (text, SVG, HTML) is drawn from these columns and from nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

NONE = -(2**31)  # no value, in an integer column


class EventKind(IntEnum):
    LOAD = 0  # global memory was read; `to_*`: the shared cell to which the value was stored, if any
    FILL = 1  # a shared cell was written with a value that was not loaded
    STORE = 2  # global memory was written
    USE = 3  # a shared cell was read
    SUM = 4  # an accumulator changed: `array` is its name, `value` its new value
    BARRIER = 5


@dataclass(frozen=True)
class Events:
    """Columns of equal length in the order of execution. `step` counts executed statements: rows of one step
    happened at once. `array` and `to_array` index `Trace.arrays`. `row, col` is the requested cell,
    `got_row, got_col` the cell reached (NONE: outside, or the array has no rows)."""

    kind: NDArray[np.int8]
    step: NDArray[np.int32]
    phase: NDArray[np.int32]
    block: NDArray[np.int32]  # linear: (bz * gridDim.y + by) * gridDim.x + bx
    thread: NDArray[np.int32]  # linear: (tz * blockDim.y + ty) * blockDim.x + tx
    line: NDArray[np.int32]
    array: NDArray[np.int16]
    row: NDArray[np.int32]
    col: NDArray[np.int32]
    got_row: NDArray[np.int32]
    got_col: NDArray[np.int32]
    value: NDArray[np.float64]
    to_array: NDArray[np.int16]
    to_row: NDArray[np.int32]
    to_col: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.kind)

    def where(self, mask: NDArray[np.bool_]) -> Events:
        """The rows where `mask` holds."""
        return Events(**{f.name: getattr(self, f.name)[mask] for f in fields(self)})

    def of(self, kind: EventKind, *, block: int | None = None, phase: int | None = None) -> Events:
        mask = self.kind == kind
        if block is not None:
            mask = mask & (self.block == block)
        if phase is not None:
            mask = mask & (self.phase == phase)
        return self.where(mask)

    def to_json(self) -> dict[str, list[Any]]:
        """Columns as lists; NONE and NaN become null."""
        out: dict[str, list[Any]] = {}
        for f in fields(self):
            column = getattr(self, f.name)
            if column.dtype.kind == "f":
                out[f.name] = [None if v != v else v for v in column.tolist()]
            else:
                out[f.name] = [None if v == NONE else v for v in column.tolist()]
        return out


COLUMNS: dict[str, Any] = {
    "kind": np.int8,
    "step": np.int32,
    "phase": np.int32,
    "block": np.int32,
    "thread": np.int32,
    "line": np.int32,
    "array": np.int16,
    "row": np.int32,
    "col": np.int32,
    "got_row": np.int32,
    "got_col": np.int32,
    "value": np.float64,
    "to_array": np.int16,
    "to_row": np.int32,
    "to_col": np.int32,
}


def empty_events() -> Events:
    return Events(**{name: np.zeros(0, dtype) for name, dtype in COLUMNS.items()})
