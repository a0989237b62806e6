"""What an operating system is asked for: threads and cores. One file a system, all with the same names.

What concerns threads writes calls of the system into a function's IR; `cores` is asked from Python.
"""

from __future__ import annotations

import sys
from typing import Protocol

from tilewise.backends.cpu.kernels.shared.ir import Function
from tilewise.backends.cpu.runtime.systems.cores_of_threads import CoresOfThreads


class System(Protocol):
    """`lock`, `sleepers` and `thread` are addresses of words of the pool, large enough for any system's own."""

    @property
    def cores_of_threads(self) -> CoresOfThreads | None:
        """None where nobody tells: then no thread is sent anywhere."""

    def prepare(self, f: Function, lock: str, sleepers: str) -> None:
        """Make a lock, and a place to sleep under it."""

    def acquire(self, f: Function, lock: str) -> None: ...

    def release(self, f: Function, lock: str) -> None: ...

    def sleep(self, f: Function, sleepers: str, lock: str) -> None:
        """Let go of the lock, sleep until woken (or for no reason), take the lock again."""

    def wake_all(self, f: Function, sleepers: str) -> None: ...

    def give_way(self, f: Function) -> None:
        """Let another thread have this core."""

    def start(self, f: Function, thread: str, function: str, argument: str) -> str:
        """A new thread, whose handle goes to the word at `thread`; whether there is one, as an i1."""

    def join(self, f: Function, handle: str) -> None:
        """Wait for a thread's end; `handle` is what `start` left."""

    def cores(self) -> int:
        """Cores that this process may use."""


def system_of(platform: str = sys.platform) -> System:
    if platform == "win32":
        from tilewise.backends.cpu.runtime.systems.windows import Windows

        return Windows()
    if platform == "darwin":
        from tilewise.backends.cpu.runtime.systems.macos import MacOS

        return MacOS()
    from tilewise.backends.cpu.runtime.systems.linux import Linux

    return Linux()
