"""Pinned slots between the caller's memory and the card: several threads fill them, or empty them, piece by piece.

Panels whose pages have been pinned meanwhile (`pinning`) come straight from there.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, pairwise
from typing import Any

import numpy as np

from tilewise.scale.panels import Phase, Ring
from tilewise.scale.pinning import Pages
from tilewise.scale.queues import Bytes, Queues
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
    """One operand on its way to the card, in so many buffers."""

    def __init__(
        self, queues: Queues, source: Source, slots: Slots, count: int, nbytes: int, pages: Pages | None = None
    ) -> None:
        self.queues, self.source, self.slots, self.pages = queues, source, slots, pages
        self.ring = Ring(count)
        self.panels = [Panel(queues, nbytes) for _ in range(count)]

    def lines(self, part: tuple[slice, slice]) -> tuple[int, int, int]:
        """(lines, length, lead) of a panel as it lies on the card."""
        rows, cols = (p.stop - p.start for p in part)
        count, length = (cols, rows) if self.source.turned else (rows, cols)
        return count, length, lead_of(length, self.source.dtype.itemsize)

    def begin(self, panel: Panel) -> None:
        """Wait until the panel's last use is over. The host waits, not the stream: so it is never far ahead of the
        card, and pages have the longest time to be pinned."""
        if panel.used is not None:
            self.queues.sync(panel.used)
        panel.futures = []

    def fill(
        self, panel: Panel, part: tuple[slice, slice], pool: ThreadPoolExecutor, share: int = 0, shares: int = 1
    ) -> None:
        """Queue one share of a panel: straight from pinned pages, or piece by piece through slots; then its futures say
        when all of them are on their way."""
        count, length, lead = self.lines(part)
        step = max(1, self.slots.nbytes // (lead * self.source.dtype.itemsize))
        tops = range(0, count, step)
        tops = tops[len(tops) * share // shares : len(tops) * (share + 1) // shares]
        if not tops or self._straight(panel, part, tops.start, min(tops.stop, count) - tops.start, length, lead):
            return
        for top in tops:
            lines = min(step, count - top)
            if not self._straight(panel, part, top, lines, length, lead):
                panel.futures.append(pool.submit(self._piece, panel, part, top, lines, length, lead))

    def _piece(self, panel: Panel, part: tuple[slice, slice], top: int, count: int, length: int, lead: int) -> None:
        item = self.source.dtype.itemsize
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

    def _straight(self, panel: Panel, part: tuple[slice, slice], top: int, count: int, length: int, lead: int) -> bool:
        """Whether the lines lie in pinned pages, and have been queued from there."""
        if self.pages is None:
            return False
        array, (rows, cols) = self.source.array, part  # type: ignore[attr-defined]  # pages are an array's
        width, pitch_to = length * array.itemsize, lead * array.itemsize
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
    """A thread that keeps the panels of the coming phases on their way: M's band by band, and with each band a share of
    N's panel for the phase after."""

    def __init__(
        self, queues: Queues, sides: tuple[Side, Side], work: Iterable[Phase], band: int, threads: int
    ) -> None:
        self._queues, self._sides, self._work, self._band = queues, sides, work, band
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

    def release(self, side: Side, panel: Panel, event: Any) -> None:
        """A use has been queued: the panel may be filled again after `event`."""
        with self._turn:
            panel.used = event
            side.ring.users[side.panels.index(panel)] -= 1
            self._turn.notify_all()

    def _run(self) -> None:
        try:
            self._queues.enter()
            self._feed()
        except _Stopped:
            return
        except BaseException as error:  # the thread that multiplies raises it
            self.ready.put(error)

    def _feed(self) -> None:
        M, N = self._sides
        coming: tuple[Panel, bool] | None = None
        for phase, following in pairwise(chain(self._work, (None,))):
            assert phase is not None
            if coming is None:
                coming = self._panel(N, phase.part_n)
                N.fill(coming[0], phase.part_n, self._pool)
            panel_n, coming = coming[0], None
            bands = phase.bands(self._band)
            # N's other buffer is free when the phase before is over: as soon as M's ring has gone round
            start = min(len(M.panels), len(bands)) - 1
            for number, rows in enumerate(bands):
                part = (rows, phase.ks)
                panel_m, fresh = self._panel(M, part)
                if fresh:
                    M.fill(panel_m, part, self._pool)
                self.ready.put((phase, rows, (panel_m, panel_n)))
                if following is not None and number >= start:
                    coming = coming or self._panel(N, following.part_n)
                    if coming[1]:
                        N.fill(coming[0], following.part_n, self._pool, number - start, len(bands) - start)
        self.ready.put(None)

    def _panel(self, side: Side, part: tuple[slice, slice]) -> tuple[Panel, bool]:
        """The buffer for a part, and whether it must be filled."""
        with self._turn:
            while (found := side.ring.find(part)) is None:
                if self._stopped:
                    raise _Stopped
                self._turn.wait()
            if self._stopped:
                raise _Stopped
        number, fresh = found
        if fresh:
            side.begin(side.panels[number])
        return side.panels[number], fresh


class _Stopped(Exception):
    """The thread that multiplies wants no more."""
