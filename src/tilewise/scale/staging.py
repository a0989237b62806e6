"""Pinned slots between the caller's memory and the card, filled and emptied by several threads.

Panels in pinned pages (`pinning`) are copied directly.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from tilewise.errors import OutOfMemoryError
from tilewise.scale.panels import Part, Phase
from tilewise.scale.pinning import Pages
from tilewise.scale.sources import MatrixSource

if TYPE_CHECKING:
    from tilewise.scale.queues import Bytes, Queues

Job = Callable[[], None]

ALIGN = 128  # bytes to which rows on the card are aligned, so that no kernel realigns them


def lead_of(length: int, itemsize: int) -> int:
    """The aligned leading dimension of rows of `length`, in elements."""
    step = ALIGN // itemsize
    return -(-length // step) * step


class SlotsStopped(Exception):
    """Raised by `Slots.take` after `Slots.stop`."""


class Slot:
    """Pinned memory, allocated on first use, and the event after which it is free again."""

    def __init__(self) -> None:
        self.memory: Bytes | None = None
        self.event: Any = None


class Slots:
    """A pool of slots. Each is pinned by the thread that first writes to it, or before, by `prepare`."""

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
            self.stop()  # wakes the next waiting thread too
            raise SlotsStopped
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
        """Wake the threads that wait for a slot."""
        self._free.put(None)

    def prepare(self) -> bool:
        """Pin one more unused slot; False if there is none."""
        try:
            slot = self._fresh.popleft()
        except IndexError:
            return False
        try:
            self.memory(slot)
        except OutOfMemoryError:  # raised later by the thread that needs it
            self._fresh.append(slot)
            return False
        self._free.put(slot)
        return True


class Ring:
    """A ring of buffers of one operand: the part in each, and the number of phases that still need it."""

    def __init__(self, count: int) -> None:
        self.keys: list[Part | None] = [None] * count
        self.users = [0] * count
        self.latest = -1

    def find(self, part: Part) -> tuple[int, bool] | None:
        """(buffer, whether it must be filled), or None while none is free."""
        if self.latest >= 0 and self.keys[self.latest] == part:
            self.users[self.latest] += 1
            return self.latest, False
        number = (self.latest + 1) % len(self.keys)
        if self.users[number]:
            return None
        self.keys[number], self.users[number], self.latest = part, 1, number
        return number, True


class Panel:
    """A buffer on the card for panels of one operand, and the stream that fills it."""

    def __init__(self, queues: Queues, nbytes: int) -> None:
        self.address = queues.memory(nbytes)
        self.stream = queues.stream()
        self.last_use: Any = None  # event after the last product that reads it
        self.previous_use: Any = None  # the same of its previous contents


class StagedOperand:
    """One operand and its buffers on the card."""

    def __init__(
        self,
        queues: Queues,
        source: MatrixSource,
        slots: Slots,
        count: int,
        nbytes: int,
        pages: Pages | None = None,
    ) -> None:
        self.queues, self.source, self.slots, self.pages = queues, source, slots, pages
        self.ring = Ring(count)
        self.panels = [Panel(queues, nbytes) for _ in range(count)]

    def pitched(self, part: Part) -> tuple[int, int, int]:
        """(rows, length, leading dimension) of a panel on the card; of columns if it is transposed."""
        rows, cols = (p.stop - p.start for p in part)
        count, length = (cols, rows) if self.source.transposed else (rows, cols)
        return count, length, lead_of(length, self.source.dtype.itemsize)

    def fill(
        self,
        panel: Panel,
        part: Part,
        pool: ThreadPoolExecutor,
        enqueue: Callable[[Job], None],
        share: int = 0,
        shares: int = 1,
    ) -> None:
        """Put one share of a panel into the queue as jobs: each starts a copy from pinned pages, or from a slot that
        the pool fills meanwhile."""
        count, length, lead = self.pitched(part)
        step = max(1, self.slots.nbytes // (lead * self.source.dtype.itemsize))
        here = range(count * share // shares, count * (share + 1) // shares)
        for start, stop in self._queue_pinned_copies(panel, part, here, length, lead, enqueue):
            for top in range(start, stop, step):
                height = min(step, stop - top)
                slot = self.slots.take()
                filled = pool.submit(self._read, slot, part, top, height, length, lead)
                enqueue(partial(self._send, slot, filled, panel, top * lead * self.source.dtype.itemsize))

    def _read(self, slot: Slot, part: Part, top: int, count: int, length: int, lead: int) -> Bytes:
        memory = self.slots.memory(slot)[: count * lead * self.source.dtype.itemsize]
        view = memory.view(self.source.dtype.numpy).reshape(count, lead)[:, :length]
        rows, cols = part
        if self.source.transposed:
            self.source.read(rows, slice(cols.start + top, cols.start + top + count), view.T)
        else:
            self.source.read(slice(rows.start + top, rows.start + top + count), cols, view)
        return memory

    def _send(self, slot: Slot, filled: Future[Bytes], panel: Panel, offset: int) -> None:
        self.queues.copy_in(filled.result(), panel.address + offset, panel.stream)
        slot.event = self.queues.record(panel.stream)
        self.slots.give_back(slot)

    def _queue_pinned_copies(
        self,
        panel: Panel,
        part: Part,
        here: range,
        length: int,
        lead: int,
        enqueue: Callable[[Job], None],
    ) -> list[tuple[int, int]]:
        """Queue copies of the rows in pinned pages; returns the ranges of the other rows."""
        if self.pages is None:
            return [(here.start, here.stop)]
        array, (rows, cols) = self.source.array, part  # type: ignore[attr-defined]  # pages are an array's
        width, pitch_to = length * array.itemsize, lead * array.itemsize
        outer, inner = (cols.start, rows.start) if self.source.transposed else (rows.start, cols.start)
        pitch = array.strides[1 if self.source.transposed else 0]
        first = array.ctypes.data + (outer + here.start) * pitch + inner * array.itemsize
        others: list[tuple[int, int]] = []
        for pinned, row, count in self.pages.runs_by_pinning(first, pitch, width, len(here)):
            top, source = here.start + row, first + row * pitch
            if pinned:
                for at, byte, wide, number in self.pages.runs(source, pitch, width, count):
                    address, host = panel.address + (top + at) * pitch_to + byte, source + at * pitch + byte
                    copy = partial(self.queues.copy_pitched_in, host, pitch, wide, number, address, pitch_to)
                    enqueue(partial(copy, panel.stream))
            elif others and others[-1][1] == top:
                others[-1] = (others[-1][0], top + count)
            else:
                others.append((top, top + count))
        return others


class Feeder:
    """A thread that feeds the panels of the next phases: M's band by band, and with each band a share of N's panel for
    the following phase.

    `ready` has jobs, to be run in order, and bands to be multiplied after the jobs before them. A single thread calls
    the driver: several would wait for each other at the driver's lock.
    """

    def __init__(
        self,
        queues: Queues,
        sides: tuple[StagedOperand, StagedOperand],
        work: Iterable[Phase],
        band: int,
        threads: int,
    ) -> None:
        self._queues, self._sides, self._work, self._band = queues, sides, work, band
        self._pool = ThreadPoolExecutor(threads, "tilewise staging", initializer=queues.enter)
        self._lock = threading.Condition()
        self._stopped = False
        self.ready: queue.Queue[Any] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="tilewise feeder", daemon=True)

    def __enter__(self) -> Feeder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._stopped = True
            self._lock.notify_all()
        for side in self._sides:
            side.slots.stop()
        self._thread.join()
        self._pool.shutdown(cancel_futures=True)

    def release(self, side: StagedOperand, panel: Panel, event: Any) -> None:
        """Mark a panel as free after `event`; called when the product that reads it is queued."""
        with self._lock:
            panel.previous_use, panel.last_use = panel.last_use, event
            side.ring.users[side.panels.index(panel)] -= 1
            self._lock.notify_all()

    def _run(self) -> None:
        try:
            self._queues.enter()
            self._feed()
        except SlotsStopped:
            return
        except BaseException as error:  # raised by the thread that multiplies
            self.ready.put(error)

    def _feed(self) -> None:
        M, N = self._sides
        next_n: tuple[Panel, bool] | None = None
        for phase, following in pairwise(chain(self._work, (None,))):
            assert phase is not None
            if next_n is None:
                next_n = self._panel(N, phase.part_n)
                N.fill(next_n[0], phase.part_n, self._pool, self.ready.put)
            panel_n, next_n = next_n[0], None
            bands = phase.bands(self._band)
            # N's other buffer is free when the previous phase is over, as is the one of M's third band
            start = min(len(M.panels) - 1, len(bands)) - 1
            for number, rows in enumerate(bands):
                part = (rows, phase.ks)
                panel_m, fresh = self._panel(M, part)
                if fresh:
                    M.fill(panel_m, part, self._pool, self.ready.put)
                self.ready.put((phase, rows, (panel_m, panel_n)))
                if following is not None and number >= start:
                    next_n = next_n or self._panel(N, following.part_n)
                    if next_n[1]:
                        share = number - start, len(bands) - start
                        N.fill(next_n[0], following.part_n, self._pool, self.ready.put, *share)
        self.ready.put(None)

    def _panel(self, side: StagedOperand, part: Part) -> tuple[Panel, bool]:
        """The buffer for a part, and whether it must be filled.

        The panel's stream, not the host, waits until the card is done with it, so that the card never waits for the
        host. The host is at most one round of the buffers ahead."""
        with self._lock:
            while (found := self._free(side, part)) is None:
                self._lock.wait()
        number, fresh = found
        panel = side.panels[number]
        if fresh and panel.previous_use is not None:
            self._queues.sync(panel.previous_use)
        if fresh and panel.last_use is not None:
            self.ready.put(partial(self._queues.wait, panel.stream, panel.last_use))
        return panel, fresh

    def _free(self, side: StagedOperand, part: Part) -> tuple[int, bool] | None:
        if self._stopped:
            raise SlotsStopped
        return side.ring.find(part)
