"""The caller's own pages, pinned in the background: once they are, panels come straight from where they lie.

Copying through pinned slots costs the host three trips to memory for every byte, pinned pages cost one. But pinning
takes as long as reading the pages once, so nobody waits for it: a thread pins chunk after chunk, and panels that lie in
pages not yet pinned go through slots. It pays where operands are read several times.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tilewise.scale.queues import Queues
from tilewise.scale.sources import ArraySource, Source

Array = np.ndarray[Any, np.dtype[Any]]

CHUNK = 2**28  # bytes that are pinned at a time; a copy may not pass from one such registration to the next
PAGE = 4096
WORTH = 2**30  # bytes of an operand from which on pinning pays,
READS = 2  # if it is read so many times
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


class Pages:
    """The whole pages of one operand, pinned from the first to the last."""

    def __init__(self, queues: Queues, low: int, high: int, chunk: int = CHUNK) -> None:
        self._queues, self._chunk = queues, chunk
        self.low, self.high = -(-low // PAGE) * PAGE, high // PAGE * PAGE
        self.pinned_to = self.low

    def pin_more(self) -> bool:
        """One more chunk; whether there is yet another."""
        size = min(self._chunk, self.high - self.pinned_to)
        if size <= 0 or not self._queues.pin(self.pinned_to, size):
            return False
        self.pinned_to += size
        return self.pinned_to < self.high

    def hold(self, low: int, high: int) -> bool:
        """Whether these addresses are pinned by now."""
        return self.low <= low and high <= self.pinned_to

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


def pages_of(queues: Queues, source: Source, times: float) -> Pages | None:
    """The pages of an operand that is read so many times, where pinning them pays."""
    if not isinstance(source, ArraySource) or times < READS:
        return None
    bounds = owned_bytes(source.array)
    return None if bounds is None or bounds[1] - bounds[0] < WORTH else Pages(queues, *bounds)


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
