"""Matrices on the card, as launches see them: an address, a layout, a dtype; and the memory they pass through.

A workspace lives for one call. A scratch buffer is kept for the next call on the same stream, because allocating costs
more than a small product.
"""

from __future__ import annotations

import atexit
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

from tilewise.algebra.dtypes import DType
from tilewise.arrays.card import allocate, capturing
from tilewise.problem import Layout, row_major


@dataclass(frozen=True)
class Placed:
    """A stack of matrices on the card."""

    pointer: int
    dtype: DType
    rows: int
    cols: int
    layout: Layout

    def member(self, index: tuple[int, ...]) -> int:
        """The address of one matrix of the stack."""
        offset = sum(i * stride for i, stride in zip(index, self.layout.stack, strict=True))
        return self.pointer + offset * self.dtype.itemsize

    def part(self, top: int, rows: int, left: int, cols: int) -> Placed:
        """Some rows and columns of each."""
        offset = (top * self.layout.row + left * self.layout.col) * self.dtype.itemsize
        return Placed(self.pointer + offset, self.dtype, rows, cols, self.layout)


def workspace(
    rows: int,
    cols: int,
    stack: tuple[int, ...],
    dtype: DType,
    lead: int,
    device: str,
    stream: Any,
    workspaces: ExitStack,
) -> Placed:
    """Fresh memory on the card, freed in stream order when `workspaces` closes."""
    nbytes = max(1, rows * lead * math.prod(stack) * dtype.itemsize)
    buffer = allocate(nbytes, device, stream)
    workspaces.callback(buffer.close, stream)
    layout = row_major(rows, lead, stack)
    return Placed(int(buffer.handle), dtype, rows, cols, Layout(lead, 1, layout.stack))


SCRATCH_LIMIT = 2**30  # bytes of one buffer that are kept; larger ones are allocated each time
KEPT_LIMIT = 4 * SCRATCH_LIMIT  # bytes of all of them
_lock = Lock()
_kept: dict[tuple[str, int, str], Any] = {}


@contextmanager
def scratch(needs: dict[str, int], device: str, stream: Any) -> Iterator[list[Any]]:
    """A buffer of so many bytes for each role, for as long as work that uses them is being queued on `stream`.

    The next call with this stream may get the same ones. While a graph is captured the buffers are the graph's own.
    """
    if capturing(stream):
        with ExitStack() as own:
            yield [_for_one_call(nbytes, device, stream, own) for nbytes in needs.values()]
        return
    with _lock, ExitStack() as own:
        more = sum(nbytes for role, nbytes in needs.items() if not _is_kept(nbytes, role, device, stream))
        if more and more + sum(buffer.size for buffer in _kept.values()) > KEPT_LIMIT:
            _forget(stream)
        yield [_buffer(nbytes, role, device, stream, own) for role, nbytes in needs.items()]


def by_way_of_scratch(
    needs: dict[str, int], make: Callable[[dict[str, int]], Sequence[Callable[[], None]]], device: str, stream: Any
) -> Callable[[], None]:
    """Queues the launches that `make` lays out for the addresses of its buffers: at once where it needs none, and anew
    only when they have moved."""
    if not needs:
        ready = make({})
        return ready[0] if len(ready) == 1 else lambda: _queue(ready)
    prepared: list[tuple[list[Any], Sequence[Callable[[], None]]]] = []  # the buffers and the launches made for them

    def queue() -> None:
        with scratch(needs, device, stream) as buffers:
            if not prepared or any(a is not b for a, b in zip(prepared[0][0], buffers, strict=True)):
                addresses = {role: int(buffer.handle) for role, buffer in zip(needs, buffers, strict=True)}
                prepared[:] = [(buffers, make(addresses))]
            _queue(prepared[0][1])

    return queue


def _queue(launches: Sequence[Callable[[], None]]) -> None:
    for launch in launches:
        launch()


def _is_kept(nbytes: int, role: str, device: str, stream: Any) -> bool:
    kept = _kept.get((device, int(stream.handle), role))
    return nbytes > SCRATCH_LIMIT or (kept is not None and kept.size >= nbytes)


def _buffer(nbytes: int, role: str, device: str, stream: Any, own: ExitStack) -> Any:
    if nbytes > SCRATCH_LIMIT:
        return _for_one_call(nbytes, device, stream, own)
    key = (device, int(stream.handle), role)
    kept = _kept.get(key)
    if kept is None or kept.size < nbytes:
        if kept is not None:
            del _kept[key]
            kept.close(stream)
        kept = _kept[key] = allocate(max(nbytes, 1), device, stream)
    return kept


def _forget(stream: Any) -> None:
    """Free all kept buffers, on a stream that exists: those they were made on may be gone."""
    from cuda.bindings import driver

    driver.cuCtxSynchronize()  # other streams may still use theirs
    while _kept:
        _kept.popitem()[1].close(stream)


@atexit.register
def _at_exit() -> None:
    """While the driver is there: buffers that the interpreter frees later would look for streams that are gone."""
    if _kept:
        from cuda.core import Device

        _forget(Device().default_stream)


def _for_one_call(nbytes: int, device: str, stream: Any, own: ExitStack) -> Any:
    buffer = allocate(max(nbytes, 1), device, stream)
    own.callback(buffer.close, stream)
    return buffer
