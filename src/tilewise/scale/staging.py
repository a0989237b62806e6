"""Pinned slots between the caller's memory and the card: several threads fill them, or empty them, piece by piece.

Panels whose pages have been pinned meanwhile (`pinning`) come straight from there.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain, pairwise
from typing import Any

import numpy as np

from tilewise.errors import OutOfMemoryError
from tilewise.scale.panels import Phase, Ring
from tilewise.scale.pinning import Pages
from tilewise.scale.queues import Bytes, Queues
from tilewise.scale.sources import Source

Array = np.ndarray[Any, np.dtype[Any]]
Job = Callable[[], None]

ALIGN = 128  # bytes that lines on the card begin on, so that every kernel takes them as they are


def lead_of(length: int, itemsize: int) -> int:
    """Elements from line to line."""
    step = ALIGN // itemsize
    return -(-length // step) * step


class Stopped(Exception):
    """Nobody will need any more."""


class Slot:
    """Pinned memory, once it is made, and the event after which it is free again."""

    def __init__(self) -> None:
        self.memory: Bytes | None = None
        self.event: Any = None


class Slots:
    """So many slots. Each is pinned by the thread that first writes to it, or before (`prepare`)."""

    def __init__(self, queues: Queues, count: int, nbytes: int) -> None:
        self._queues, self.nbytes = queues, nbytes
        self._fresh = deque(Slot() for _ in range(count))
        self._free: queue.Queue[Slot | None] = queue.Queue()

    def take(self) -> Slot:
        try:
            return self._fresh.popleft()
        except IndexError:
            slot = self._free.get()
        if slot is None:
            self.stop()  # for the next one, too
            raise Stopped
        if slot.event is not None:
            self._queues.sync(slot.event)
            slot.event = None
        return slot

    def memory(self, slot: Slot) -> Bytes:
        if slot.memory is None:
            slot.memory = self._queues.pinned(self.nbytes)
        return slot.memory

    def give_back(self, slot: Slot) -> None:
        self._free.put(slot)

    def stop(self) -> None:
        """Who waits for a slot need not any longer."""
        self._free.put(None)

    def prepare(self) -> bool:
        """Whether one more slot has been pinned before anybody needs it."""
        try:
            slot = self._fresh.popleft()
        except IndexError:
            return False
        try:
            self.memory(slot)
        except OutOfMemoryError:  # who needs it will say so
            self._fresh.append(slot)
            return False
        self._free.put(slot)
        return True


class Panel:
    """A buffer on the card for panels of one operand, and the stream that fills it."""

    def __init__(self, queues: Queues, nbytes: int) -> None:
        self.address = queues.memory(nbytes)
        self.stream = queues.stream()
        self.used: Any = None  # the event after which it may be filled again,
        self.before: Any = None  # and the one after which it was filled the last time


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
        self,
        panel: Panel,
        part: tuple[slice, slice],
        pool: ThreadPoolExecutor,
        queue_up: Callable[[Job], None],
        share: int = 0,
        shares: int = 1,
    ) -> None:
        """One share of a panel, as jobs in order: each queues a copy straight from pinned pages, or from a slot, which
        the pool is filling meanwhile."""
        count, length, lead = self.lines(part)
        step = max(1, self.slots.nbytes // (lead * self.source.dtype.itemsize))
        here = range(count * share // shares, count * (share + 1) // shares)
        for start, stop in self._straight(panel, part, here, length, lead, queue_up):
            for top in range(start, stop, step):
                lines = min(step, stop - top)
                slot = self.slots.take()
                filled = pool.submit(self._read, slot, part, top, lines, length, lead)
                queue_up(partial(self._send, slot, filled, panel, top * lead * self.source.dtype.itemsize))

    def _read(self, slot: Slot, part: tuple[slice, slice], top: int, count: int, length: int, lead: int) -> Bytes:
        memory = self.slots.memory(slot)[: count * lead * self.source.dtype.itemsize]
        view = memory.view(self.source.dtype.numpy).reshape(count, lead)[:, :length]
        rows, cols = part
        if self.source.turned:
            self.source.read(rows, slice(cols.start + top, cols.start + top + count), view.T)
        else:
            self.source.read(slice(rows.start + top, rows.start + top + count), cols, view)
        return memory

    def _send(self, slot: Slot, filled: Future[Bytes], panel: Panel, offset: int) -> None:
        self.queues.copy_in(filled.result(), panel.address + offset, panel.stream)
        slot.event = self.queues.record(panel.stream)
        self.slots.give_back(slot)

    def _straight(
        self,
        panel: Panel,
        part: tuple[slice, slice],
        here: range,
        length: int,
        lead: int,
        queue_up: Callable[[Job], None],
    ) -> list[tuple[int, int]]:
        """The lines that lie in pinned pages; where the others begin and end."""
        if self.pages is None:
            return [(here.start, here.stop)]
        array, (rows, cols) = self.source.array, part  # type: ignore[attr-defined]  # pages are an array's
        width, pitch_to = length * array.itemsize, lead * array.itemsize
        lines, along = (cols.start, rows.start) if self.source.turned else (rows.start, cols.start)
        pitch = array.strides[1 if self.source.turned else 0]
        first = array.ctypes.data + (lines + here.start) * pitch + along * array.itemsize
        others: list[tuple[int, int]] = []
        for pinned, line, count in self.pages.stretches(first, pitch, width, len(here)):
            top, source = here.start + line, first + line * pitch
            if pinned:
                for at, byte, wide, number in self.pages.runs(source, pitch, width, count):
                    address, host = panel.address + (top + at) * pitch_to + byte, source + at * pitch + byte
                    copy = partial(self.queues.copy_lines_in, host, pitch, wide, number, address, pitch_to)
                    queue_up(partial(copy, panel.stream))
            elif others and others[-1][1] == top:
                others[-1] = (others[-1][0], top + count)
            else:
                others.append((top, top + count))
        return others


class Feeder:
    """A thread that keeps the panels of the coming phases on their way: M's band by band, and with each band a share of
    N's panel for the phase after.

    `ready` has jobs, to be done in order, and bands to be multiplied after the jobs before them. One thread tells the
    card everything: many would wait for one another at the driver's door.
    """

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
        for side in self._sides:
            side.slots.stop()
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
        except Stopped:
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
                N.fill(coming[0], phase.part_n, self._pool, self.ready.put)
            panel_n, coming = coming[0], None
            bands = phase.bands(self._band)
            # N's other buffer is free when the phase before is over, as is the one that M's third band takes
            start = min(len(M.panels) - 1, len(bands)) - 1
            for number, rows in enumerate(bands):
                part = (rows, phase.ks)
                panel_m, fresh = self._panel(M, part)
                if fresh:
                    M.fill(panel_m, part, self._pool, self.ready.put)
                self.ready.put((phase, rows, (panel_m, panel_n)))
                if following is not None and number >= start:
                    coming = coming or self._panel(N, following.part_n)
                    if coming[1]:
                        share = number - start, len(bands) - start
                        N.fill(coming[0], following.part_n, self._pool, self.ready.put, *share)
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
        if fresh and panel.before is not None:
            self._queues.sync(panel.before)
        if fresh and panel.used is not None:
            self.ready.put(partial(self._queues.wait, panel.stream, panel.used))
        return panel, fresh

    def _free(self, side: Side, part: tuple[slice, slice]) -> tuple[int, bool] | None:
        if self._stopped:
            raise Stopped
        return side.ring.find(part)
