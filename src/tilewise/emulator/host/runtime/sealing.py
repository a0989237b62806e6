"""No page of the process is both written to and executed while a program runs.

LLVM's machine code is not writable once it is finished. The stubs by which compiled code calls the runtime (closures of
libffi) are: ctypes keeps them on pages that are both. Those lose the right to be written here before the program's
first instruction, and are written to, but not executed, for as long as a stub is made, inside the runtime."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator

from tilewise.errors import EngineError

MAPS = "/proc/self/maps"
READ, WRITE, EXEC = 1, 2, 4

_sealed: list[tuple[int, int]] = []  # pages: where they begin and end


def writable_code() -> list[tuple[int, int]]:
    """Where memory begins and ends that may be both written and executed; nothing where the system does not tell."""
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
    """Have pages for so many more stubs: in the sandbox no page can be had that is both, even for a moment."""
    form = ctypes.CFUNCTYPE(None)
    del [form(_nothing) for _ in range(stubs)][:]  # ctypes keeps what is freed


def _nothing() -> None:
    pass


def seal() -> None:
    """Take the right to be written from every page that is executed. Stubs are made by `unsealed` from then on."""
    _sealed[:] = writable_code()
    _set_rights(READ | EXEC)


@contextlib.contextmanager
def unsealed() -> Iterator[None]:
    """Stubs may be made here, by the runtime: compiled code does not run, and its stubs are not executed meanwhile."""
    _set_rights(READ | WRITE)
    try:
        yield
    finally:
        _set_rights(READ | EXEC)


def _set_rights(rights: int) -> None:
    for start, end in _sealed:
        _protect(start, end, rights)
