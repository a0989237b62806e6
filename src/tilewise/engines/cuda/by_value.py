"""What Hopper's kernels take by value: the size of a product, and the copy engine's descriptors as bits."""

from __future__ import annotations

import ctypes
from typing import Any


class Size(ctypes.Structure):
    """The kernels' `Size`."""

    _fields_ = (("m", ctypes.c_int), ("k", ctypes.c_int), ("n", ctypes.c_int), ("splits", ctypes.c_int))


def bits(made: Any) -> Any:
    """A descriptor as the 128 bytes that a kernel takes."""
    return (ctypes.c_ulonglong * 16).from_buffer_copy(ctypes.string_at(made.getPtr(), 128))
