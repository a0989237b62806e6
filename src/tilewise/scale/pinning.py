"""Pins pages of the caller's operands, so that panels are copied directly from there, and populates the pages of P.

A copy through pinned slots moves every byte three times through host memory, one from pinned pages once. But pinning
blocks all other driver calls, and unpinning takes nearly as long. So only the share that exceeds the rate of slots is
pinned, and before the first product: during products pinning took several times as long.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.scale.sources import ArraySource, MatrixSource
from tilewise.system.memory import PAGE, are_resident, fault_in

if TYPE_CHECKING:
    from tilewise.scale.queues import Queues

CHUNK = 2**29  # bytes per registration; a copy must not cross its end
WORTH = 2**30  # bytes of an operand from which pinning is worthwhile
POPULATE_CHUNK = 2**21  # one huge page; populating it blocks allocations of other threads


def owned_bytes(array: Array) -> tuple[int, int] | None:
    """The address range of a contiguous matrix in memory owned by NumPy; None for files and foreign memory."""
    owner: Any = array
    while isinstance(owner, np.ndarray) and not owner.flags.owndata:
        owner = owner.base
    if not isinstance(owner, np.ndarray) or isinstance(owner, np.memmap) or array.ndim != 2 or array.size == 0:
        return None
    if min(array.strides) != array.itemsize or max(array.strides) < array.itemsize * min(array.shape):
        return None
    return np.lib.array_utils.byte_bounds(array)


class Pages:
    """The pages of one operand, of which a share is pinned, chunk by chunk."""

    def __init__(self, queues: Queues, low: int, high: int, share: float = 1.0, chunk: int = CHUNK) -> None:
        self._queues, self._share, self._chunk = queues, share, chunk
        self.low, self.high = -(-low // PAGE) * PAGE, high // PAGE * PAGE
        self.pinned = [False] * max(0, -(-(self.high - self.low) // chunk))

    def pin(self) -> None:
        """Pin evenly spaced chunks, so that the load of the slots stays even."""
        for number in range(len(self.pinned)):
            if int((number + 1) * self._share) > int(number * self._share):
                start = self.low + number * self._chunk
                self.pinned[number] = self._queues.pin(start, min(self._chunk, self.high - start))
                if not self.pinned[number]:
                    return  # the driver would refuse the others too

    def hold(self, low: int, high: int) -> bool:
        """Whether these addresses are pinned."""
        chunks = range((low - self.low) // self._chunk, -(-(high - self.low) // self._chunk))
        return self.low <= low and high <= self.high and all(self.pinned[i] for i in chunks)

    def runs_by_pinning(self, first: int, pitch: int, width: int, count: int) -> Iterator[tuple[bool, int, int]]:
        """Split `count` rows into runs (pinned or not, first row, count)."""
        row = 0
        while row < count:
            start, rows = first + row * pitch, 1
            if self.low <= start < self.high:
                end = min(self.high, self.low + ((start - self.low) // self._chunk + 1) * self._chunk)
                rows = max(1, min(count - row, (end - start - width) // pitch + 1))
            yield self.hold(start, start + (rows - 1) * pitch + width), row, rows
            row += rows

    def runs(self, first: int, pitch: int, width: int, count: int) -> Iterator[tuple[int, int, int, int]]:
        """2-D copies that stay within one chunk, as (row, first byte in it, width in bytes, number of rows)."""
        row = 0
        while row < count:
            start = first + row * pitch
            end = self.low + ((start - self.low) // self._chunk + 1) * self._chunk
            whole = min(count - row, (end - start - width) // pitch + 1) if start + width <= end else 0
            if whole:
                yield row, 0, width, whole
                row += whole
            else:
                yield row, 0, end - start, 1
                yield row, end - start, width - (end - start), 1
                row += 1


def pages_of(queues: Queues, source: MatrixSource, share: float) -> Pages | None:
    """The pages of an operand, with the share to be pinned; None if pinning is not worthwhile."""
    if not isinstance(source, ArraySource) or share <= 0:
        return None
    bounds = owned_bytes(source.array)
    return None if bounds is None or bounds[1] - bounds[0] < WORTH else Pages(queues, *bounds, share)


class Background:
    """A thread for each job that, from `start` on, calls it until it returns False or the context ends."""

    def __init__(self, queues: Queues, jobs: list[Callable[[], bool]]) -> None:
        self._queues, self._stop = queues, threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(job,), name="tilewise pages", daemon=True) for job in jobs
        ]

    def start(self) -> None:
        """Start the threads, once."""
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


def page_populator(array: Array) -> Callable[[], bool]:
    """A function, to be called by several threads, that populates one chunk of the pages of a new array. Chunks whose
    first and last page exist are skipped: populating them again would block allocations."""
    bounds = owned_bytes(array)
    low, high = (0, 0) if bounds is None else (-(-bounds[0] // PAGE) * PAGE, bounds[1] // PAGE * PAGE)
    chunks = iter(range(low, high, POPULATE_CHUNK))

    def step() -> bool:
        start = next(chunks, None)
        if start is None:
            return False
        end = min(start + POPULATE_CHUNK, high)
        return are_resident(start, end) or fault_in(start, end)

    return step
