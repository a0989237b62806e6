"""W^X: no page of the process is both writable and executable while a program runs.

LLVM's finished machine code is not writable, but the stubs by which compiled code calls the runtime (libffi closures)
are: ctypes allocates them on pages that are both. Before the program starts these become read-only; while the runtime
creates another stub they are writable and not executable."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator

from tilewise.errors import EngineError

MAPS = "/proc/self/maps"
READ, WRITE, EXEC = 1, 2, 4

_sealed: list[tuple[int, int]] = []  # ranges of pages


def writable_code() -> list[tuple[int, int]]:
    """Ranges of memory that are both writable and executable; empty if the system does not list them."""
    try:
        with open(MAPS, encoding="utf-8", errors="replace") as maps:
            rows = [line.split(None, 2) for line in maps]
    except OSError:
        return []
    found = [row[0].split("-") for row in rows if "w" in row[1] and "x" in row[1]]
    return [(int(start, 16), int(end, 16)) for start, end in found]


def _protect(start: int, end: int, rights: int) -> None:
    system = ctypes.CDLL(None, use_errno=True)
    system.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if system.mprotect(start, end - start, rights):
        raise EngineError(f"pages of the process cannot be protected: error {ctypes.get_errno()}")


def reserve(stubs: int) -> None:
    """Allocate pages for this many stubs: in the sandbox no page can be mapped that is writable and executable."""
    form = ctypes.CFUNCTYPE(None)
    del [form(_nothing) for _ in range(stubs)][:]  # ctypes keeps the pages


def _nothing() -> None:
    pass


def seal() -> None:
    """Make every executable page read-only. From now on stubs are created inside `unsealed`."""
    _sealed[:] = writable_code()
    _set_rights(READ | EXEC)


@contextlib.contextmanager
def unsealed() -> Iterator[None]:
    """The runtime may create stubs inside; compiled code does not run meanwhile."""
    _set_rights(READ | WRITE)
    try:
        yield
    finally:
        _set_rights(READ | EXEC)


def _set_rights(rights: int) -> None:
    for start, end in _sealed:
        _protect(start, end, rights)
