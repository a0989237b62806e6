"""No page of the process is both written to and executed while a program runs.

LLVM's machine code is not writable once it is finished. The stubs by which compiled code calls the runtime (closures of
libffi) are: ctypes keeps them on pages that are both. Those lose the right to be written here before the program's
first instruction, and have it back for as long as a stub is made, which happens inside the runtime alone."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
from collections.abc import Iterator

from tilewise.errors import EngineError

MAPS = "/proc/self/maps"
READ_WRITE_RUN = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC if hasattr(mmap, "PROT_EXEC") else 7

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


def seal() -> None:
    """Take the right to be written from every page that is executed. Stubs are made by `unsealed` from then on."""
    for start, end in writable_code():
        _protect(start, end, READ_WRITE_RUN & ~mmap.PROT_WRITE)
        _sealed.append((start, end))


@contextlib.contextmanager
def unsealed() -> Iterator[None]:
    """Stubs may be made here."""
    if not _sealed:
        yield
        return
    for start, end in _sealed:
        _protect(start, end, READ_WRITE_RUN)
    _sealed.clear()
    try:
        yield
    finally:
        seal()
