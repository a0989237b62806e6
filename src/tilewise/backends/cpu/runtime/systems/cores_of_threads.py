"""The current core and the affinity of threads on Linux: calls emitted into a function's IR."""

from __future__ import annotations

from tilewise.backends.cpu.runtime.pool_layout import MASK_SIZE
from tilewise.system.llvm_text import IRFunction


class CoresOfThreads:
    def core(self, f: IRFunction) -> str:
        """The core that this thread is on, as an i64."""
        return f.op(f"sext i32 {f.call('i32', 'sched_getcpu', [])} to i64")

    def thread(self, f: IRFunction) -> str:
        """This thread's handle, for the two that follow, as an i64."""
        return f.call("i64", "pthread_self", [])

    def affinity(self, f: IRFunction, thread: str, mask: str) -> str:
        """Writes a bit for each core that a thread may use; whether the call succeeded, as an i1."""
        answer = f.call("i32", "pthread_getaffinity_np", [("i64", thread), ("i64", 8 * MASK_SIZE), ("ptr", mask)])
        return f.op(f"icmp eq i32 {answer}, 0")

    def set_affinity(self, f: IRFunction, thread: str, mask: str) -> None:
        """The thread may use only these cores."""
        f.call("i32", "pthread_setaffinity_np", [("i64", thread), ("i64", 8 * MASK_SIZE), ("ptr", mask)])
