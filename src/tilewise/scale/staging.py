"""Pinned slots between the caller's memory and the card: several threads fill them, or empty them, piece by piece.

Panels whose pages have been pinned meanwhile (`pinning`) come straight from there.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, pairwise
from typing import Any

import numpy as np

from tilewise.errors import OutOfMemoryError
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

    def __init__(self, memory: Bytes) -> None:
        self.memory = memory
        self.event: Any = None


class Slots:
    """So many slots at most; each is pinned by the thread that first needs it, or before (`prepare`)."""

    def __init__(self, queues: Queues, count: int, nbytes: int) -> None:
        self._queues, self.nbytes = queues, nbytes
        self._fresh = deque(range(count))  # those that are not pinned yet
        self._free: queue.Queue[Slot] = queue.Queue()

    def take(self) -> Slot:
        made = self._make()
        if made is not None:
            return made
        slot = self._free.get()
        if slot.event is not None:
            self._queues.sync(slot.event)
            slot.event = None
        return slot

    def _make(self) -> Slot | None:
        try:
            number = self._fresh.popleft()
        except IndexError:
            return None
        try:
            return Slot(self._queues.pinned(self.nbytes))
        except BaseException:
            self._fresh.append(number)  # who needs one finds out why there is none
            raise

    def give_back(self, slot: Slot) -> None:
        self._free.put(slot)

    def prepare(self) -> bool:
        """Whether one more slot has been pinned before anybody needs it."""
        try:
            made = self._make()
        except OutOfMemoryError:
            return False
        if made is not None:
            self._free.put(made)
        return made is not None


class Panel:
    """A buffer on the card for panels of one operand, and the stream that fills it."""

    def __init__(self, queues: Queues, nbytes: int) -> None:
        self.address = queues.memory(nbytes)
        self.stream = queues.stream()
        self.used: Any = None  # the event after which it may be filled again,
        self.before: Any = None  # and the one after which it had been filled the last time
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

    def fill(
        self, panel: Panel, part: tuple[slice, slice], pool: ThreadPoolExecutor, share: int = 0, shares: int = 1
    ) -> None:
        """Queue one share of a panel: straight from pinned pages, or piece by piece through slots; then its futures say
        when all of them are on their way."""
        count, length, lead = self.lines(part)
        step = max(1, self.slots.nbytes // (lead * self.source.dtype.itemsize))
        here = range(count * share // shares, count * (share + 1) // shares)
        for start, stop in self._straight(panel, part, here, length, lead):
            for top in range(start, stop, step):
                lines = min(step, stop - top)
                panel.futures.append(pool.submit(self._piece, panel, part, top, lines, length, lead))

    def _piece(self, panel: Panel, part: tuple[slice, slice], top: int, count: int, length: int, lead: int) -> None:
        item = self.source.dtype.itemsize
        slot = self.slots.take()
        try:
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
        self, panel: Panel, part: tuple[slice, slice], here: range, length: int, lead: int
    ) -> list[tuple[int, int]]:
        """Queue the lines that lie in pinned pages; where the others begin and end."""
        if self.pages is None:
            return [(here.start, here.stop)]
        first, pitch, item = self._place(part)
        first, width, pitch_to = first + here.start * pitch, length * item, lead * item
        others: list[tuple[int, int]] = []
        for pinned, line, count in self.pages.stretches(first, pitch, width, len(here)):
            top, source = here.start + line, first + line * pitch
            if pinned:
                for at, byte, wide, number in self.pages.runs(source, pitch, width, count):
                    address, host = panel.address + (top + at) * pitch_to + byte, source + at * pitch + byte
                    self.queues.copy_lines_in(host, pitch, wide, number, address, pitch_to, panel.stream)
            elif others and others[-1][1] == top:
                others[-1] = (others[-1][0], top + count)
            else:
                others.append((top, top + count))
        return others

    def _place(self, part: tuple[slice, slice]) -> tuple[int, int, int]:
        """Where a part of an array begins, bytes from line to line, and bytes of an element."""
        array, (rows, cols) = self.source.array, part  # type: ignore[attr-defined]  # pages are an array's
        lines, along = (cols.start, rows.start) if self.source.turned else (rows.start, cols.start)
        pitch = array.strides[1 if self.source.turned else 0]
        return array.ctypes.data + lines * pitch + along * array.itemsize, pitch, array.itemsize

    def reach(self, part: tuple[slice, slice]) -> tuple[int, int]:
        """The addresses of the caller's memory between which a part lies."""
        first, pitch, item = self._place(part)
        count, length, _ = self.lines(part)
        return first, first + (count - 1) * pitch + length * item


class Feeder:
    """A thread that keeps the panels of the coming phases on their way: M's band by band, and with each band a share of
    N's panel for the phase after."""

    def __init__(
        self,
        queues: Queues,
        sides: tuple[Side, Side],
        work: Iterable[Phase],
        band: int,
        threads: int,
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
            panel.before, panel.used = panel.used, event
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
            # N's other buffer is free when the phase before is over, as is the one that M's third band takes
            start = min(len(M.panels) - 1, len(bands)) - 1
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
        """The buffer for a part, and whether it must be filled.

        It is filled when the card is done with it: its stream waits, not the host, so that nothing the host is kept
        busy with keeps the card waiting. The host is one round of the buffers ahead, and no more."""
        with self._turn:
            while (found := self._free(side, part)) is None:
                self._turn.wait()
        number, fresh = found
        panel = side.panels[number]
        if fresh:
            panel.futures = []
            if panel.before is not None:
                self._queues.sync(panel.before)
            if panel.used is not None:
                self._queues.wait(panel.stream, panel.used)
        return panel, fresh

    def _free(self, side: Side, part: tuple[slice, slice]) -> tuple[int, bool] | None:
        if self._stopped:
            raise _Stopped
        return side.ring.find(part)


class _Stopped(Exception):
    """The thread that multiplies wants no more."""
