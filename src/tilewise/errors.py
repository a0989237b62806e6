"""Every error that tilewise raises. A message is one sentence: what is wrong, and what would be right."""

from __future__ import annotations


class TilewiseError(Exception):
    """Parent of all of them; `exit_code` is what a command returns when it ends with this error."""

    exit_code = 2


class UsageError(TilewiseError, ValueError):
    """A wrong argument: a tile of 0, an unknown kernel."""


class ShapeError(TilewiseError, ValueError):
    """Operands whose shapes do not fit each other, or an `out` that does not fit the product."""


class DtypeError(TilewiseError, TypeError):
    """A dtype that the semiring, the engine or the output cannot take."""


class AlgebraError(TilewiseError, ValueError):
    """A semiring that breaks a law it must keep, or an operation that cannot be traced."""


class CycleError(TilewiseError, ValueError):
    """A cycle that is better every time it is walked, so that no best path exists; `nodes` are those on it."""

    def __init__(self, message: str, nodes: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.nodes = nodes


class FileError(TilewiseError, OSError):
    """A file that is missing, damaged, foreign, or cannot be written."""


class DeviceError(TilewiseError, RuntimeError):
    """The requested device is not there, or the arrays are on another one."""

    exit_code = 3


class EngineError(TilewiseError, RuntimeError):
    """Something failed while running: a compilation, a launch, an allocation."""

    exit_code = 4


class OutOfMemoryError(EngineError, MemoryError):
    """An allocation that does not fit; the message has the requested and the available bytes."""


class TooLargeError(OutOfMemoryError):
    """A request that does not fit, refused before anything was allocated: a wrong input, not a failure."""

    exit_code = 2


class SandboxError(TilewiseError, RuntimeError):
    """A program of unknown origin is not run, because the system has no sandbox for it."""


class KernelError(TilewiseError, ValueError):
    """CUDA text that is refused: says where, quotes the line, and never guesses."""

    def __init__(self, message: str, file: str = "", line: int = 0, column: int = 0, text: str = "", length: int = 1):
        self.message, self.file, self.line, self.column, self.text = message, file, line, column, text
        where = f"{file}:{line}:{column}: " if line else (f"{file}: " if file else "")
        quote = ""
        if text:
            lead = "".join(ch if ch == "\t" else " " for ch in text[: column - 1])
            quote = f"\n{text}\n{lead}{'^' * max(1, min(length, len(text) - column + 1))}"
        super().__init__(f"{where}{message}{quote}")


class LimitError(EngineError):
    """A kernel that never ends, allocates without end or nests without end, stopped at a limit that can be raised."""
