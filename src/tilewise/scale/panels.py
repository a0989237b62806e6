"""Read-ahead: a thread reads the panels of the next phase while the current one is multiplied.

Each operand has two buffers; the thread is one phase ahead.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.scale.schedule import SETS, OutputTile, Schedule
from tilewise.scale.sources import MatrixSource

Part = tuple[slice, slice]  # rows and columns of an operand


@dataclass(frozen=True)
class Phase:
    """One step over k of one tile: its slice of k, and whether it is the tile's first or last."""

    tile: OutputTile
    ks: slice
    first: bool
    last: bool
    number: int = 0

    @property
    def part_m(self) -> Part:
        return self.tile.rows, self.ks

    @property
    def part_n(self) -> Part:
        return self.ks, self.tile.cols

    def bands(self, height: int) -> list[slice]:
        """The rows of M and P in bands of this height."""
        rows = self.tile.rows
        return [slice(top, min(top + height, rows.stop)) for top in range(rows.start, rows.stop, height)]


def phases(
    schedule: Schedule, done: frozenset[int] = frozenset(), saved: tuple[int, int] | None = None
) -> Iterator[Phase]:
    """The phases of every tile that is not done, in order. `saved`: (tile, number of its phases done)."""
    slices = schedule.slices()
    for tile in schedule.walk():
        if tile.number not in done:
            start = saved[1] if saved is not None and saved[0] == tile.number else 0
            for number, ks in enumerate(slices[start:], start):
                yield Phase(tile, ks, number == 0, number == len(slices) - 1, number)


class _Buffers:
    """Two buffers for the panels of one operand: one is read while the other one is filled."""

    def __init__(self, source: MatrixSource, cells: int) -> None:
        self._source = source
        self._memory = [np.empty(cells, source.dtype.numpy) for _ in range(SETS)]
        self._held: tuple[Part, Array] | None = None

    def panel(self, part: Part) -> Array:
        """The panel for a part of the operand; read unless it is the previous phase's."""
        if self._held is None or self._held[0] != part:
            self._memory.reverse()
            panel = panel_view(self._memory[0], part, self._source.transposed)
            self._source.read(*part, panel)
            self._held = part, panel
        return self._held[1]


def read_ahead(
    schedule: Schedule,
    M: MatrixSource,
    N: MatrixSource,
    done: frozenset[int] = frozenset(),
    saved: tuple[int, int] | None = None,
) -> Generator[tuple[Phase, Array, Array], None, None]:
    """Each phase with its two panels, valid until the next iteration. Closing the generator ends its thread."""
    of_m = _Buffers(M, schedule.rows * schedule.depth)
    of_n = _Buffers(N, schedule.depth * schedule.cols)

    def load(phase: Phase) -> tuple[Phase, Array, Array]:
        return phase, of_m.panel(phase.part_m), of_n.panel(phase.part_n)

    pool = ThreadPoolExecutor(1, "tilewise read-ahead")
    try:
        loading = None
        for phase in phases(schedule, done, saved):
            following = pool.submit(load, phase)
            if loading is not None:
                yield loading.result()
            loading = following
        if loading is not None:
            yield loading.result()
    finally:
        pool.shutdown(cancel_futures=True)


def panel_view(buffer: Array, part: Part, transposed: bool) -> Array:
    """The start of a buffer as a contiguous panel in the operand's order."""
    rows, cols = (p.stop - p.start for p in part)
    flat = buffer[: rows * cols]
    return flat.reshape(cols, rows).T if transposed else flat.reshape(rows, cols)
