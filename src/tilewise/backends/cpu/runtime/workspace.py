"""Scratch memory for packing: page-aligned, huge pages where the system gives them, kept for the next product."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
from collections import deque

HUGE = 2 * 1024 * 1024
KEPT = 4  # free spaces that are kept for later calls

Space = tuple[mmap.mmap, int, int]  # the memory, its first aligned address, the bytes from there
_free: deque[Space] = deque()


def borrow(size: int) -> Space:
    """At least `size` bytes."""
    try:
        space = _free.pop()
        if space[2] >= size:
            return space
    except IndexError:
        pass
    rounded = -(-size // HUGE) * HUGE
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    memory = mmap.mmap(-1, rounded + HUGE, **private)  # a shared mapping would be shared with a forked child
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    aligned = -(-start // HUGE) * HUGE
    return memory, aligned, rounded


def give_back(space: Space) -> None:
    if len(_free) < KEPT:
        _free.append(space)


def _forget() -> None:
    _free.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
