"""POSIX threads: what Linux and macOS have in common."""

from __future__ import annotations

from tilewise.backends.cpu.kernels.shared.ir import Function
from tilewise.backends.cpu.runtime.systems.cores_of_threads import CoresOfThreads


class Posix:
    cores_of_threads: CoresOfThreads | None = None

    def prepare(self, f: Function, lock: str, sleepers: str) -> None:
        f.call("i32", "pthread_mutex_init", [("ptr", lock), ("ptr", "null")])
        f.call("i32", "pthread_cond_init", [("ptr", sleepers), ("ptr", "null")])

    def acquire(self, f: Function, lock: str) -> None:
        f.call("i32", "pthread_mutex_lock", [("ptr", lock)])

    def release(self, f: Function, lock: str) -> None:
        f.call("i32", "pthread_mutex_unlock", [("ptr", lock)])

    def sleep(self, f: Function, sleepers: str, lock: str) -> None:
        f.call("i32", "pthread_cond_wait", [("ptr", sleepers), ("ptr", lock)])

    def wake_all(self, f: Function, sleepers: str) -> None:
        f.call("i32", "pthread_cond_broadcast", [("ptr", sleepers)])

    def give_way(self, f: Function) -> None:
        f.call("i32", "sched_yield", [])

    def start(self, f: Function, thread: str, function: str, argument: str) -> str:
        call = [("ptr", thread), ("ptr", "null"), ("ptr", function), ("ptr", argument)]
        return f.op(f"icmp eq i32 {f.call('i32', 'pthread_create', call)}, 0")

    def join(self, f: Function, handle: str) -> None:
        f.call("i32", "pthread_join", [("i64", handle), ("ptr", "null")])
