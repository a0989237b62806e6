"""The memory that this process may use: the machine's, the container's (cgroup v1 and v2), the process's own limits.

Code whose memory grows with its input calls `check_room` first: an error with the number in it is better than a process
killed by the system.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from tilewise.errors import TooLargeError
from tilewise.system.quantities import size

PAGE = mmap.PAGESIZE  # 4 KiB on most machines, 16 on Apple's, 64 on some servers
UNKNOWN = 4 * 10**9  # bytes, where the system reports nothing
KEEP = 32 * 1024 * 1024  # bytes left free for everything else
M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8  # of glibc's mallopt
MADV_DONTNEED = 4  # of Linux
MADV_POPULATE_WRITE = 23  # of Linux: pages are made, their contents are kept
_statm: list[Any] = [None, -1]  # (pid, root), and the open descriptor of their statm


def total(root: Path = Path("/")) -> tuple[int, str]:
    """The most memory this process may have, and the name of the limit."""
    return min([(_physical(), "the machine's memory"), *_cgroup(root), *_own()])


def available(root: Path = Path("/")) -> tuple[int, str]:
    """The memory that the process may still allocate, and the name of the limit."""
    found = [(_free(root), "the machine's free memory")]
    for limit, name in _cgroup(root):
        found.append((max(0, limit - _cgroup_used(root)), name))
    for limit, name in _own():
        found.append((max(0, limit - _address_space(root)), name))
    return min(found)


def usual_budget(root: Path = Path("/")) -> int:
    """The default memory budget of streaming: a quarter of the limit, and more of a small one."""
    most = total(root)[0]
    return max(most // 4, min(most * 3 // 4, 10**9))


def check_room(needs: int, what: str, hint: str = "") -> None:
    """Raise TooLargeError, before anything is allocated, if this much memory is not available."""
    room, limit = available()
    room = max(0, room - KEEP)
    if needs > room:
        raise TooLargeError(f"{what} needs {size(needs)} of memory, and {size(room)} are available ({limit}){hint}")


def resident(root: Path = Path("/")) -> int:
    """The resident memory of this process in bytes; without /proc the most that it has had; 0 on Windows.

    The file is kept open, a descriptor per process: in a sandbox no path can be opened."""
    if not hasattr(os, "pread"):  # Windows
        return 0
    try:
        if _statm[0] != (os.getpid(), root):
            _statm[:] = (os.getpid(), root), os.open(root / "proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        return int(os.pread(_statm[1], 256, 0).split()[1]) * PAGE
    except (OSError, ValueError, IndexError):
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most << 10


def _physical() -> int:
    if sys.platform == "win32":
        return _windows()[0]
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return UNKNOWN


def _free(root: Path) -> int:
    if sys.platform == "win32":
        return _windows()[1]
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (root / "proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return _physical()


def _windows() -> tuple[int, int]:
    """Physical memory: all of it, and what is free."""

    class Status(ctypes.Structure):
        _fields_ = [
            ("length", ctypes.c_uint32),
            ("load", ctypes.c_uint32),
            *((name, ctypes.c_uint64) for name in ("total", "free", "pages", "pages_free", "space", "space_free")),
            ("extended", ctypes.c_uint64),
        ]

    status = Status(length=ctypes.sizeof(Status))
    windll = getattr(ctypes, "windll", None)
    if windll is None or not windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return UNKNOWN, UNKNOWN
    return int(status.total), int(status.free)


def _groups(root: Path) -> Iterator[tuple[Path, str]]:
    """The folders of this process's memory cgroup, from its own up to the root, with the name of the limit in each."""
    try:
        entries = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return
    for line in entries:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            mount, name = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            mount, name = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        parts = [part for part in path.split("/") if part not in ("", ".", "..")]
        for length in range(len(parts), -1, -1):
            yield mount.joinpath(*parts[:length]), name


def _cgroup(root: Path) -> list[tuple[int, str]]:
    found = []
    for folder, name in _groups(root):
        with contextlib.suppress(OSError, ValueError):
            limit = int((folder / name).read_text(encoding="ascii"))  # "max" is no number
            if 0 <= limit < 1 << 60:  # version 1 writes a huge number for none
                found.append((limit, f"the container's limit, {name}"))
    return found


