"""Memory that ends where nothing may be read: an access beside an operand ends the process.

Files and shared memory are mapped like that, and a kernel that reads a vector where a part of one is left would bring
a person's process down, one day, with a matrix that happens to end where its page does.
"""

from __future__ import annotations

import ctypes
import mmap
import sys

import numpy as np

PROT_NONE = 0
able = sys.platform in ("linux", "darwin")


def fenced(x: np.ndarray, behind: bool) -> np.ndarray:
    """The same values and strides, right before a page that is closed (`behind`), or right after one."""
    low, high = np.lib.array_utils.byte_bounds(x)
    size, page = high - low, mmap.PAGESIZE
    pages = -(-size // page)
    memory = mmap.mmap(-1, (pages + 2) * page)
    first = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    for closed in (0, pages + 1):
        if libc.mprotect(ctypes.c_void_p(first + closed * page), ctypes.c_size_t(page), PROT_NONE):
            raise OSError(ctypes.get_errno(), "mprotect")
    start = page + (pages * page - size if behind else 0) + x.__array_interface__["data"][0] - low
    laid = np.ndarray(x.shape, x.dtype, buffer=memory, offset=start, strides=x.strides)
    laid[...] = x
    return laid
