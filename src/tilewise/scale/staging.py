"""Pinned slots between the caller's memory and the card: several threads fill them, or empty them, piece by piece.

Panels whose pages have been pinned meanwhile (`pinning`) come straight from there.
"""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from tilewise.scale.panels import Ring
from tilewise.scale.pinning import Pages
from tilewise.scale.queues import Bytes, Queues
from tilewise.scale.schedule import SETS
from tilewise.scale.sources import Source

Array = np.ndarray[Any, np.dtype[Any]]
ALIGN = 128  # bytes that lines on the card begin on, so that every kernel takes them as they are


def lead_of(length: int, itemsize: int) -> int:
    """Elements from line to line."""
    step = ALIGN // itemsize
    return -(-length // step) * step


class Slot:
    """Pinned memory, and the event after which it is free again."""

    def __init__(self) -> None:
        self.memory: Bytes | None = None
        self.event: Any = None


class Slots:
    """A fixed number of slots; each is pinned when it is first used, by the thread that uses it."""

    def __init__(self, queues: Queues, count: int, nbytes: int) -> None:
        self._queues, self.nbytes = queues, nbytes
        self._free: queue.Queue[Slot] = queue.Queue()
        for _ in range(count):
            self._free.put(Slot())

    def take(self) -> Slot:
        slot = self._free.get()
        if slot.event is not None:
            self._queues.sync(slot.event)
            slot.event = None
        if slot.memory is None:
            slot.memory = self._queues.pinned(self.nbytes)
        return slot

    def give_back(self, slot: Slot) -> None:
        self._free.put(slot)


class Panel:
    """A buffer on the card for panels of one operand, and the stream that fills it."""

    def __init__(self, queues: Queues, nbytes: int) -> None:
        self.address = queues.memory(nbytes)
        self.stream = queues.stream()
        self.used: Any = None  # the event after which it may be filled again
        self.futures: list[Future[None]] = []


class Side:
    """One operand on its way to the card."""

    def __init__(self, queues: Queues, source: Source, slots: Slots, nbytes: int, pages: Pages | None = None) -> None:
        self.queues, self.source, self.slots, self.pages = queues, source, slots, pages
        self.ring = Ring(SETS)
        self.panels = [Panel(queues, nbytes) for _ in range(SETS)]

    def lines(self, part: tuple[slice, slice]) -> tuple[int, int, int]:
        """(lines, length, lead) of a panel as it lies on the card."""
        rows, cols = (p.stop - p.start for p in part)
        count, length = (cols, rows) if self.source.turned else (rows, cols)
        return count, length, lead_of(length, self.source.dtype.itemsize)

    def fill(self, panel: Panel, part: tuple[slice, slice], pool: ThreadPoolExecutor) -> None:
        """Queue the pieces of a panel; its futures say when all of them are on their way."""
        if panel.used is not None:
            self.queues.wait(panel.stream, panel.used)
        count, length, lead = self.lines(part)
        step = max(1, self.slots.nbytes // (lead * self.source.dtype.itemsize))
        panel.futures = [
            pool.submit(self._piece, panel, part, top, min(step, count - top), length, lead)
            for top in range(0, count, step)
        ]

    def _piece(self, panel: Panel, part: tuple[slice, slice], top: int, count: int, length: int, lead: int) -> None:
        item = self.source.dtype.itemsize
        if self._straight(panel, part, top, count, length * item, lead * item):
            return
        slot = self.slots.take()
        try:
            assert slot.memory is not None
            memory = slot.memory[: count * lead * item]
            view = memory.view(self.source.dtype.numpy).reshape(count, lead)[:, :length]
            rows, cols = part
            if self.source.turned:
                self.source.read(rows, slice(cols.start + top, cols.start + top + count), view.T)
            else:
                self.source.read(slice(rows.start + top, rows.start + top + count), cols, view)
            self.queues.copy_in(memory, panel.address + top * lead * item, panel.stream)
            slot.event = self.queues.record(panel.stream)
        finally:
            self.slots.give_back(slot)

    def _straight(
        self, panel: Panel, part: tuple[slice, slice], top: int, count: int, width: int, pitch_to: int
    ) -> bool:
        """Whether the lines lie in pinned pages, and have been queued from there."""
        if self.pages is None:
            return False
        array, (rows, cols) = self.source.array, part  # type: ignore[attr-defined]  # pages are an array's
        lines, along = (cols.start, rows.start) if self.source.turned else (rows.start, cols.start)
        pitch = array.strides[1 if self.source.turned else 0]
        first = array.ctypes.data + (lines + top) * pitch + along * array.itemsize
        if not self.pages.hold(first, first + (count - 1) * pitch + width):
            return False
        for line, byte, wide, number in self.pages.runs(first, pitch, width, count):
            address = panel.address + (top + line) * pitch_to + byte
            self.queues.copy_lines_in(first + line * pitch + byte, pitch, wide, number, address, pitch_to, panel.stream)
        return True


class Feeder:
    """A thread that keeps the panels of the coming phases on their way."""

    def __init__(self, queues: Queues, sides: tuple[Side, Side], work: Any, threads: int) -> None:
        self._queues, self._sides, self._work = queues, sides, work
        self._pool = ThreadPoolExecutor(threads, "tilewise staging", initializer=queues.enter)
        self._turn = threading.Condition()
        self._stopped = False
        self.ready: queue.Queue[Any] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="tilewise feeder", daemon=True)

    def __enter__(self) -> Feeder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._turn:
            self._stopped = True
            self._turn.notify_all()
        self._thread.join()
        self._pool.shutdown(cancel_futures=True)

    def release(self, numbers: list[int], event: Any) -> None:
        """A phase has been queued: its panels may be filled again after `event`."""
        with self._turn:
            for side, number in zip(self._sides, numbers, strict=True):
                side.panels[number].used = event
                side.ring.users[number] -= 1
            self._turn.notify_all()

    def _run(self) -> None:
        try:
            self._queues.enter()
            for phase in self._work:
                numbers = []
                for side, part in zip(self._sides, (phase.part_m, phase.part_n), strict=True):
                    found = self._panel(side, part)
                    if found is None:
                        return
                    number, fill = found
                    if fill:
                        side.fill(side.panels[number], part, self._pool)
                    numbers.append(number)
                self.ready.put(
                    (phase, numbers, [list(s.panels[i].futures) for s, i in zip(self._sides, numbers, strict=True)])
                )
            self.ready.put(None)
        except BaseException as error:  # the thread that multiplies raises it
            self.ready.put(error)

    def _panel(self, side: Side, part: tuple[slice, slice]) -> tuple[int, bool] | None:
        with self._turn:
            while not self._stopped:
                found = side.ring.find(part)
                if found is not None:
                    return found
                self._turn.wait()
        return None
