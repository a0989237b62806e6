"""Read-ahead: a thread that brings the panels of the next phases while the present one is multiplied.

Each operand has a few buffers. A buffer is filled again only when every phase that was promised it has been used, and a
panel that the next phase needs as well is not read twice.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.scale.schedule import SETS, Schedule, Tile
from tilewise.scale.sources import Source

Array = np.ndarray[Any, np.dtype[Any]]
Key = tuple[int, int, int, int]


@dataclass(frozen=True)
class Phase:
    """One step over k of one tile: which slice, and whether it is the tile's first or last."""

    tile: Tile
    ks: slice
    first: bool
    last: bool
    number: int = 0

    @property
    def part_m(self) -> tuple[slice, slice]:
        return self.tile.rows, self.ks

    @property
    def part_n(self) -> tuple[slice, slice]:
        return self.ks, self.tile.cols

    def bands(self, height: int) -> list[slice]:
        """The rows of M, and of P, so many at a time."""
        rows = self.tile.rows
        return [slice(top, min(top + height, rows.stop)) for top in range(rows.start, rows.stop, height)]


def phases(
    schedule: Schedule, done: frozenset[int] = frozenset(), begun: tuple[int, int] | None = None
) -> Iterator[Phase]:
    """Every phase of every tile that is not done, in the order of the walk. `begun`: of one tile, so many are done."""
    slices = schedule.slices()
    for tile in schedule.walk():
        if tile.number not in done:
            start = begun[1] if begun is not None and begun[0] == tile.number else 0
            for number, ks in enumerate(slices[start:], start):
                yield Phase(tile, ks, number == 0, number == len(slices) - 1, number)


class Ring:
    """The buffers of one operand: who is in which, and how many phases still need it."""

    def __init__(self, count: int) -> None:
        self.keys: list[Key | None] = [None] * count
        self.users = [0] * count
        self.latest = -1

    def find(self, part: tuple[slice, slice]) -> tuple[int, bool] | None:
        """(buffer, whether it must be filled), or None while none is free."""
        key = (part[0].start, part[0].stop, part[1].start, part[1].stop)
        if self.latest >= 0 and self.keys[self.latest] == key:
            self.users[self.latest] += 1
            return self.latest, False
        number = (self.latest + 1) % len(self.keys)
        if self.users[number]:
            return None
        self.keys[number], self.users[number], self.latest = key, 1, number
        return number, True


class ReadAhead:
    """`for phase, M, N in ReadAhead(...)`: panels, valid until the next step of the loop."""

    def __init__(
        self,
        schedule: Schedule,
        M: Source,
        N: Source,
        done: frozenset[int] = frozenset(),
        begun: tuple[int, int] | None = None,
    ) -> None:
        self._work = phases(schedule, done, begun)
        s = schedule
        self._sides = [
            (source, Ring(SETS), [np.empty(cells, source.dtype.numpy) for _ in range(SETS)])
            for source, cells in ((M, s.rows * s.depth), (N, s.depth * s.cols))
        ]
        self._ready: deque[Any] = deque()
        self._turn = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._read, name="tilewise read-ahead", daemon=True)

    def __enter__(self) -> ReadAhead:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._turn:
            self._stopped = True
            self._turn.notify_all()
        self._thread.join()

    def __iter__(self) -> Iterator[tuple[Phase, Array, Array]]:
        while True:
            with self._turn:
                while not self._ready:
                    self._turn.wait()
                item = self._ready.popleft()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            phase, panels, numbers = item
            yield phase, panels[0], panels[1]
            with self._turn:
                for (_, ring, _), number in zip(self._sides, numbers, strict=True):
                    ring.users[number] -= 1
                self._turn.notify_all()

    def _read(self) -> None:
        try:
            for phase in self._work:
                panels, numbers = [], []
                for (source, ring, buffers), part in zip(self._sides, (phase.part_m, phase.part_n), strict=True):
                    found = self._buffer(ring, part)
                    if found is None:
                        return
                    number, fill = found
                    panel = panel_view(buffers[number], part, source.turned)
                    if fill:
                        source.read(*part, panel)
                    panels.append(panel)
                    numbers.append(number)
                self._hand_over((phase, panels, numbers))
            self._hand_over(None)
        except BaseException as error:  # the thread that multiplies raises it
            self._hand_over(error)

    def _buffer(self, ring: Ring, part: tuple[slice, slice]) -> tuple[int, bool] | None:
        with self._turn:
            while not self._stopped:
                found = ring.find(part)
                if found is not None:
                    return found
                self._turn.wait()
        return None

    def _hand_over(self, item: Any) -> None:
        with self._turn:
            self._ready.append(item)
            self._turn.notify_all()


def panel_view(buffer: Array, part: tuple[slice, slice], turned: bool) -> Array:
    """A buffer's first cells as a panel, lines side by side in the operand's own order."""
    rows, cols = (p.stop - p.start for p in part)
    flat = buffer[: rows * cols]
    return flat.reshape(cols, rows).T if turned else flat.reshape(rows, cols)
