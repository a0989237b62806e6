"""Where an array's elements are, without the microsecond that `array.ctypes.data` takes."""

from __future__ import annotations

import ctypes

from tilewise.algebra.dtypes import Array
from tilewise.system.llvm_text import FIRST_FIELD


def address(array: Array) -> int:
    return ctypes.c_void_p.from_address(id(array) + FIRST_FIELD).value or 0
