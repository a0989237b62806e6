"""Threads and cores of Linux, macOS and Windows; other systems than this one are faked."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import DTYPES
from tilewise.backends.cpu.kernels.shared.arithmetic import arithmetic
from tilewise.backends.cpu.registry import FAMILIES
from tilewise.backends.cpu.runtime import compile
from tilewise.backends.cpu.runtime.pool import available_cores
from tilewise.backends.cpu.runtime.pool_layout import pool_size
from tilewise.backends.cpu.runtime.systems import system_of
from tilewise.backends.cpu.runtime.systems.linux import cgroup_quota
from tilewise.backends.cpu.runtime.systems.windows import Windows
from tilewise.backends.cpu.runtime.target import host_target, known_target
from tilewise.backends.cpu.runtime.workers import pool_module

KERNEL32 = """
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @sched_yield()
define void @InitializeSRWLock(ptr %x) { call i32 @pthread_mutex_init(ptr %x, ptr null) ret void }
define void @AcquireSRWLockExclusive(ptr %x) { call i32 @pthread_mutex_lock(ptr %x) ret void }
define void @ReleaseSRWLockExclusive(ptr %x) { call i32 @pthread_mutex_unlock(ptr %x) ret void }
define void @InitializeConditionVariable(ptr %x) { call i32 @pthread_cond_init(ptr %x, ptr null) ret void }
define i32 @SleepConditionVariableSRW(ptr %c, ptr %x, i32 %ms, i32 %flags) {
  call i32 @pthread_cond_wait(ptr %c, ptr %x) ret i32 1
}
define void @WakeAllConditionVariable(ptr %c) { call i32 @pthread_cond_broadcast(ptr %c) ret void }
define i32 @SwitchToThread() { %r = call i32 @sched_yield() ret i32 %r }
define ptr @CreateThread(ptr %s, i64 %size, ptr %f, ptr %a, i32 %flags, ptr %id) {
  %place = alloca ptr
  store ptr null, ptr %place
  call i32 @pthread_create(ptr %place, ptr null, ptr %f, ptr %a)
  %thread = load ptr, ptr %place
  ret ptr %thread
}
define i32 @WaitForSingleObject(ptr %t, i32 %ms) {
  %n = ptrtoint ptr %t to i64
  call i32 @pthread_join(i64 %n, ptr null)
  ret i32 0
}
define i32 @CloseHandle(ptr %t) { ret i32 1 }
"""
NAMES = ("InitializeSRWLock", "AcquireSRWLockExclusive", "ReleaseSRWLockExclusive", "InitializeConditionVariable",
         "SleepConditionVariableSRW", "WakeAllConditionVariable", "SwitchToThread", "CreateThread",
         "WaitForSingleObject", "CloseHandle")  # fmt: skip
TASK = """
define void @task(ptr %job, i64 %task, i64 %worker) {
  %done = getelementptr i64, ptr %job, i64 %task
  atomicrmw add ptr %done, i64 1 seq_cst
  %who = getelementptr i64, ptr %job, i64 %worker
  %seen = getelementptr i64, ptr %who, i64 1000
  atomicrmw add ptr %seen, i64 1 seq_cst
  ret void
}
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the fake uses POSIX threads")
def test_the_pool_of_windows_behind_a_fake_kernel32() -> None:
    """Every task once, by several threads, which park in between and end with `stop`."""
    llvm = compile._llvm()
    for name, place in compile.load(KERNEL32, host_target(), NAMES).items():
        llvm.add_symbol(name, place)
    found = compile.load(pool_module(host_target(), Windows()), host_target(), ("run", "start", "stop"))
    task = compile.load(TASK, host_target(), ("task",))["task"]
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    start = ctypes.CFUNCTYPE(number, pointer, number)(found["start"])
    stop = ctypes.CFUNCTYPE(None, pointer, number)(found["stop"])
    run = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, number, number)(found["run"])
    memory = (ctypes.c_int64 * (pool_size(3) + 8))()
    pool = (ctypes.addressof(memory) + 63) // 64 * 64
    assert start(pool, 3) == 3
    took_part: set[int] = set()
    until, turn = time.monotonic() + 30, 0
    while turn < 60 or (len(took_part) < 2 and time.monotonic() < until):  # a busy machine may have no core to spare
        turn += 1
        job = (ctypes.c_int64 * 1010)()
        run(pool, task, ctypes.addressof(job), 1000, 4)
        assert list(job[:1000]) == [1] * 1000
        took_part |= {worker for worker in range(4) if job[1000 + worker]}
        if turn % 20 == 0:
            time.sleep(0.02)  # long enough to park
    stop(pool, 3)
    assert len(took_part) > 1


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("name", "triple", "platform", "magic", "calls"),
    [("avx2", "x86_64-pc-windows-msvc", "win32", b"\x64\x86", b"CreateThread"),
     ("neon", "aarch64-pc-windows-msvc", "win32", b"\x64\xaa", b"CreateThread"),
     ("neon", "arm64-apple-macosx14.0", "darwin", b"\xcf\xfa\xed\xfe", b"_pthread_create"),
     ("avx2", "x86_64-apple-macosx14.0", "darwin", b"\xcf\xfa\xed\xfe", b"_pthread_create")],
)  # fmt: skip
def test_pool_and_kernels_compile_for_other_systems(
    name: str, triple: str, platform: str, magic: bytes, calls: bytes
) -> None:
    target, number = replace(known_target(name), triple=triple), DTYPES["float32"]
    pool = compile.object_code(pool_module(target, system_of(platform)), target)
    assert pool.startswith(magic)
    assert calls in pool
    a = arithmetic(find_semiring("min_plus").over(number), number, number, target)
    for kernel in ("tiny", "packed_n"):
        assert compile.object_code(FAMILIES[kernel].text(a), target).startswith(magic)


