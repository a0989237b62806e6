"""A program as a WebAssembly module of its own, for a host that is not this process: a page in a browser.

Nothing runs here: `load` makes the module, and the memory is an image of what the module expects to find there. The
module imports its memory and stack pointer (`env.__linear_memory`, and `env.__stack_pointer`, a global i64) and
functions of numbers, and exports its entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tilewise.emulator.host.target import Layout
from tilewise.emulator.host.target.object_file import PAGE, Module
from tilewise.emulator.host.target.webassembly import linked_module
from tilewise.errors import EngineError, LimitError

SIZE = 16 << 20  # bytes of a program's memory: half of them are the card's
LEVEL = 1  # of optimisation: 2 takes a third longer, and V8 optimises the module again
STACK = 1 << 20  # for variables that LLVM keeps in memory
MOST = 256 << 20  # bytes; a kernel needs 162 MiB, most of them for frames of threads and states of bytes
JOINED = 8  # cells of zeros between two pieces of the image that are not worth a piece of their own


class Standalone:
    most = least = SIZE
    layout = Layout(
        slack=1 << 16, guard=1 << 16, stack=4 << 20, static=2 << 20, frames=16 << 20, private=1 << 16
    )  # fmt: skip

    def __init__(self) -> None:
        self._bytes = np.zeros(MOST, np.uint8)  # pages are allocated on first access
        self._next = PAGE + STACK
        self.stack = self._next  # the first value of the stack pointer
        self.module: Module | None = None

    def release(self) -> None:
        """Give the memory back: objects that refer to each other would keep it, and a budget counts its addresses."""
        self._bytes = np.zeros(0, np.uint8)

    @property
    def pages(self) -> int:
        """Of 64 KiB, that the memory has."""
        return self._next // PAGE

    def reserve(self, size: int) -> tuple[int, np.ndarray]:
        start, self._next = self._next, self._next + -(-size // PAGE) * PAGE
        if self._next > MOST:
            raise LimitError(f"a program's memory has no room for {size} more bytes")
        return start, self._bytes[start : self._next]

    def host(self, address: int, size: int) -> int:
        if size < 0 or not 0 <= address <= self._next - size:
            raise EngineError(f"{size} bytes at {address:#x} are outside of the memory")
        return int(self._bytes.ctypes.data) + address

    def load(
        self, text: str, symbols: dict[str, int], entry: str, kinds: tuple[str, ...], level: int = 2, wide: bool = False
    ) -> Callable[..., Any]:
        self.module = linked_module(text, entry, lambda size: self.reserve(size)[0], LEVEL)

        def call(*_: Any) -> Any:
            raise EngineError("a module for another host does not run here")

        return call

    def image(self) -> Iterator[tuple[int, bytes]]:
        """The parts of the memory that are not zero: address and bytes."""
        cells = np.flatnonzero(self._bytes[: self._next].view(np.uint64))
        for part in np.split(cells, np.flatnonzero(np.diff(cells) > JOINED) + 1) if len(cells) else ():
            first, last = 8 * int(part[0]), 8 * int(part[-1]) + 8
            yield first, self._bytes[first:last].tobytes()
