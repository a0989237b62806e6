"""The caller's own pages, pinned where they lie, piece by piece and in the background, before they are first needed.

What is pinned the card reads and writes by itself: no thread copies, and memory is passed once instead of four times.
It is worth it for arrays of many megabytes, whose pages are huge; files that are mapped, and small arrays, go through
slots. A copy must stay within what was pinned at once, so copies are cut where segments end.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from tilewise.errors import OutOfMemoryError
from tilewise.scale.queues import Queues

Array = np.ndarray[Any, np.dtype[Any]]

SEGMENT = 2**28  # bytes that are pinned at a time
PAGE = 4096
LEAST = 2**26  # bytes of an array that is worth it
THREADS = 4


def whole(array: Array) -> Array:
    """The array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class Pins:
    """Which segments of which arrays are pinned, or on the way to it."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self._pool = ThreadPoolExecutor(THREADS, "tilewise pins", initializer=queues.enter)
        self._lock = threading.Lock()
        self._segments: dict[tuple[int, int], Future[bool]] = {}

    def takes(self, array: Any, least: int | None = None) -> bool:
        """Whether this array's memory can be pinned: ordinary memory, rows side by side, large; tried on its start."""
        root = whole(array)
        plain = not isinstance(root, np.memmap) and (root.base is None) and array.ndim == 2
        if not plain or root.nbytes < (LEAST if least is None else least):
            return False
        return self.ensure(root[(slice(0, 1),) * root.ndim])[0].result()

    def ensure(self, part: Array) -> list[Future[bool]]:
        """Futures of the segments that hold a part of an array."""
        root = whole(part)
        first, last = extent(part)
        low = root.ctypes.data // PAGE * PAGE
        high = -(-(root.ctypes.data + root.nbytes) // PAGE) * PAGE
        found = []
        with self._lock:
            for number in range((first - low) // SEGMENT, -(-(last - low) // SEGMENT)):
                key = (low, number)
                if key not in self._segments:
                    start = low + number * SEGMENT
                    nbytes = min(SEGMENT, high - start)
                    self._segments[key] = self._pool.submit(self._queues.pin, start, nbytes)
                found.append(self._segments[key])
        return found

    def pieces(self, part: Array) -> Iterator[tuple[int, int, int, int]]:
        """Rows of bytes that lie in one segment each, when they are pinned: (row, rows, first byte of them, bytes)."""
        for segment in self.ensure(part):
            if not segment.result():
                raise OutOfMemoryError("pages of an array could not be pinned for the card: pass a smaller memory=")
        low = whole(part).ctypes.data // PAGE * PAGE
        (rows, cols), pitch = part.shape, part.strides[0]
        width, row = cols * part.itemsize, 0
        while row < rows:
            start = part.ctypes.data + row * pitch
            left = SEGMENT - (start - low) % SEGMENT  # bytes to the end of the segment
            if width <= left:
                count = min(rows - row, (left - width) // pitch + 1) if pitch else rows - row
                yield row, count, 0, width
                row += count
            else:  # a row that goes on in the next segment
                yield row, 1, 0, left
                yield row, 1, left, width - left
                row += 1

    def close(self) -> None:
        """Let go of all of them; what uses them must be over."""
        self._pool.shutdown(cancel_futures=True)
        done = [
            low + number * SEGMENT
            for (low, number), pinned in self._segments.items()
            if not pinned.cancelled() and pinned.exception() is None and pinned.result()
        ]
        with ThreadPoolExecutor(2 * THREADS, initializer=self._queues.enter) as pool:
            list(pool.map(self._queues.unpin, done))


def extent(part: Array) -> tuple[int, int]:
    """The first byte of a part of a matrix, and the one after its last."""
    start = part.ctypes.data
    reach = [(size - 1) * stride for size, stride in zip(part.shape, part.strides, strict=True)]
    return start + sum(r for r in reach if r < 0), start + sum(r for r in reach if r > 0) + part.itemsize
