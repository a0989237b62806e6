"""Threads and cores of an operating system: one file a system, all with the same methods.

Methods for threads write calls of the system into a function's IR; `cores` is called from Python.
"""

from __future__ import annotations

import sys
from typing import Protocol

from tilewise.backends.cpu.runtime.systems.cores_of_threads import CoresOfThreads
from tilewise.system.llvm_text import IRFunction


class System(Protocol):
    """`lock`, `condition` and `thread` are addresses in the pool, with room for any system's objects."""

    @property
    def cores_of_threads(self) -> CoresOfThreads | None:
        """None where the system has no such calls: then no affinity is changed."""

    def prepare(self, f: IRFunction, lock: str, condition: str) -> None:
        """Initialise a lock and a condition variable."""

    def acquire(self, f: IRFunction, lock: str) -> None: ...

    def release(self, f: IRFunction, lock: str) -> None: ...

    def sleep(self, f: IRFunction, condition: str, lock: str) -> None:
        """Release the lock, sleep until woken (or spuriously), acquire the lock again."""

    def wake_all(self, f: IRFunction, condition: str) -> None: ...

    def yield_core(self, f: IRFunction) -> None:
        """Let another thread have this core."""

    def start(self, f: IRFunction, thread: str, function: str, argument: str) -> str:
        """Start a thread and store its handle at `thread`; whether that succeeded, as an i1."""

    def join(self, f: IRFunction, handle: str) -> None:
        """Wait for a thread's end; `handle` is what `start` left."""

    def cores(self) -> int:
        """Cores that this process may use."""


def system_of(platform: str = sys.platform) -> System:
    if platform == "win32":
        from tilewise.backends.cpu.runtime.systems.windows import Windows

        return Windows()
    if platform == "darwin":  # it has no affinity; slow cores count too, and take fewer tasks
        from tilewise.backends.cpu.runtime.systems.posix import Posix

        return Posix()
    from tilewise.backends.cpu.runtime.systems.linux import Linux

    return Linux()
