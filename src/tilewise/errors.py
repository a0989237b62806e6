"""Every error that tilewise raises. A message is one sentence: what is wrong, and what would be right."""

from __future__ import annotations


class TilewiseError(Exception):
    """Parent of all of them; `exit_code` is what a command returns when it ends with this error.

    >>> try:
    ...     tw.matmul([[1, 2]], [[3]])
    ... except tw.TilewiseError as error:
    ...     print(error)
    M is 1×2 and N is 1×1: the 2 columns of M do not meet the 1 rows of N; they must be equal
    """

    exit_code = 2


class UsageError(TilewiseError, ValueError):
    """A wrong argument: a tile of 0, an unknown kernel.

    >>> tw.matmul([[1]], [[2]], tile=0)
    Traceback (most recent call last):
    tilewise.errors.UsageError: ...
    """


class ShapeError(TilewiseError, ValueError):
    """Operands whose shapes do not fit each other, or an `out` that does not fit the product.

    >>> tw.matmul(np.ones((2, 3)), np.ones((2, 3)))
    Traceback (most recent call last):
    tilewise.errors.ShapeError: ...
    """


class DtypeError(TilewiseError, TypeError):
    """A dtype that the semiring, the engine or the output cannot take.

    >>> tw.matmul(["a"], ["b"])
    Traceback (most recent call last):
    tilewise.errors.DtypeError: ...
    """


class AlgebraError(TilewiseError, ValueError):
    """A semiring that breaks a law it must keep, or an operation that cannot be traced.

    >>> tw.Semiring("wrong", add=lambda x, y: x - y, mul=lambda x, y: x * y, zero=0)
    Traceback (most recent call last):
    tilewise.errors.AlgebraError: ...
    """


class CycleError(TilewiseError, ValueError):
    """A cycle that is better every time it is walked, so that no best path exists; `nodes` are those on it.

    >>> try:
    ...     tw.closure([[0, 1], [-2, 0]])
    ... except tw.CycleError as error:
    ...     print(error.nodes)
    (0, 1)
    """

    def __init__(self, message: str, nodes: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.nodes = nodes


class FileError(TilewiseError, OSError):
    """A file that is missing, damaged, foreign, or cannot be written.

    >>> tw.check("no_such_file.cu")
    Traceback (most recent call last):
    tilewise.errors.FileError: ...
    """


class DeviceError(TilewiseError, RuntimeError):
    """The requested device is not there, or the arrays are on another one.

    >>> tw.matmul([[1]], [[2]], device="cuda:99")
    Traceback (most recent call last):
    tilewise.errors.DeviceError: ...
    """

    exit_code = 3


class EngineError(TilewiseError, RuntimeError):
    """Something failed while running: a compilation, a launch, an allocation.

    >>> issubclass(tw.OutOfMemoryError, tw.EngineError), issubclass(tw.LimitError, tw.EngineError)
    (True, True)
    """

    exit_code = 4


class OutOfMemoryError(EngineError, MemoryError):
    """An allocation that does not fit; the message has the requested and the available bytes.

    >>> try:
    ...     tw.matmul(np.ones((99, 99)), np.ones((99, 99)), memory="1kB")
    ... except tw.OutOfMemoryError as error:
    ...     print(error)
    memory=1 kB is too small for one tile of 99x99x99 float64: ...
    """


class TooLargeError(OutOfMemoryError):
    """A request that does not fit, refused before anything was allocated: a wrong input, not a failure."""

    exit_code = 2


class SandboxError(TilewiseError, RuntimeError):
    """A program of unknown origin is not run, because the system has no sandbox for it."""


class KernelError(TilewiseError, ValueError):
    """CUDA text that is refused; the message has its place and quotes the line.

    >>> tw.check("__global__ void f(float *x) { x[0] = ; }")
    Traceback (most recent call last):
    tilewise.errors.KernelError: ...
    """

    def __init__(self, message: str, file: str = "", line: int = 0, column: int = 0, text: str = "", length: int = 1):
        self.message, self.file, self.line, self.column, self.text = message, file, line, column, text
        where = f"{file}:{line}:{column}: " if line else (f"{file}: " if file else "")
        quote = ""
        if text:
            lead = "".join(ch if ch == "\t" else " " for ch in text[: column - 1])
            quote = f"\n{text}\n{lead}{'^' * max(1, min(length, len(text) - column + 1))}"
        super().__init__(f"{where}{message}{quote}")


class LimitError(EngineError):
    """A kernel that never ends, allocates without end or nests without end, stopped at a limit that can be raised.

    >>> issubclass(tw.LimitError, tw.TilewiseError), tw.LimitError.exit_code
    (True, 4)
    """