class Kernel32:
    """As much of it as counts cores."""

    def __init__(self, mask: int) -> None:
        self.mask = mask

    def GetProcessAffinityMask(self, process: object, mask: object, system: object) -> int:
        mask._obj.value = self.mask  # type: ignore[attr-defined]
        return int(self.mask != 0)


def test_windows_counts_the_cores_of_its_affinity_mask() -> None:
    assert Windows(Kernel32(0b1011)).cores() == 3
    assert Windows(Kernel32(0)).cores() == os.cpu_count()


def test_macos_has_as_many_threads_as_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 10)
    assert system_of("darwin").cores() == 10


def test_this_machine() -> None:
    assert 1 <= available_cores() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(
    ("text", "cores"), [("max 100000", None), ("150000 100000", 2), ("50000 100000", 1), ("", None)]
)
def test_a_cgroups_quota_counts(text: str, cores: int | None, tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text(text)
    assert cgroup_quota(tmp_path, tmp_path / "none") == cores


def test_the_quota_of_a_cgroup_around_ours_counts_too(tmp_path: Path) -> None:
    inner = tmp_path / "user" / "job"
    inner.mkdir(parents=True)
    (tmp_path / "own").write_text("0::/user/job\n")
    assert cgroup_quota(tmp_path, tmp_path / "own") is None
    (inner / "cpu.max").write_text("800000 100000")
    assert cgroup_quota(tmp_path, tmp_path / "own") == 8
    (inner.parent / "cpu.max").write_text("300000 100000")
    assert cgroup_quota(tmp_path, tmp_path / "own") == 3


def test_version_one_of_cgroups(tmp_path: Path) -> None:
    own = tmp_path / "cpu" / "docker" / "x"
    own.mkdir(parents=True)
    (own / "cpu.cfs_quota_us").write_text("250000")
    (own / "cpu.cfs_period_us").write_text("100000")
    (tmp_path / "own").write_text("4:cpu,cpuacct:/docker/x\n3:memory:/docker/x\n")
    assert cgroup_quota(tmp_path, tmp_path / "own") == 3
