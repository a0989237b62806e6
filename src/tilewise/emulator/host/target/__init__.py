"""Where a program's code runs: as machine code of this process, or as WebAssembly in one memory of its own."""

from __future__ import annotations

from dataclasses import dataclass

from tilewise.errors import EngineError


@dataclass(frozen=True)
class Layout:
    """Sizes in bytes of the parts of a program's memory (`runtime/memory.py`)."""

    slack: int = 4 << 20  # unused, before and after the memory and the shadow: constant offsets may lead there
    guard: int = 1 << 20
    stack: int = 64 << 20
    static: int = 4 << 30
    frames: int = 256 << 20  # for the coroutine frames of a block's threads
    private: int = 1 << 20  # that `private` maps at once


class Trapped(EngineError):
    """The program's code did what its target stops: it is a fault of the program, at its current line."""

    def __init__(self, what: str, stack: bool, function: str) -> None:
        super().__init__(what)
        self.what, self.stack, self.function = what, stack, function
