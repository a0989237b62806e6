"""The memory of a program, host and card: pages with a shadow byte for each byte, its state.

0 unaddressable · 1 uninitialised · 3 initialised · 4 the card's, uninitialised · 6 the card's, initialised. Objects are
separated by unaddressable bytes and addresses are never reused, so that overruns and stale pointers meet a 0."""

from __future__ import annotations

import bisect
import contextlib
import ctypes
import mmap
import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.emulator.host.runtime.uniform_shadow import SavedStates, UniformShadow
from tilewise.emulator.host.target.native import Native, discard
from tilewise.errors import EngineError, LimitError
from tilewise.system.quantities import counted

LEAST_GAP = 64
LARGE = 1 << 20
OVERCOMMIT = 4  # allocations may exceed the limit this many times: the watch checks resident memory instead
SET_PADDING, MIN_PADDED = 64, 1 << 10  # else blocks of 2ᵏ bytes would all begin in the same cache set
UNINIT, INIT = 1, 3
INIT_BIT = 2  # in 3 and 6
CARD_UNINIT, CARD_INIT = 4, 6
BUSY = 8  # with 3: memory that a kernel or a copy may still write, until the host synchronises
PINNED = ("cudaMallocHost", "cudaHostAlloc")
HOST_AND_CARD = ("cudaMallocManaged", "__managed__", *PINNED)


@dataclass
class Allocation:
    address: int
    size: int
    kind: str  # malloc, new, new[], cudaMalloc, cudaMallocManaged, cudaMallocHost, static …
    line: int
    name: str = ""
    freed: int = 0  # the line
    host: bool = True
    device: bool = False
    written: bool = False  # by a copy, a memset, a library or a kernel
    copied: bool = False  # to the host, or the host can access it
    pitch: int = 0
    stored: int = 0  # line of the last launch that stored to it
    failed: int = 0  # line of a copy from or to it that failed
    last_copy: tuple[int, int] = (0, 0)  # line and bytes of the last copy into it
    initialised: bool = False  # only the card can access it, and it was found to be completely initialised

    @property
    def end(self) -> int:
        return self.address + self.size


def describe(block: Allocation) -> str:
    """An allocation in messages."""
    name = f"{block.name} " if block.name else ""
    size = counted(block.size, "byte")
    if block.kind == "static":
        return f"{name}({size})".strip()
    return f"{name}({size} from {block.kind} at line {block.line})"


