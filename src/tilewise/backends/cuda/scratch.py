"""Scratch memory for a recipe: from torch's or CuPy's allocator for their operands, else from cached buffers.

A framework's allocator is stream-ordered, supports CUDA graphs and has statistics. Otherwise one buffer is cached for
each stream, because an allocation takes longer than a small product.
"""

from __future__ import annotations

import atexit
import sys
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from tilewise.arrays.card import allocate, capturing, cuda_core

SCRATCH_LIMIT = 2**30  # bytes of a cached buffer; larger ones are allocated for each call
KEPT_LIMIT = 4 * SCRATCH_LIMIT  # bytes of all cached buffers
_lock = Lock()
_kept: OrderedDict[tuple[str, int], Any] = OrderedDict()  # by device and stream, least recently used first


@contextmanager
def scratch(nbytes: int, library: str, device: str, stream: int) -> Iterator[int]:
    """The address of so many bytes, valid while work that uses them is being queued on the stream."""
    if not nbytes:
        yield 0
    elif library == "torch":
        raw = sys.modules["torch"]._C
        address = raw._cuda_cudaCachingAllocator_raw_alloc(nbytes, stream)
        try:
            yield address
        finally:
            raw._cuda_cudaCachingAllocator_raw_delete(address)
    elif library == "cupy":
        held = sys.modules["cupy"].cuda.alloc(nbytes)
        yield held.ptr
        del held
    else:
        with _own(nbytes, device, stream) as address:
            yield address


@contextmanager
def _own(nbytes: int, device: str, handle: int) -> Iterator[int]:
    """A cached or new buffer; a new one during graph capture. No other thread gets it meanwhile."""
    stream, key = cuda_core().Stream.from_handle(handle), (device, handle)
    with _lock:
        buffer = None if capturing(stream) else _kept.pop(key, None)
    if buffer is not None and buffer.size < nbytes:
        buffer.close(stream)
        buffer = None
    if buffer is None:
        buffer = allocate(nbytes, device, stream)
    try:
        yield int(buffer.handle)
    finally:
        if capturing(stream) or nbytes > SCRATCH_LIMIT or not _keep(key, buffer):
            buffer.close(stream)


def _keep(key: tuple[str, int], buffer: Any) -> bool:
    """Cache a buffer for the next call on its stream, evicting the least recently used; whether it was cached."""
    gone = []
    with _lock:
        if key in _kept:
            return False
        _kept[key] = buffer
        while len(_kept) > 1 and sum(b.size for b in _kept.values()) > KEPT_LIMIT:
            gone.append(_kept.popitem(last=False)[1])
    if gone:
        _free(gone)
    return True


def _free(buffers: list[Any]) -> None:
    """On the default stream, after a synchronization: the streams that used the buffers may be destroyed."""
    from cuda.bindings import driver
    from cuda.core import Device

    driver.cuCtxSynchronize()
    for buffer in buffers:
        buffer.close(Device().default_stream)


@atexit.register
def _at_exit() -> None:
    """Free cached buffers at exit: the interpreter would free them after their streams are destroyed."""
    with _lock:
        left = list(_kept.values())
        _kept.clear()
    if left:
        _free(left)
