"""CuPy arrays in prepared calls: their signature, addresses, stream, and memory of CuPy's own pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy

from tilewise.arrays.cupy_library import reach_of
from tilewise.core.options import Key, keywords_key


def signature(M: Any, N: Any, keywords: Any) -> Key | None:
    """Everything about a call but its addresses, of which only the value modulo 16 counts."""
    if N.__class__ is not cupy.ndarray:
        return None
    m, n = M.data, N.data
    card = m.device_id
    if n.device_id != card or cupy.cuda.runtime.getDevice() != card:
        return None
    offsets = (m.ptr & 15) | (n.ptr & 15) << 4
    key = keywords_key(keywords, lambda x: _array(x, card))
    return None if key is None else (card, offsets, M.shape, N.shape, M.strides, N.strides, M.dtype, N.dtype, *key)


def _array(x: Any, card: int) -> Key | None:
    """The layout of out= or bias=; None for a strided vector, which may be copied first into memory that is freed after
    the call."""
    if x.__class__ is not cupy.ndarray or x.data.device_id != card or (x.ndim == 1 and not x.flags.c_contiguous):
        return None
    return (x.shape, x.strides, x.dtype, x.data.ptr & 15)


class CupyCard:
    """Streams and memory of one card, by CuPy."""

    def __init__(self, card: int) -> None:
        stream = cupy.cuda.get_current_stream
        self.stream: Callable[[], int] = lambda: int(stream().ptr)
        self.address: Callable[[Any], int] = lambda x: int(x.data.ptr)
        self.take: Callable[[int, int], Any] = lambda nbytes, stream: cupy.cuda.alloc(nbytes)
        self.pointer: Callable[[Any], int] = lambda held: int(held.ptr) if held else 0
        self.give_back: Callable[[Any], None] = lambda held: None

    def empty_like(self, product: Any) -> Callable[[], Any]:
        """A function that allocates memory for such a product."""
        shape, dtype, empty = product.shape, product.dtype, cupy.empty
        return lambda: empty(shape, dtype)

    def holds(self, like: Any) -> Callable[[Any], bool]:
        """Whether an array of this shape is within memory that CuPy owns; the driver checks other memory at each
        call."""
        low, high = reach_of(like)
        unowned = cupy.cuda.UnownedMemory

        def inside(x: Any) -> bool:
            data = x.data
            memory = data.mem
            at = data.ptr - memory.ptr
            return memory.__class__ is not unowned and at + low >= 0 and at + high <= memory.size

        return inside