class Memory:
    def __init__(self, limit: int, target: Any = None) -> None:
        """`target`: where the program's code runs, and with it what its addresses are; machine code if None."""
        self.limit = limit
        self.target = target or Native()
        self.used = 0
        self.most = 0
        self.layout = layout = self.target.layout
        size = self.target.most
        while True:
            try:
                start, pages = self.target.reserve(2 * (size + 2 * layout.slack))
                break
            except LimitError:
                size >>= 1
                if size < self.target.least:
                    raise
        self.size = size
        self.shift = size + 2 * layout.slack
        self.bytes = pages[layout.slack : layout.slack + size]
        self.shadow = pages[layout.slack + self.shift :][:size]
        self._states = UniformShadow(self.shadow)
        self.base = start + layout.slack
        self._private, self._private_end = 0, 0
        self.lock = threading.RLock()  # held while the runtime runs, and while `collapse` reads states
        self.collapse_due = False  # at the next runtime call
        self.may_uninitialise = False  # compiled code may make initialised bytes uninitialised
        self.line_address, self.stack_address, self.epoch_address, self.native_address = (
            self.private(64) for _ in range(4)
        )
        self._line = self.cells(self.line_address, ctypes.c_int32, 2)  # and column
        self._epoch = self.cells(self.epoch_address, ctypes.c_int64, 1)
        stack = self.base + layout.guard
        self.stack_start, self.stack_end = stack, stack + layout.stack
        self.cells(self.stack_address, ctypes.c_int64, 1)[0] = stack
        self._static = layout.guard + layout.stack + layout.guard
        self._first_heap = self._heap = self._static + layout.static
        self._device = size // 2
        self.blocks: list[Allocation] = []
        self._starts: list[int] = []
        self.device_blocks: list[Allocation] = []
        self._device_starts: list[int] = []
        self._large: list[Allocation] = []
        self.statics: list[Allocation] = []
        self._static_starts: list[int] = []

    @property
    def line(self) -> int:
        """The current line of the program."""
        return int(self._line[0])

    @property
    def column(self) -> int:
        """The column of the current call; 0 if unknown."""
        return int(self._line[1])

    @property
    def epoch(self) -> int:
        """Incremented by every runtime call: it may change the states of memory."""
        return int(self._epoch[0])

    def next_epoch(self) -> None:
        self._epoch[0] += 1

    # -- allocation

    @property
    def device_start(self) -> int:
        return self.base + self.size // 2

    def map_zeros(self, size: int) -> int:
        """A large range of zeros outside of the program's memory; its pages are allocated on first access."""
        return int(self.target.reserve(size)[0])

    def cells(self, address: int, kind: Any, count: int) -> Any:
        """`count` values of a type of ctypes, wherever in the program's addresses."""
        return (kind * count).from_address(self.target.host(address, count * ctypes.sizeof(kind)))

    def private(self, size: int) -> int:
        """Zeros outside of the program's memory, which its stores cannot reach: control words, and results of checks
        that compiled code relies on."""
        size = -(-size // 64) * 64
        if self._private + size > self._private_end:
            most = max(self.layout.private, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
            self._private = self.map_zeros(most)
            self._private_end = self._private + most
        self._private += size
        return self._private - size

    def static(
        self, size: int, name: str, device: bool, host: bool = False, unset: bool = False, line: int = 0
    ) -> int:  # fmt: skip
        """Memory of a global variable: zero and initialised, or uninitialised if `unset`. `device` and `host`: managed
        memory."""
        if device and host:
            return self.allocate(max(1, size), "__managed__", line, name, device=True, state=INIT).address
        if device:
            state = CARD_UNINIT if unset else CARD_INIT
            return self.allocate(max(1, size), "__device__", line, name, device=True, host=False, state=state).address
        at = -(-self._static // 64) * 64
        self._static = at + size + max(LEAST_GAP, min(size, LARGE))
        if self._static > self._heap:
            raise LimitError(f"the program's variables take more than {self.layout.static >> 20} MiB")
        self._states.fill(at, size, INIT)
        made = Allocation(self.base + at, size, "static", 0, name)
        self.statics.append(made)
        self._static_starts.append(made.address)
        return made.address

    def symbol_at(self, address: int, written: str) -> Allocation | None:
        """The __device__ or __constant__ variable at an address, if the program wrote its name for it. On the host the
        name stands for a shadow of the variable, whose address the card does not know."""
        block = self.find(address)
        named = re.match(r"\s*&?\s*(?:\w*::)*(\w+)", written)
        if block is None or block.kind != "__device__" or named is None:
            return None
        return block if named[1] == block.name.rpartition("::")[2] else None

    def constant(self, data: bytes) -> int:
        address = self.static(len(data), "", False)
        at = address - self.base
        self.bytes[at : at + len(data)] = np.frombuffer(data, np.uint8)
        return address

    def allocate(
        self, size: int, kind: str, line: int, name: str = "", *, device: bool = False, host: bool = True,
        state: int = UNINIT, align: int = 16,
    ) -> Allocation:  # fmt: skip
        most = OVERCOMMIT * self.limit
        if self.used + size > most:
            raise LimitError(
                f"line {line}: {size} more bytes would make {self.used + size}, over the limit of {most} bytes "
                "(--limit-memory)"
            )
        self.used += size
        self.most = max(self.most, self.used)
        gap = max(LEAST_GAP, min(size, 1 << 30))
        if host:
            at = -(-self._heap // align) * align
            self._heap = at + size + gap + (SET_PADDING if size >= MIN_PADDED else 0)
            full = self._heap > self.size // 2
        else:
            at = -(-self._device // 256) * 256
            self._device = at + size + max(gap, 256)
            full = self._device > self.size - self.layout.guard
        if full:
            raise LimitError(f"line {line}: the program has asked for more memory than there are addresses for")
        self._states.fill(at, size, state)
        made = Allocation(self.base + at, size, kind, line, name, host=host, device=device)
        if size >= LARGE:
            self._large.append(made)
        if host:
            self.blocks.append(made)
            self._starts.append(made.address)
        else:
            self.device_blocks.append(made)
            self._device_starts.append(made.address)
        return made

    def release(self, block: Allocation, line: int) -> None:
        block.freed = max(1, line)
        if block.size >= LARGE:
            self._large = [other for other in self._large if other is not block]
        at = block.address - self.base
        self._states.fill(at, block.size, 0)
        self.used -= block.size
        first, last = -(-at // mmap.PAGESIZE) * mmap.PAGESIZE, (at + block.size) // mmap.PAGESIZE * mmap.PAGESIZE
        if last - first >= 1 << 20 and hasattr(mmap, "MADV_DONTNEED"):
            self._discard(first, last)

    def _discard(self, first: int, last: int) -> None:
        if not 0 <= first <= last <= self.size:
            raise EngineError(
                f"pages {first:#x} to {last:#x} are outside of a program's memory of {self.size:#x} bytes"
            )
        discard(self.target.host(self.base + first, last - first), last - first)

    # -- lookup

    def find(self, address: int, near: bool = False) -> Allocation | None:
        """The block that contains an address; with `near`, the closest one."""
        offset = address - self.base
        if not 0 <= offset < self.size:
            return None
        if offset >= self.size // 2:
            starts, blocks = self._device_starts, self.device_blocks
        elif offset >= self._first_heap:
            starts, blocks = self._starts, self.blocks
        else:
            starts, blocks = self._static_starts, self.statics
        i = bisect.bisect_right(starts, address) - 1
        if i >= 0 and (near or address < blocks[i].end or address == blocks[i].address):
            if near and i + 1 < len(blocks) and blocks[i + 1].address - address < address - blocks[i].end:
                return blocks[i + 1]
            return blocks[i]
        if near and blocks and blocks[0].address - address < LARGE:
            return blocks[0]
        return None

    def inside(self, address: int, size: int = 1) -> bool:
        return self.base <= address and address + size <= self.base + self.size

    def on_stack(self, address: int) -> bool:
        return self.base <= address < self.stack_end

    # -- bytes

    def view(self, address: int, size: int) -> np.ndarray:
        at = address - self.base
        return self.bytes[at : at + size]

    def state(self, address: int, size: int) -> np.ndarray:
        at = address - self.base
        return self.shadow[at : at + size]

    def has(self, address: int, size: int, wanted: int, exactly: bool = False) -> bool:
        """Whether the states of all these bytes have these bits; `exactly`: and no others."""
        return self._states.has(address - self.base, size, wanted, exactly)

    def alike(self, address: int, size: int) -> int | None:
        """The common state of all these bytes, at most a piece of the shadow; None if they differ."""
        return self._states.of(address - self.base, size)

    def change(self, address: int, size: int, keep: int = 255, give: int = 0) -> None:
        """state = state & keep | give, for each byte."""
        self._states.change(address - self.base, size, keep, give)

    def move(self, to: int, source: int, size: int, own: int = 0, take: int = 255) -> None:
        """Copy bytes and their states: state = state & own | source state & take."""
        self.view(to, size)[:] = self.view(source, size)
        self._states.copy(to - self.base, source - self.base, size, own, take)

    def set(self, address: int, value: int, size: int, keep: int = 255, give: int = 2) -> None:
        """memset. Whole pages of zeros are given back to the system, so that they take no memory."""
        at = address - self.base
        first, last = -(-at // mmap.PAGESIZE) * mmap.PAGESIZE, (at + size) // mmap.PAGESIZE * mmap.PAGESIZE
        if value & 255 or last - first < LARGE or sys.platform != "linux":
            first = last = at + size
        self.bytes[at:first] = value & 255
        self.bytes[last : at + size] = value & 255
        if first < last:
            self._discard(first, last)
        self._states.change(at, size, keep, give)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Release the lock while the runtime calls compiled code."""
        self.lock.release()
        try:
            yield
        finally:
            self.lock.acquire()

    def save_states(self, address: int, size: int) -> SavedStates:
        """A copy of the states, for `restore_states`."""
        return self._states.save(address - self.base, size)

    def restore_states(self, saved: SavedStates) -> None:
        self._states.restore(saved)

    def collapse(self, again: bool = False) -> None:
        """Share pages of the shadow of initialised arrays. Another thread calls this while compiled code runs; if that
        may change the states meanwhile, it is left to the next runtime call."""
        if self.may_uninitialise:
            self.collapse_due = True
        elif self.lock.acquire(blocking=False):
            try:
                self.collapse_now(again)
            finally:
                self.lock.release()

    def collapse_now(self, again: bool = True) -> None:
        self.collapse_due = False
        for block in self._large:
            self._states.collapse(block.address - self.base, block.size, again)

    def text(self, address: int, most: int = 1 << 20) -> bytes:
        """A string, without its zero."""
        at = address - self.base
        data = self.bytes[at : min(at + most, self.size)]
        step = 64
        out = b""
        while len(out) < most:
            part = data[len(out) : len(out) + step].tobytes()
            end = part.find(b"\0")
            if end >= 0:
                return out + part[:end]
            if not part:
                break
            out += part
            step = min(step * 2, 1 << 16)
        return out

    def put(self, address: int, data: bytes) -> None:
        at = address - self.base
        self.bytes[at : at + len(data)] = np.frombuffer(data, np.uint8)
        self.shadow[at : at + len(data)] |= 2
