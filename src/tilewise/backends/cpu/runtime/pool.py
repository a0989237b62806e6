"""Threads that run a job's tasks, and how many of them. Their machine code is in `workers`."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tilewise.backends.cpu.kernels.shared.job import job_of
from tilewise.backends.cpu.runtime import compile, threadpools
from tilewise.backends.cpu.runtime.placing import core_sets
from tilewise.backends.cpu.runtime.pool_layout import MASK, MASK_SIZE, SLOT_SIZE, SLOTS, SPARE, SPIN, pool_size
from tilewise.backends.cpu.runtime.systems import system_of
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.backends.cpu.runtime.workers import pool_module
from tilewise.errors import UsageError
from tilewise.system.builtin_call import builtin
from tilewise.system.timing import least_seconds

KINDS = {
    "run": "w" * 5, "launch": "w" * 7, "launch_arrays": "wwoooww", "launch_arrays_and_arg": "wwoooow", "start": "ww",
    "stop": "ww", "pauses": "w",
}  # fmt: skip
SPINS = 200e-6  # seconds that a worker spins before it parks; waking it takes a quarter of that
CROWDED = 16  # pauses instead where there are more threads than cores


@lru_cache(maxsize=1)
def native_addresses() -> dict[str, int]:
    """The addresses of the pool's functions."""
    threadpools.register(num_threads, set_num_threads)
    return compile.load(pool_module(host_target()), host_target(), tuple(KINDS))


@lru_cache(maxsize=1)
def native() -> dict[str, Any]:
    """The pool's functions, callable; the GIL is released inside. Arrays come as objects to `launch_arrays`."""
    return {name: builtin(at, KINDS[name], returns=name == "start") for name, at in native_addresses().items()}


class Pool:
    """`workers` native threads beside the calling one."""

    def __init__(self, workers: int) -> None:
        self.requested = workers
        self.memory = (ctypes.c_int64 * (pool_size(workers) + 8))()
        self.address = (ctypes.addressof(self.memory) + 63) // 64 * 64
        rounds = CROWDED if workers + 1 > available_cores() else max(CROWDED, round(SPINS / _pause_seconds()))
        ctypes.c_int64.from_address(self.address + 8 * SPIN).value = rounds
        for thread, cores in enumerate(core_sets(_allowed_cores(), workers + 1)):
            mask = SLOTS + SLOT_SIZE * (thread - 1) + MASK if thread else SPARE
            ctypes.memmove(self.address + 8 * mask, cores.to_bytes(8 * MASK_SIZE, "little"), 8 * MASK_SIZE)
        self.workers = int(native()["start"](self.address, workers))

    def stop(self) -> None:
        native()["stop"](self.address, self.workers)
        self.workers = 0


def _allowed_cores() -> list[int]:
    """Those that workers may be placed on; none where the system cannot place threads."""
    placed = system_of().cores_of_threads
    return placed.allowed() if placed is not None else []


@lru_cache(maxsize=1)
def _pause_seconds() -> float:
    """Seconds of one `pause`: 5 to 50 ns, by the processor."""
    return max(least_seconds(lambda: native()["pauses"](200)), 1e-7) / 200


_pool: Pool | None = None
_threads: int | None = None
_changing = threading.Lock()


def run_tasks(task: int, job: int, count: int, threads: int) -> None:
    """Run `count` tasks with up to `threads` threads; `job` is its address."""
    pool = current_pool() if threads > 1 else None
    native()["run"](pool.address if pool else 0, task, job, count, threads)


def run_job(task: int, count: int, threads: int, **values: int) -> None:
    """`run_tasks` of a job with these fields."""
    job = job_of(**values)
    run_tasks(task, ctypes.addressof(job), count, min(threads, count))


def current_pool() -> Pool | None:
    """The pool for as many threads as are set; None where that is one, or another thread is resizing it.

    The caller keeps a reference for as long as it uses the pool.
    """
    global _pool
    pool, workers = _pool, num_threads() - 1
    if pool is not None and pool.requested == workers:
        return pool
    if not workers or not _changing.acquire(blocking=False):
        return None
    try:
        if _pool is not None:
            _pool.stop()
        _pool = Pool(workers)
        return _pool
    finally:
        _changing.release()


on_resize: list[Callable[[], None]] = []  # callbacks that drop plans for another number of threads


def num_threads() -> int:
    """Threads a product may use: what was set, else TILEWISE_NUM_THREADS, else OMP_NUM_THREADS, else the cores this
    process may use."""
    global _threads
    if _threads is None:
        setting = os.environ.get("TILEWISE_NUM_THREADS")
        _threads = _checked(setting, "TILEWISE_NUM_THREADS") if setting else _openmp_threads() or available_cores()
    return _threads


def get_num_threads() -> int:
    """How many threads a product on the CPU may use now; see `tw.set_num_threads`.

    >>> tw.set_num_threads(1)
    >>> tw.get_num_threads()
    1
    >>> tw.set_num_threads(None)
    """
    return num_threads()


def _openmp_threads() -> int | None:
    """OMP_NUM_THREADS, whose first number is that of the outermost level; None where it is not set or has none."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return min(int(first), 1024) if first.isdecimal() and int(first) else None


def set_num_threads(count: int | None) -> None:
    """How many threads a product on the CPU may use; None: by the environment and the machine.

    >>> tw.set_num_threads(2)
    >>> tw.get_num_threads()
    2
    >>> tw.set_num_threads(None)
    """
    global _threads
    before, _threads = _threads, None if count is None else _checked(count, "count")
    if before is None or before != _threads:
        for forget in on_resize:
            forget()


def _checked(value: object, name: str) -> int:
    try:
        count = int(str(value))
    except ValueError:
        count = 0
    if isinstance(value, bool) or not 1 <= count <= 1024:
        raise UsageError(f"{name}={value!r} must be a whole number of threads from 1 to 1024")
    return count


def available_cores() -> int:
    """Cores by affinity, and by quotas where there are any."""
    return system_of().cores()


def _forget() -> None:
    """In a forked child, which has none of its parent's workers; another thread may have held the lock."""
    global _pool, _changing
    _pool, _changing = None, threading.Lock()


def _close() -> None:
    global _pool
    pool, _pool = _pool, None
    if pool is not None:
        pool.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
atexit.register(_close)
