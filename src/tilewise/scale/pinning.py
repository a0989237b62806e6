"""The caller's own pages, pinned in the background: once they are, panels come straight from where they lie.

Copying through pinned slots costs the host three trips to memory for every byte, pinned pages cost one. But pinning
takes as long as reading the pages once, so nobody waits for it: a thread pins chunk after chunk, and panels that lie in
pages not yet pinned go through slots. It pays where operands are read several times. Letting go takes time as well, so
that is done in the background too, as soon as nobody will read a chunk again.
"""

from __future__ import annotations

import ctypes
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from tilewise.errors import EngineError
from tilewise.scale.queues import Queues

Array = np.ndarray[Any, np.dtype[Any]]

CHUNK = 2**28  # bytes that are pinned at a time; a copy may not pass from one such registration to the next
PAGE = 4096
NEVER = 2**62
WORTH = 2**30  # bytes of an array from which on pinning pays,
READS = 2  # if operands are read so many times
WAIT = 0.02  # seconds between looks at whether to stop
POPULATE_CHUNK = 2**26
POPULATE_WRITE = 23  # Linux's MADV_POPULATE_WRITE: pages are made, what they hold is not changed


def owned_bytes(array: Array) -> tuple[int, int] | None:
    """Where an array of whole lines begins and ends, in memory of NumPy's own; None for files and strangers' memory."""
    owner: Any = array
    while isinstance(owner, np.ndarray) and not owner.flags.owndata:
        owner = owner.base
    if not isinstance(owner, np.ndarray) or isinstance(owner, np.memmap) or array.ndim != 2 or array.size == 0:
        return None
    if min(array.strides) != array.itemsize or max(array.strides) < array.itemsize * min(array.shape):
        return None
    return np.lib.array_utils.byte_bounds(array)


def span(array: Array, part: tuple[slice, slice]) -> tuple[int, int]:
    """The addresses between which a part of an array of whole lines lies."""
    (rows, cols), (down, along) = part, array.strides
    first = array.ctypes.data + rows.start * down + cols.start * along
    return first, first + (rows.stop - 1 - rows.start) * down + (cols.stop - 1 - cols.start) * along + array.itemsize


class Pages:
    """The whole pages of one array, pinned chunk by chunk, and who uses a chunk first and last."""

    def __init__(self, queues: Queues, low: int, high: int, chunk: int = CHUNK) -> None:
        self._queues, self._chunk = queues, chunk
        self.low, self.high = -(-low // PAGE) * PAGE, high // PAGE * PAGE
        count = max(0, -(-(self.high - self.low) // chunk))
        self.pinned = [False] * count
        self.first = np.full(count, NEVER)  # the phase that uses a chunk first,
        self.last = np.full(count, NEVER)  # and the one after which nobody does

    def used(self, phase: int, low: int, high: int) -> None:
        """Phases are told in their order."""
        chunks = self._chunks(low, high)
        here = slice(chunks.start, chunks.stop)
        self.first[here] = np.minimum(self.first[here], phase)
        self.last[here] = phase

    def _chunks(self, low: int, high: int) -> range:
        return range(max(0, low - self.low) // self._chunk, -(-(min(high, self.high) - self.low) // self._chunk))

    def pin(self, number: int) -> bool:
        """Whether the system let it."""
        start = self.low + number * self._chunk
        self.pinned[number] = self._queues.pin(start, min(self._chunk, self.high - start))
        return self.pinned[number]

    def unpin(self, number: int) -> None:
        if self.pinned[number]:
            self.pinned[number] = False
            self._queues.unpin(self.low + number * self._chunk)

    def hold(self, low: int, high: int) -> bool:
        """Whether these addresses are pinned by now."""
        return self.low <= low and high <= self.high and all(self.pinned[i] for i in self._chunks(low, high))

    def runs(self, first: int, pitch: int, width: int, count: int) -> Iterator[tuple[int, int, int, int]]:
        """Lines as (line, byte of it, bytes, lines) that each lie within one chunk."""
        line = 0
        while line < count:
            start = first + line * pitch
            end = self.low + ((start - self.low) // self._chunk + 1) * self._chunk
            whole = min(count - line, (end - start - width) // pitch + 1) if start + width <= end else 0
            if whole:
                yield line, 0, width, whole
                line += whole
            else:
                yield line, 0, end - start, 1
                yield line, end - start, width - (end - start), 1
                line += 1


def pages_of(queues: Queues, array: Array) -> Pages | None:
    """The pages of an array, where pinning them pays."""
    bounds = owned_bytes(array)
    return None if bounds is None or bounds[1] - bounds[0] < WORTH else Pages(queues, *bounds)


class Pinning:
    """What is pinned for one product, and when: each step of a background job takes the chunk that is needed next."""

    def __init__(self, queues: Queues, pages: Iterable[Pages | None]) -> None:
        self._queues = queues
        self.pages = [p for p in dict.fromkeys(pages) if p is not None]
        chunks = [(first, p, i) for p in self.pages for i, first in enumerate(p.first.tolist()) if first < NEVER]
        self._coming = iter(sorted(chunks, key=lambda chunk: chunk[0]))
        self._over: dict[int, list[tuple[Pages, int]]] = {}
        for p in self.pages:
            for i, last in enumerate(p.last.tolist()):
                self._over.setdefault(last, []).append((p, i))
        self._events: queue.Queue[tuple[int, Any]] = queue.Queue()

    def pin_more(self) -> bool:
        """One more chunk; whether to go on."""
        chunk = next(self._coming, None)
        return chunk is not None and chunk[1].pin(chunk[2])

    def over(self, phase: int, event: Any) -> None:
        """A phase has been queued, and will be over after `event`."""
        if phase in self._over:
            self._events.put((phase, event))

    def unpin_more(self) -> bool:
        try:
            phase, event = self._events.get(timeout=WAIT)
        except queue.Empty:
            return True
        try:
            self._queues.sync(event)
            for pages, number in self._over[phase]:
                pages.unpin(number)
        except EngineError:  # the card failed: the thread that multiplies says so, and `close` lets go
            return False
        return True


class Background:
    """A thread for each job, which takes step after step until there is no more, or until it is told to stop."""

    def __init__(self, enter: Callable[[], None], jobs: list[Callable[[], bool]]) -> None:
        self._enter = enter
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(job,), name="tilewise pinning", daemon=True) for job in jobs
        ]

    def __enter__(self) -> Background:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, step: Callable[[], bool]) -> None:
        self._enter()
        while not self._stop.is_set() and step():
            pass


def populating(array: Array) -> Callable[[], bool]:
    """Steps, for several threads, that make the pages of a fresh array: who writes its rows later need not."""
    bounds = owned_bytes(array)
    low, high = (0, 0) if bounds is None else (-(-bounds[0] // PAGE) * PAGE, bounds[1] // PAGE * PAGE)
    libc = ctypes.CDLL(None, use_errno=True)
    chunks = iter(range(low, high, POPULATE_CHUNK) if hasattr(libc, "madvise") else ())

    def step() -> bool:
        start = next(chunks, None)
        if start is None:
            return False
        nbytes = min(POPULATE_CHUNK, high - start)
        return not libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(nbytes), POPULATE_WRITE)

    return step
