"""Matrices on the card, as launches see them: an address, a layout, a dtype; and workspaces that free themselves."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import dataclass
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
