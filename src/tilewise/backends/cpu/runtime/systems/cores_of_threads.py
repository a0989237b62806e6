"""The current core and the affinity of threads on Linux: calls emitted into a function's IR."""

from __future__ import annotations

import os

from tilewise.backends.cpu.runtime.pool_layout import MASK_SIZE
from tilewise.system.llvm_text import IRFunction


class CoresOfThreads:
    def allowed(self) -> list[int]:
        """The cores that the calling thread may use; called from Python."""
        return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []

    def core(self, f: IRFunction) -> str:
        """The core that this thread is on, as an i64."""
        return f.op(f"sext i32 {f.call('i32', 'sched_getcpu', [])} to i64")

    def thread(self, f: IRFunction) -> str:
        """This thread's handle, as an i64."""
        return f.call("i64", "pthread_self", [])

    def set_affinity(self, f: IRFunction, thread: str, mask: str) -> None:
        """The thread may use only these cores; a mask without cores is refused, and changes nothing."""
        f.call("i32", "pthread_setaffinity_np", [("i64", thread), ("i64", 8 * MASK_SIZE), ("ptr", mask)])
