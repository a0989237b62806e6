"""Where a worker may wake: never on the core of the thread that calls, wherever it parked."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tilewise.backends.cpu.runtime import compile, pool
from tilewise.backends.cpu.runtime.placing import move_off_caller_core, restore_affinity
from tilewise.backends.cpu.runtime.pool_layout import CALLER_CORE, CORE, MOVED, PREVIOUS_CORE, SLOT_SIZE, WORKER_THREAD
from tilewise.backends.cpu.runtime.systems import system_of
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.system.builtin_call import builtin
from tilewise.system.llvm_text import IRFunction, module

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir() or pool.available_cores() < 2,
    reason="needs two cores and a system with affinities",
)


@pytest.fixture
def sleeper() -> Iterator[threading.Thread]:
    """A thread that waits, as a worker that parks."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    yield thread
    done.set()
    thread.join()


def native(name: str) -> object:
    """What the one that wakes does with a slot, and what the worker does when it is up, if it is the one that calls."""
    f = IRFunction(name, "ptr pool, ptr slot", public=True)
    if name == "send":
        move_off_caller_core(f, system_of().cores_of_threads, "%slot", always=True)
    else:
        restore_affinity(f, system_of().cores_of_threads, "%slot")
    return builtin(compile.load(module([f]), host_target(), (name,))[name], "ww", returns=False)


@pytest.mark.parametrize("met", [True, False])
def test_a_worker_is_sent_off_the_callers_core_wherever_it_parked(sleeper: threading.Thread, met: bool) -> None:
    """Linux wakes it beside the one that wakes it, too: two threads took as long as one, for milliseconds."""
    cores = os.sched_getaffinity(0)
    home, other = sorted(cores)[:2]
    memory, slot = np.zeros(64, np.int64), np.zeros(SLOT_SIZE, np.int64)
    memory[CALLER_CORE], memory[PREVIOUS_CORE] = home + 1, other + 1
    slot[CORE], slot[WORKER_THREAD] = (home if met else other) + 1, sleeper.ident
    native("send")(memory.ctypes.data, slot.ctypes.data)
    assert slot[MOVED] == 1
    assert os.sched_getaffinity(sleeper.native_id) == ({other} if met else cores - {home})


def test_a_worker_that_is_up_may_be_anywhere_again() -> None:
    cores = os.sched_getaffinity(0)
    home, other = sorted(cores)[:2]
    memory, slot = np.zeros(64, np.int64), np.zeros(SLOT_SIZE, np.int64)
    memory[CALLER_CORE], slot[CORE], slot[WORKER_THREAD] = home + 1, other + 1, threading.get_ident()
    try:
        native("send")(memory.ctypes.data, slot.ctypes.data)
        assert os.sched_getaffinity(0) == cores - {home}
        native("back")(memory.ctypes.data, slot.ctypes.data)
        assert os.sched_getaffinity(0) == cores
    finally:
        os.sched_setaffinity(0, cores)
