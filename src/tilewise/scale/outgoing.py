"""Copies rows of finished tiles back from the card.

A band of the tile's buffer is reused once its rows are copied out; the multiplying thread waits for that, band by band.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewise.algebra.dtypes import DType
from tilewise.scale.host import TileFinalizer
from tilewise.scale.schedule import OutputTile
from tilewise.scale.staging import Slots
from tilewise.scale.targets import MatrixTarget

if TYPE_CHECKING:
    from tilewise.scale.queues import Queues

OUT_BYTES = 2**30  # of slots at most; finished rows wait in them to be written during the next tile


@dataclass(frozen=True)
class TileSums:
    """The tile of P on the card: address, leading dimension, the accumulator's dtype, and P's."""

    address: int
    lead: int
    dtype: DType
    result: DType

    @property
    def pitch(self) -> int:
        return self.lead * self.dtype.itemsize

    def row(self, number: int) -> int:
        return self.address + number * self.pitch


class Outgoing:
    """A thread that copies rows to pinned slots, and threads that write them to P."""

    def __init__(self, queues: Queues, P: MatrixTarget, sums: TileSums, nbytes: int, tile: int, threads: int) -> None:
        """`nbytes`: of a slot; `tile`: of a whole tile of P."""
        self.queues, self.target, self.sums = queues, P, sums
        self.stream = queues.stream(urgent=True)
        self.slots = Slots(queues, min(tile, OUT_BYTES) // nbytes + 2, nbytes)
        self.nbytes = nbytes
        self._band_events: dict[int, queue.Queue[Any]] = {}  # per band, the event after which its memory is free
        self._pieces_left: dict[int, int] = {}  # per tile, pieces that are not written yet
        self._lock = threading.Lock()
        self._jobs: queue.Queue[Any] = queue.Queue()
        self._pool = ThreadPoolExecutor(threads, "tilewise writer", initializer=self.queues.enter)
        self._thread = threading.Thread(target=self._run, name="tilewise outgoing", daemon=True)
        self._error: BaseException | None = None
        self._writes: list[Future[None]] = []
        self._finish: Callable[[OutputTile], None] = lambda tile: None

    def writing_to(self, finalizer: TileFinalizer) -> Outgoing:
        self._finish = finalizer.take
        return self

    def __enter__(self) -> Outgoing:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._jobs.put(None)
        self._thread.join()
        self._pool.shutdown(cancel_futures=kind is not None)
        if kind is None:
            self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error
        for write in self._writes:
            if write.done():
                write.result()
        self._writes = [write for write in self._writes if not write.done()]

    def await_band(self, band: int, stream: Any) -> None:
        """Let the stream wait until the previous contents of a band are copied out."""
        waiting = self._band_events.pop(band, None)
        if waiting is not None:
            event = waiting.get()
            self._raise()
            self.queues.wait(stream, event)

    def send(self, tile: OutputTile, here: slice, band: int, event: Any) -> None:
        """Queue rows `here` of the tile, which are ready after `event`."""
        taken: queue.Queue[Any] = queue.Queue()
        self._band_events[band] = taken
        last = here.stop == tile.shape[0]
        with self._lock:
            # one more until the last band
            self._pieces_left[tile.number] = self._pieces_left.get(tile.number, 1) + 1 - last
        self._jobs.put((tile, here, event, taken))

    def _run(self) -> None:
        self.queues.enter()
        while (job := self._jobs.get()) is not None:
            tile, here, event, taken = job
            try:
                if self._error is None:
                    self.queues.wait(self.stream, event)
                    self._send_pieces(tile, here)
                    taken.put(self.queues.record(self.stream))
                    continue
            except BaseException as error:  # the thread that multiplies raises it
                self._error = error
            taken.put(None)

    def _send_pieces(self, tile: OutputTile, here: slice) -> None:
        width = tile.shape[1] * self.sums.result.itemsize
        step = max(1, self.nbytes // width)
        tops = range(here.start, here.stop, step)
        with self._lock:
            self._pieces_left[tile.number] += len(tops) - 1
        for top in tops:
            rows = min(step, here.stop - top)
            slot = self.slots.take()
            memory = self.slots.memory(slot)[: rows * width]
            self.queues.copy_out(self.sums.row(top), self.sums.pitch, width, rows, memory, self.stream)
            event = self.queues.record(self.stream)
            view = memory.view(self.sums.result.numpy).reshape(rows, -1)
            self._writes.append(self._pool.submit(self._write, tile, top, view, slot, event))

    def _write(self, tile: OutputTile, top: int, view: Any, slot: Any, event: Any) -> None:
        try:
            self.queues.sync(event)
            start = tile.rows.start + top
            self.target.write(slice(start, start + len(view)), tile.cols, view)
        except BaseException as error:
            self._error = error
            raise
        finally:
            self.slots.give_back(slot)
        with self._lock:
            self._pieces_left[tile.number] -= 1
            over = self._pieces_left[tile.number] == 0
        if over:
            self._finish(tile)
