"""Where an array's elements are, without the microsecond that `array.ctypes.data` takes.

The first field of NumPy's array struct after CPython's object header is that address, by NumPy's stable C interface; it
is checked on a real array once; where it does not hold, `array.ctypes.data` is used.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

import numpy as np

from tilewise.algebra.dtypes import Array


@lru_cache(maxsize=1)
def data_field() -> int:
    """Bytes from an array object's start to its elements' address; 0 where that cannot be relied on."""
    import sys

    field = object.__basicsize__
    if sys.implementation.name != "cpython":
        return 0
    samples = [np.empty(n) for n in (1, 5)]
    right = all(ctypes.c_void_p.from_address(id(x) + field).value == x.ctypes.data for x in samples)
    return field if right else 0


def address(array: Array) -> int:
    field = data_field()
    return (ctypes.c_void_p.from_address(id(array) + field).value or 0) if field else array.ctypes.data
