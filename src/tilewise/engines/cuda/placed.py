"""Matrices on the card, as launches see them: an address, a layout, a dtype; and the memory they pass through.

A workspace lives for one call. A scratch buffer is kept for the next call on the same stream, because allocating costs
more than a small product: who uses one holds `SCRATCH_LOCK` until everything that reads it has been queued.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Lock
from typing import Any

from tilewise.algebra.dtypes import DType
from tilewise.arrays.card import allocate
from tilewise.problem import Layout, row_major


@dataclass(frozen=True)
class Placed:
    """A stack of matrices on the card."""

    pointer: int
    dtype: DType
    rows: int
    cols: int
    layout: Layout

    def member(self, index: tuple[int, ...]) -> int:
        """The address of one matrix of the stack."""
        offset = sum(i * stride for i, stride in zip(index, self.layout.stack, strict=True))
        return self.pointer + offset * self.dtype.itemsize


def workspace(
    rows: int,
    cols: int,
    stack: tuple[int, ...],
    dtype: DType,
    lead: int,
    device: str,
    stream: Any,
    workspaces: ExitStack,
) -> Placed:
    """Fresh memory on the card, freed in stream order when `workspaces` closes."""
    nbytes = max(1, rows * lead * math.prod(stack) * dtype.itemsize)
    buffer = allocate(nbytes, device, stream)
    workspaces.callback(buffer.close, stream)
    layout = row_major(rows, lead, stack)
    return Placed(int(buffer.handle), dtype, rows, cols, Layout(lead, 1, layout.stack))


SCRATCH_LIMIT = 2**30  # bytes of one buffer that are kept; larger ones are allocated each time
SCRATCH_LOCK = Lock()
_scratch: dict[tuple[str, int, str], Any] = {}


def scratch(nbytes: int, role: str, device: str, stream: Any) -> Any:
    """A buffer of at least `nbytes` for this stream and role; the next call with both may get the same one."""
    key = (device, int(stream.handle), role)
    kept = _scratch.get(key)
    if kept is not None and kept.size >= nbytes:
        return kept
    if kept is not None:
        del _scratch[key]
        kept.close(stream)
    made = allocate(max(nbytes, 1), device, stream)
    if nbytes <= SCRATCH_LIMIT:
        _scratch[key] = made
    return made
