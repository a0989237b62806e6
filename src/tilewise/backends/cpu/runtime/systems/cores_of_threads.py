"""What some systems tell of threads: where they are, and where they may be."""

from __future__ import annotations

from typing import Protocol

from tilewise.backends.cpu.kernels.shared.ir import Function


class CoresOfThreads(Protocol):
    """Calls of the system, written into a function's IR."""

    def core(self, f: Function) -> str:
        """The core that this thread is on, as an i64."""

    def itself(self, f: Function) -> str:
        """This thread, for the two that follow, as an i64."""

    def ask(self, f: Function, thread: str, mask: str) -> str:
        """Writes a bit for each core that a thread may use; whether that went well, as an i1."""

    def allow(self, f: Function, thread: str, mask: str) -> None:
        """Only these from now on."""
