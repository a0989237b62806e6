"""Every error tilewise raises on purpose. One sentence each: what is wrong, and what would be right."""

from __future__ import annotations


class TilewiseError(Exception):
    """Parent of all of them; `exit_code` is what a command returns when it ends with this error."""

    exit_code = 2


class UsageError(TilewiseError, ValueError):
    """An argument that cannot be meant: a tile of 0, a kernel nobody wrote."""


class ShapeError(TilewiseError, ValueError):
    """Operands whose shapes do not fit each other, or an `out` that does not fit the product."""


class DtypeError(TilewiseError, TypeError):
    """A dtype that the semiring, the engine or the output cannot take."""


class AlgebraError(TilewiseError, ValueError):
    """A semiring that breaks a law it must keep, or an operation that cannot be traced."""


class FileError(TilewiseError, OSError):
    """A file that is missing, damaged, foreign, or cannot be written."""


class DeviceError(TilewiseError, RuntimeError):
    """The device asked for is not there, or the arrays are on another one."""

    exit_code = 3


class EngineError(TilewiseError, RuntimeError):
    """Something failed while running: a compilation, a launch, an allocation."""

    exit_code = 4


class OutOfMemoryError(EngineError, MemoryError):
    """An allocation that does not fit; says how much was asked for and how much there is."""
