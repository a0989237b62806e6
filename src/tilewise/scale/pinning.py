"""The caller's own pages: some are pinned, so that panels come straight from where they lie, and P's are made ahead.

Copying through pinned slots costs the host three trips to memory for every byte, pinned pages cost one. But pinning
keeps every other call to the driver waiting, and letting go takes nearly as long again. So only so much is pinned as
slots cannot carry, and before anything else is done: beside the products it took several times as long.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.scale.queues import Queues
from tilewise.scale.sources import ArraySource, Source
from tilewise.system.memory import PAGE

Array = np.ndarray[Any, np.dtype[Any]]

CHUNK = 2**29  # bytes that are pinned at a time; a copy may not pass from one such registration to the next
WORTH = 2**30  # bytes of an operand from which on pinning pays
POPULATE_CHUNK = 2**21  # while they are made, no memory can be taken; one huge page
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


class Pages:
    """The whole pages of one operand, of which a share is pinned, chunk by chunk."""

    def __init__(self, queues: Queues, low: int, high: int, share: float = 1.0, chunk: int = CHUNK) -> None:
        self._queues, self._share, self._chunk = queues, share, chunk
        self.low, self.high = -(-low // PAGE) * PAGE, high // PAGE * PAGE
        self.pinned = [False] * max(0, -(-(self.high - self.low) // chunk))

    def pin(self) -> None:
        """Every so many chunks one, so that slots have about as much to carry all the time."""
        for number in range(len(self.pinned)):
            if int((number + 1) * self._share) > int(number * self._share):
                start = self.low + number * self._chunk
                self.pinned[number] = self._queues.pin(start, min(self._chunk, self.high - start))
                if not self.pinned[number]:
                    return  # the system will refuse the others too

    def hold(self, low: int, high: int) -> bool:
        """Whether these addresses are pinned by now."""
        chunks = range((low - self.low) // self._chunk, -(-(high - self.low) // self._chunk))
        return self.low <= low and high <= self.high and all(self.pinned[i] for i in chunks)

    def stretches(self, first: int, pitch: int, width: int, count: int) -> Iterator[tuple[bool, int, int]]:
        """Lines as (whether they are pinned, the first of them, and how many)."""
        line = 0
        while line < count:
            start, lines = first + line * pitch, 1
            if self.low <= start < self.high:
                end = min(self.high, self.low + ((start - self.low) // self._chunk + 1) * self._chunk)
                lines = max(1, min(count - line, (end - start - width) // pitch + 1))
            yield self.hold(start, start + (lines - 1) * pitch + width), line, lines
            line += lines

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


def pages_of(queues: Queues, source: Source, share: float) -> Pages | None:
    """The pages of an operand, of which such a share is to be pinned."""
    if not isinstance(source, ArraySource) or share <= 0:
        return None
    bounds = owned_bytes(source.array)
    return None if bounds is None or bounds[1] - bounds[0] < WORTH else Pages(queues, *bounds, share)


class Background:
    """A thread for each job, which takes step after step, from `start` on, until there is no more or the end."""

    def __init__(self, queues: Queues, jobs: list[Callable[[], bool]]) -> None:
        self._queues, self._stop = queues, threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(job,), name="tilewise pages", daemon=True) for job in jobs
        ]

    def start(self) -> None:
        """The first call counts."""
        for thread in self._threads:
            if thread.ident is None:
                thread.start()

    def __enter__(self) -> Background:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _run(self, step: Callable[[], bool]) -> None:
        self._queues.enter()
        while not self._stop.is_set() and step():
            pass


def make_pages(low: int, high: int) -> bool:
    """Make the pages of fresh memory, so that who writes there need not; False where the system cannot."""
    libc = _libc()
    if not hasattr(libc, "madvise"):
        return False
    return not libc.madvise(ctypes.c_void_p(low), ctypes.c_size_t(high - low), POPULATE_WRITE)


@lru_cache(maxsize=1)
def _libc() -> Any:
    return ctypes.CDLL(None) if os.name == "posix" else None


def are_there(low: int, high: int) -> bool:
    """Whether the first and the last page of some memory have been made."""
    libc, there = _libc(), ctypes.c_ubyte(0)
    if not hasattr(libc, "mincore"):
        return False
    pages = (low, high - PAGE)
    return all(
        not libc.mincore(ctypes.c_void_p(p), ctypes.c_size_t(PAGE), ctypes.byref(there)) and there.value & 1
        for p in pages
    )


def populating(array: Array) -> Callable[[], bool]:
    """Steps, for several threads, that make the pages of a fresh array. One that has been written to has them: looking
    through all of them takes a while, too, in which nobody can take memory."""
    bounds = owned_bytes(array)
    low, high = (0, 0) if bounds is None else (-(-bounds[0] // PAGE) * PAGE, bounds[1] // PAGE * PAGE)
    chunks = iter(range(low, high, POPULATE_CHUNK))

    def step() -> bool:
        start = next(chunks, None)
        if start is None:
            return False
        end = min(start + POPULATE_CHUNK, high)
        return are_there(start, end) or make_pages(start, end)

    return step
