"""Windows: threads, slim locks and condition variables of kernel32, which every process has loaded."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from tilewise.system.llvm_text import IRFunction

FOREVER = -1


class Windows:
    cores_of_threads = None

    def __init__(self, kernel32: Any = None) -> None:
        self._kernel32 = kernel32

    @property
    def kernel32(self) -> Any:
        return self._kernel32 or ctypes.windll.kernel32  # type: ignore[attr-defined,unused-ignore]

    def prepare(self, f: IRFunction, lock: str, condition: str) -> None:
        f.call("void", "InitializeSRWLock", [("ptr", lock)])
        f.call("void", "InitializeConditionVariable", [("ptr", condition)])

    def acquire(self, f: IRFunction, lock: str) -> None:
        f.call("void", "AcquireSRWLockExclusive", [("ptr", lock)])

    def release(self, f: IRFunction, lock: str) -> None:
        f.call("void", "ReleaseSRWLockExclusive", [("ptr", lock)])

    def sleep(self, f: IRFunction, condition: str, lock: str) -> None:
        f.call("i32", "SleepConditionVariableSRW", [("ptr", condition), ("ptr", lock), ("i32", FOREVER), ("i32", 0)])

    def wake_all(self, f: IRFunction, condition: str) -> None:
        f.call("void", "WakeAllConditionVariable", [("ptr", condition)])

    def yield_core(self, f: IRFunction) -> None:
        f.call("i32", "SwitchToThread", [])

    def start(self, f: IRFunction, thread: str, function: str, argument: str) -> str:
        plain: list[tuple[str, str | int]] = [("ptr", "null"), ("i64", 0)]
        handle = f.call(
            "ptr", "CreateThread", [*plain, ("ptr", function), ("ptr", argument), ("i32", 0), ("ptr", "null")]
        )
        f.store("ptr", handle, thread)
        return f.op(f"icmp ne ptr {handle}, null")

    def join(self, f: IRFunction, handle: str) -> None:
        thread = f.op(f"inttoptr i64 {handle} to ptr")
        f.call("i32", "WaitForSingleObject", [("ptr", thread), ("i32", FOREVER)])
        f.call("i32", "CloseHandle", [("ptr", thread)])

    def cores(self) -> int:
        """By the process's affinity; a process in several groups of 64 has no mask, and may use every core."""
        process, system = ctypes.c_size_t(), ctypes.c_size_t()
        current = ctypes.c_void_p(-1)  # what GetCurrentProcess returns
        if self.kernel32.GetProcessAffinityMask(current, ctypes.byref(process), ctypes.byref(system)):
            return process.value.bit_count() or os.cpu_count() or 1
        return os.cpu_count() or 1

    def permits_amx(self) -> bool:
        return False
