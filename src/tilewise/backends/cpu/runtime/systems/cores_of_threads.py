"""Where threads run and may run, on systems that have such calls."""

from __future__ import annotations

from typing import Protocol

from tilewise.system.llvm_text import IRFunction


class CoresOfThreads(Protocol):
    """Calls of the system, written into a function's IR, for where threads run."""

    def core(self, f: IRFunction) -> str:
        """The core that this thread is on, as an i64."""

    def thread(self, f: IRFunction) -> str:
        """This thread's handle, for the two that follow, as an i64."""

    def affinity(self, f: IRFunction, thread: str, mask: str) -> str:
        """Writes a bit for each core that a thread may use; whether the call succeeded, as an i1."""

    def set_affinity(self, f: IRFunction, thread: str, mask: str) -> None:
        """The thread may use only these cores."""
