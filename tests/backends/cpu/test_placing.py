"""Which cores workers have, and that they are not woken on the calling thread's."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tilewise.algebra.dtypes import Array
from tilewise.backends.cpu.runtime import compile, pool
from tilewise.backends.cpu.runtime.placing import avoid_caller_core, core_sets
from tilewise.backends.cpu.runtime.pool_layout import (
    AVOIDED,
    CALLER_CORE,
    MASK,
    MASK_SIZE,
    SLOT_SIZE,
    SLOTS,
    SPARE,
    WORKER_THREAD,
)
from tilewise.backends.cpu.runtime.systems import system_of
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.system.builtin_call import builtin
from tilewise.system.llvm_text import IRFunction, module

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir() or pool.available_cores() < 2,
    reason="needs two cores and a system with affinities",
)


Avoid = Callable[[int, int], None]


@pytest.fixture
def sleeper() -> Iterator[threading.Thread]:
    """A thread that waits, as a worker that parks."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    yield thread
    done.set()
    thread.join()


@pytest.fixture(scope="module")
def avoid() -> Avoid:
    """What a waker does: its parameters are the addresses of the pool and of the worker's slot."""
    f = IRFunction("avoid", "ptr pool, ptr slot", public=True)
    avoid_caller_core(f, system_of().cores_of_threads, "%slot")
    return builtin(compile.load(module([f]), host_target(), ("avoid",))["avoid"], "ww", returns=False)


def bits(*cores: int) -> list[int]:
    """The fields of a mask."""
    whole = sum(1 << core for core in cores)
    return [int(np.uint64(whole >> 64 * i & 2**64 - 1).astype(np.int64)) for i in range(MASK_SIZE)]


def woken(avoid: Avoid, memory: Array, slot: Array, caller: int) -> None:
    memory[CALLER_CORE] = caller + 1
    avoid(memory.ctypes.data, slot.ctypes.data)


def test_cores_are_divided_among_the_threads() -> None:
    assert core_sets([0, 1, 2, 3], 4) == [0b1, 0b10, 0b100, 0b1000]
    assert core_sets([2, 5, 6, 7, 70], 2) == [1 << 2 | 1 << 6 | 1 << 70, 1 << 5 | 1 << 7]
    assert core_sets([0, 1], 3) == []
    assert core_sets([], 1) == []
    assert core_sets([1024, 1025], 2) == []


def test_a_worker_leaves_the_callers_core_and_returns(avoid: Avoid, sleeper: threading.Thread) -> None:
    """With one core each, the caller on the worker's own sends it to the first part."""
    first, second = sorted(os.sched_getaffinity(0))[:2]
    memory, slot = np.zeros(SLOTS, np.int64), np.zeros(SLOT_SIZE, np.int64)
    memory[SPARE : SPARE + MASK_SIZE], slot[MASK : MASK + MASK_SIZE] = bits(first), bits(second)
    slot[WORKER_THREAD] = sleeper.ident
    os.sched_setaffinity(sleeper.native_id, {second})
    woken(avoid, memory, slot, caller=second)
    assert os.sched_getaffinity(sleeper.native_id) == {first}
    assert slot[AVOIDED] == second + 1
    woken(avoid, memory, slot, caller=second)
    assert os.sched_getaffinity(sleeper.native_id) == {first}
    woken(avoid, memory, slot, caller=first)
    assert os.sched_getaffinity(sleeper.native_id) == {second}
    assert slot[AVOIDED] == 0


def test_a_worker_with_several_cores_uses_its_others(avoid: Avoid, sleeper: threading.Thread) -> None:
    cores = sorted(os.sched_getaffinity(0))
    memory, slot = np.zeros(SLOTS, np.int64), np.zeros(SLOT_SIZE, np.int64)
    slot[MASK : MASK + MASK_SIZE], slot[WORKER_THREAD] = bits(*cores), sleeper.ident
    woken(avoid, memory, slot, caller=cores[0])
    assert os.sched_getaffinity(sleeper.native_id) == set(cores[1:])
    woken(avoid, memory, slot, caller=cores[1])
    assert os.sched_getaffinity(sleeper.native_id) == {*cores} - {cores[1]}


def test_without_a_core_of_its_own_a_worker_stays_as_it_is(avoid: Avoid, sleeper: threading.Thread) -> None:
    cores = os.sched_getaffinity(sleeper.native_id)
    memory, slot = np.zeros(SLOTS, np.int64), np.zeros(SLOT_SIZE, np.int64)
    slot[WORKER_THREAD] = sleeper.ident
    woken(avoid, memory, slot, caller=min(cores))
    assert os.sched_getaffinity(sleeper.native_id) == cores
    assert slot[AVOIDED] == 0


def test_workers_of_a_pool_have_cores_of_their_own() -> None:
    cores = sorted(os.sched_getaffinity(0))
    before = set(os.listdir("/proc/self/task"))
    made = pool.Pool(len(cores) - 1)
    try:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            started = {int(task) for task in set(os.listdir("/proc/self/task")) - before}
            places = sorted(sorted(os.sched_getaffinity(task)) for task in started)
            if places == [[core] for core in cores[1:]]:
                break
        assert places == [[core] for core in cores[1:]]
    finally:
        made.stop()
