"""Where a program's code runs: as machine code of this process, or as WebAssembly in one memory of its own."""

from __future__ import annotations

from tilewise.errors import EngineError


class Trapped(EngineError):
    """The program's code did what its target stops: it is a fault of the program, at its current line."""

    def __init__(self, what: str, stack: bool, function: str) -> None:
        super().__init__(what)
        self.what, self.stack, self.function = what, stack, function
