"""POSIX threads: what Linux and macOS have in common."""

from __future__ import annotations

import os

from tilewise.backends.cpu.runtime.systems.cores_of_threads import CoresOfThreads
from tilewise.system.llvm_text import IRFunction


class Posix:
    """The methods for threads emit system calls into a function's IR; `cores` is called from Python. `lock`,
    `condition` and `thread` are addresses in the pool, with room for any system's objects."""

    cores_of_threads: CoresOfThreads | None = None  # None: the system has no such calls, and no affinity is changed

    def prepare(self, f: IRFunction, lock: str, condition: str) -> None:
        """Initialise a lock and a condition variable."""
        f.call("i32", "pthread_mutex_init", [("ptr", lock), ("ptr", "null")])
        f.call("i32", "pthread_cond_init", [("ptr", condition), ("ptr", "null")])

    def acquire(self, f: IRFunction, lock: str) -> None:
        f.call("i32", "pthread_mutex_lock", [("ptr", lock)])

    def release(self, f: IRFunction, lock: str) -> None:
        f.call("i32", "pthread_mutex_unlock", [("ptr", lock)])

    def sleep(self, f: IRFunction, condition: str, lock: str) -> None:
        """Release the lock, sleep until woken (or spuriously), acquire the lock again."""
        f.call("i32", "pthread_cond_wait", [("ptr", condition), ("ptr", lock)])

    def wake_all(self, f: IRFunction, condition: str) -> None:
        f.call("i32", "pthread_cond_broadcast", [("ptr", condition)])

    def yield_core(self, f: IRFunction) -> None:
        """Let another thread have this core."""
        f.call("i32", "sched_yield", [])

    def start(self, f: IRFunction, thread: str, function: str, argument: str) -> str:
        """Start a thread and store its handle at `thread`; whether that succeeded, as an i1."""
        call = [("ptr", thread), ("ptr", "null"), ("ptr", function), ("ptr", argument)]
        return f.op(f"icmp eq i32 {f.call('i32', 'pthread_create', call)}, 0")

    def join(self, f: IRFunction, handle: str) -> None:
        f.call("i32", "pthread_join", [("i64", handle), ("ptr", "null")])

    def cores(self) -> int:
        """Cores that this process may use: without affinity, slow ones too, which take fewer tasks."""
        return os.cpu_count() or 1

    def permits_amx(self) -> bool:
        """Whether this process may use AMX's tiles, which a system saves for those that request them."""
        return False