def _cgroup_used(root: Path) -> int:
    """The memory of the innermost group, without files that the system can drop from its cache."""
    for folder, name in _groups(root):
        used = folder / ("memory.current" if name == "memory.max" else "memory.usage_in_bytes")
        with contextlib.suppress(OSError, ValueError):
            value = int(used.read_text(encoding="ascii"))
            with contextlib.suppress(OSError, ValueError, IndexError):
                for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines():
                    if line.split()[0] in ("inactive_file", "total_inactive_file"):
                        return max(0, value - int(line.split()[1]))
            return value
    return 0


def _own() -> list[tuple[int, str]]:
    """The process's own limit (ulimit -v)."""
    try:
        import resource
    except ImportError:  # Windows
        return []
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return [] if limit in (resource.RLIM_INFINITY, -1) else [(int(limit), "the process's limit, ulimit -v")]


def _address_space(root: Path) -> int:
    try:
        return int((root / "proc/self/statm").read_text(encoding="ascii").split()[0]) * PAGE
    except (OSError, ValueError, IndexError):
        return 0


@contextlib.contextmanager
def growth_limited(most: int) -> Iterator[None]:
    """Inside, allocations beyond this many bytes of new addresses fail: MemoryError even within one long call of C,
    which no other thread of Python can interrupt. Without /proc there is no such limit."""
    had = _address_space(Path("/"))
    if not had:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = had + most if hard == resource.RLIM_INFINITY else min(had + most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def return_freed_memory() -> None:
    """Make glibc return large blocks to the system when they are freed. By default it raises its threshold after the
    first one and keeps up to 32 MB in every thread's arena, which a budget would have to count. No effect elsewhere."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    mallopt(M_MMAP_THRESHOLD, 256 * 1024)
    mallopt(M_ARENA_MAX, 2)


def release_library_pages() -> bool:
    """Release the clean pages of shared libraries, which the system reads again when needed (LLVM has 65 MB of them
    after the last kernel is loaded); whether that is possible here. Ranges with pages that were written, if only by
    relocation, are kept: the system counts those as anonymous."""
    libc = _libc()
    if libc is None:
        return False
    try:
        with open("/proc/self/smaps", encoding="ascii", errors="replace") as ranges:
            place: tuple[int, int] | None = None
            for line in ranges:
                fields = line.split()
                if not fields[0].endswith(":"):
                    first, _, last = fields[0].partition("-")
                    library = fields[1] in ("r-xp", "r--p") and len(fields) > 5 and ".so" in fields[5]
                    place = (int(first, 16), int(last, 16)) if library else None
                elif fields[0] == "Anonymous:" and fields[1] == "0" and place is not None:
                    libc.madvise(ctypes.c_void_p(place[0]), ctypes.c_size_t(place[1] - place[0]), MADV_DONTNEED)
    except (OSError, ValueError, IndexError):
        return False
    return True


def release_mapped_pages(low: int, high: int) -> None:
    """Release the pages of a shared file mapping; the system reads them again when needed, and changes are in the
    file."""
    libc, start = _libc(), low // PAGE * PAGE
    if libc is not None:
        libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(-(-high // PAGE) * PAGE - start), MADV_DONTNEED)


def fault_in(low: int, high: int) -> bool:
    """Fault in the pages of fresh memory, so that the first write does not; False where the system cannot."""
    libc = _libc()
    return libc is not None and not libc.madvise(ctypes.c_void_p(low), ctypes.c_size_t(high - low), MADV_POPULATE_WRITE)


def are_resident(low: int, high: int) -> bool:
    """Whether the first and the last page of a range are resident."""
    libc, there = _libc(), ctypes.c_ubyte(0)
    return libc is not None and all(
        not libc.mincore(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), ctypes.byref(there)) and there.value & 1
        for page in (low, high - PAGE)
    )


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if sys.platform == "linux" else None
