"""The shadow of a program's memory, with shared pages for ranges of equal states.

Arrays are allocated, filled and copied as a whole, so that nearly all of their states are equal. Pieces of equal states
are mapped privately (copy-on-write) onto the pages of a small file that contains only that state: a store of another
state copies one page. On systems without memfd_create each byte is written."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

MIN_COMPARED = 1 << 14  # bytes from which on comparing as a whole pays
PIECE = 1 << 20  # bytes that are mapped, or compared, at once
FILE = 2 * PIECE  # bytes; adjacent pieces continue in the file, so that the kernel merges their mappings
KINDS = frozenset({0, 1, 3, 4, 6, 9, 11})  # states that whole arrays have
MAX_MAPPED = 1 << 14  # pieces: a process can have 65,530 mappings
SHARED, FIXED, PRIVATE, ANONYMOUS, NO_RESERVE = 0x1, 0x10, 0x2, 0x20, 0x4000  # of Linux
FAILED = (1 << 64) - 1  # MAP_FAILED
SWAPPED, FILES = np.uint64(1 << 62), np.uint64(1 << 61)  # bits of an entry of /proc/self/pagemap
INIT_BIT = 2
SavedStates = list[tuple[int, int, Any]]  # offset, size, and the states or their common state


class UniformShadow:
    def __init__(self, shadow: np.ndarray) -> None:
        self._shadow = shadow
        self._start = shadow.ctypes.data
        self._pages: dict[int, tuple[int, Any]] = {}  # by state: the file, a mapping of it to compare with
        self._mapped: dict[int, int] = {}  # by number of a piece: the state whose file it was mapped onto
        self.supported = sys.platform == "linux" and hasattr(os, "memfd_create") and FILE % mmap.PAGESIZE == 0
        self._pagemap = -1
        if self.supported:
            with contextlib.suppress(OSError):
                self._pagemap = os.open("/proc/self/pagemap", os.O_RDONLY)
            libc = ctypes.CDLL(None)
            self._compare, self._map_pages = libc.memcmp, libc.mmap
            self._compare.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
            self._map_pages.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
            self._map_pages.restype = ctypes.c_void_p

    # -- ranges

    def fill(self, at: int, size: int, state: int) -> None:
        first, last = -(-at // PIECE) * PIECE, (at + size) // PIECE * PIECE
        if last <= first or not self.supported:
            self._shadow[at : at + size] = state
            return
        self._shadow[at:first] = state
        self._shadow[last : at + size] = state
        self._map(first, last, state)

    def change(self, at: int, size: int, keep: int = 255, give: int = 0) -> None:
        """state = state & keep | give."""
        for start, end in self._pieces(at, size):
            state = self.of(start, end - start) if end - start == PIECE else None
            if state is None:
                part = self._shadow[start:end]
                part &= keep
                part |= give
            elif (new := state & keep | give) != state:
                self._map(start, end, new)

    def copy(self, to: int, source: int, size: int, own: int, take: int) -> None:
        """state = state & own | source state & take; the ranges may overlap."""
        if abs(to - source) < size:
            moved = self._shadow[source : source + size] & take
            self._shadow[to : to + size] = (self._shadow[to : to + size] & own) | moved
            return
        for start, end in self._pieces(to, size):
            given = source + start - to
            here = self.of(start, end - start) if end - start == PIECE else None
            there = self.of(given, end - start) if here is not None else None
            if here is None or there is None:
                part = self._shadow[start:end]
                part &= own
                part |= self._shadow[given : given + end - start] & take
            elif (new := (here & own) | (there & take)) != here:
                self._map(start, end, new)

    def has(self, at: int, size: int, wanted: int, exactly: bool = False) -> bool:
        """Whether all these states have these bits; `exactly`: and no others."""
        for start, end in self._pieces(at, size):
            state = self.of(start, end - start)
            if state is not None and (state == wanted if exactly else state & wanted == wanted):
                continue
            part = self._shadow[start:end]
            if state is not None or not ((part if exactly else part & wanted) == wanted).all():
                return False
        return True

    def of(self, at: int, size: int) -> int | None:
        """The common state of these bytes, at most a piece; None if they differ."""
        if size < MIN_COMPARED or not self.supported:
            return None
        numbers = range(at // PIECE, -(-(at + size) // PIECE))
        known = {self._mapped.get(number, -1) for number in numbers}
        if known != {-1} and len(known) == 1 and all(self._page_status(number)[1] for number in numbers):
            return known.pop()
        state = int(self._shadow[at])
        if state not in KINDS or int(self._shadow[at + size - 1]) != state:
            return None
        same = self._compare(self._start + at, self._pages_of(state)[1].ctypes.data, size) == 0
        return state if same else None

    def save(self, at: int, size: int) -> SavedStates:
        """A copy of the states; for a piece of equal states, only that state."""
        out: SavedStates = []
        for start, end in self._pieces(at, size):
            state = self.of(start, end - start)
            out.append((start, end - start, self._shadow[start:end].copy() if state is None else state))
        return out

    def restore(self, saved: SavedStates) -> None:
        for at, size, state in saved:
            if isinstance(state, int):
                self.fill(at, size, state)
            else:
                self._shadow[at : at + size] = state

    # -- sharing

    def collapse(self, at: int, size: int, again: bool = False) -> None:
        """Share the pages of pieces that are now completely initialised. Concurrent stores must not change states to
        uninitialised. `again`: also pieces that were shared before and have resident pages."""
        for number in range(-(-at // PIECE), (at + size) // PIECE if self.supported else 0):
            start, state = number * PIECE, self._mapped.get(number, 0)
            there, untouched = not state & INIT_BIT, bool(state & INIT_BIT)
            if again and state & INIT_BIT:
                there, untouched = self._page_status(number)
            if not there:
                continue
            if not untouched:
                ends = int(self._shadow[start]) & int(self._shadow[start + PIECE - 1])
                state = self.of(start, PIECE) or 0 if ends & INIT_BIT else 0
            if state & INIT_BIT:
                self._map(start, start + PIECE, state)

    def _page_status(self, number: int) -> tuple[bool, bool]:
        """Whether a mapped piece has resident pages, and whether all of them are still the file's."""
        if self._pagemap < 0:
            return True, False
        first = (self._start + number * PIECE) // mmap.PAGESIZE
        data = os.pread(self._pagemap, 8 * (PIECE // mmap.PAGESIZE), 8 * first)
        entries = np.frombuffer(data, np.uint64)
        there = entries >= SWAPPED  # in memory or swapped out
        return bool(there.any()), not (there & ((entries & FILES) == 0)).any()

    def _pieces(self, at: int, size: int) -> Iterator[tuple[int, int]]:
        end = at + size
        while at < end:
            step = min(end, (at // PIECE + 1) * PIECE)
            yield at, step
            at = step

    def _map(self, first: int, last: int, state: int) -> None:
        """Map whole pieces onto the file of this state."""
        if first < 0 or last > len(self._shadow):  # would unmap other memory
            raise MemoryError
        numbers = range(first // PIECE, last // PIECE)
        if len(self._mapped) + len(numbers) > MAX_MAPPED and state:
            self._shadow[first:last] = state
            return
        for number in numbers:
            if state:
                self._mapped[number] = state
            else:
                self._mapped.pop(number, None)
        protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, FIXED | PRIVATE | NO_RESERVE
        file = self._pages_of(state)[0] if state else -1
        while first < last:
            end = min(last, (first // FILE + 1) * FILE) if state else last
            there = self._start + first
            if state:
                made = self._map_pages(there, end - first, protection, flags, file, first % FILE)
            else:
                made = self._map_pages(there, end - first, protection, flags | ANONYMOUS, -1, 0)
            if made != there:
                raise MemoryError
            first = end

    def _pages_of(self, state: int) -> tuple[int, Any]:
        if state not in self._pages:
            file = os.memfd_create(f"shadow {state}")
            if state:
                os.write(file, bytes([state]) * FILE)
            else:
                os.truncate(file, FILE)
            address = self._map_pages(None, FILE, mmap.PROT_READ, SHARED, file, 0)  # mmap.mmap would dup the file
            if address in (None, FAILED):
                raise MemoryError
            view = memoryview((ctypes.c_uint8 * FILE).from_address(address))
            self._pages[state] = file, np.frombuffer(view, np.uint8)
        return self._pages[state]
