"""Threads that run a job's tasks: a native pool, because waking a Python thread takes longer than a small product.

Workers spin a little after each job and then park. A job is open while there are tasks left; a worker that wakes late
finds it closed, and nobody has waited for it. The thread that calls takes part. A second caller meanwhile (another
Python thread, a nested use) runs its own tasks by itself: which thread runs a task never changes a bit of the result.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import platform
import sys
import threading
from functools import lru_cache
from typing import Any

from tilewise.engines.cpu import compile
from tilewise.engines.cpu.ir import Function, module
from tilewise.engines.cpu.known import KNOWN
from tilewise.engines.cpu.target import host_target
from tilewise.errors import UsageError

SPIN = 2000  # rounds of `pause` before a worker parks: about 0.1 ms
OPEN = 1 << 31
THREADED = sys.platform != "win32"  # the pool stands on POSIX threads; without them a product runs in one thread
# words of the pool: generation, open bit and how many are inside share the first, so one exchange joins a job
STATE, NEXT, TASK, JOB, COUNT, SLEEPERS, QUIT, IDENTITY, MUTEX, CONDITION, THREADS = (
    0,
    8,
    16,
    17,
    18,
    24,
    25,
    26,
    32,
    64,
    96,
)
WORDS = THREADS + 1024


def pool_module() -> str:
    if not THREADED:
        return module([_serial()])
    return module([_pause(), _take(), _work(), _submit(), _serial(), _start(), _stop()])


def _pause() -> Function:
    f = Function("pause", [])
    arm = platform.machine().lower() in ("aarch64", "arm64")
    if arm:
        f.call("void", "llvm.aarch64.hint", [("i32", 1)])  # yield
    else:
        f.call("void", "llvm.x86.sse2.pause", [])
    return f


def _word(f: Function, number: int) -> str:
    return f.at("i64", "%pool", number)


def _load(f: Function, number: int) -> str:
    return f.op(f"load atomic i64, ptr {_word(f, number)} seq_cst, align 8")


def _store(f: Function, number: int, value: str | int) -> None:
    f.do(f"store atomic i64 {value}, ptr {_word(f, number)} seq_cst, align 8")


def _take() -> Function:
    """Take tasks until none is left."""
    f = Function("take", [("ptr", "pool"), ("i64", "worker")])
    task, job, count = (f.op(f"load i64, ptr {_word(f, n)}, align 8") for n in (TASK, JOB, COUNT))
    function, argument = f.op(f"inttoptr i64 {task} to ptr"), f.op(f"inttoptr i64 {job} to ptr")
    again, run, done = f.label("again"), f.label("run"), f.label("done")
    f.do(f"br label %{again}")
    f.start(again)
    mine = f.op(f"atomicrmw add ptr {_word(f, NEXT)}, i64 1 seq_cst")
    f.do(f"br i1 {f.test('slt', mine, count)}, label %{run}, label %{done}")
    f.start(run)
    f.do(f"call void {function}(ptr {argument}, i64 {mine}, i64 %worker)")
    f.do(f"br label %{again}")
    f.start(done)
    return f


def _work() -> Function:
    """A worker's life: wait for a job it has not seen, join it if it is still open, leave it."""
    f = Function("work", [("ptr", "pool")], public=True, result="ptr")
    worker = f.op(f"atomicrmw add ptr {_word(f, IDENTITY)}, i64 1 seq_cst")
    seen = f.op("alloca i64")
    f.do(f"store i64 0, ptr {seen}")
    wait, park, sleep, nap, woken, look, join, enter, over, leave = (
        f.label(x) for x in ("wait", "park", "sleep", "nap", "woken", "look", "join", "enter", "over", "leave")
    )
    f.do(f"br label %{wait}")
    f.start(wait)
    last = f.op(f"load i64, ptr {seen}")
    with f.loop(0, SPIN) as spin:
        new = f.test("ne", f.op(f"lshr i64 {_load(f, STATE)}, 32"), last)
        f.do("call void @pause()")
        f.do(f"br i1 {new}, label %{look}, label %{spin.index[1:]}.on")
        f.start(f"{spin.index[1:]}.on")
    f.do(f"br label %{park}")
    f.start(park)
    f.call("i32", "pthread_mutex_lock", [("ptr", _word(f, MUTEX))])
    f.op(f"atomicrmw add ptr {_word(f, SLEEPERS)}, i64 1 seq_cst")
    f.do(f"br label %{sleep}")
    f.start(sleep)
    new = f.test("ne", f.op(f"lshr i64 {_load(f, STATE)}, 32"), last)
    f.do(f"br i1 {new}, label %{woken}, label %{nap}")
    f.start(nap)
    f.call("i32", "pthread_cond_wait", [("ptr", _word(f, CONDITION)), ("ptr", _word(f, MUTEX))])
    f.do(f"br label %{sleep}")
    f.start(woken)
    f.op(f"atomicrmw sub ptr {_word(f, SLEEPERS)}, i64 1 seq_cst")
    f.call("i32", "pthread_mutex_unlock", [("ptr", _word(f, MUTEX))])
    f.do(f"br label %{look}")
    f.start(look)
    quits = f.test("ne", _load(f, QUIT), 0)
    state = _load(f, STATE)
    f.do(f"store i64 {f.op(f'lshr i64 {state}, 32')}, ptr {seen}")
    f.do(f"br i1 {quits}, label %{leave}, label %{over}")
    f.start(over)
    is_open = f.test("ne", f.op(f"and i64 {state}, {OPEN}"), 0)
    f.do(f"br i1 {is_open}, label %{join}, label %{wait}")
    f.start(join)
    pair = f.op(f"cmpxchg ptr {_word(f, STATE)}, i64 {state}, i64 {f.add(state, 1)} seq_cst seq_cst")
    f.do(f"br i1 {f.op(f'extractvalue {{i64, i1}} {pair}, 1')}, label %{enter}, label %{look}")
    f.start(enter)
    f.do(f"call void @take(ptr %pool, i64 {f.add(worker, 1)})")
    f.op(f"atomicrmw sub ptr {_word(f, STATE)}, i64 1 seq_cst")
    f.do(f"br label %{wait}")
    f.start(leave)
    f.do("ret ptr null")
    return f


def _wake(f: Function) -> None:
    with f.when(f.test("ne", _load(f, SLEEPERS), 0)):
        f.call("i32", "pthread_mutex_lock", [("ptr", _word(f, MUTEX))])
        f.call("i32", "pthread_cond_broadcast", [("ptr", _word(f, CONDITION))])
        f.call("i32", "pthread_mutex_unlock", [("ptr", _word(f, MUTEX))])


def _next_generation(f: Function, open_bit: int) -> None:
    generation = f.op(f"and i64 {_load(f, STATE)}, {-(1 << 32)}")
    _store(f, STATE, f.op(f"or i64 {f.op(f'add i64 {generation}, {1 << 32}')}, {open_bit}"))


def _submit() -> Function:
    """Open a job, take part, close it, and wait for those inside."""
    f = Function("submit", [("ptr", "pool"), ("ptr", "task"), ("ptr", "job"), ("i64", "count")], public=True)
    for number, value in ((TASK, "%task"), (JOB, "%job")):
        f.do(f"store i64 {f.op(f'ptrtoint ptr {value} to i64')}, ptr {_word(f, number)}, align 8")
    f.do(f"store i64 %count, ptr {_word(f, COUNT)}, align 8")
    _store(f, NEXT, 0)
    _next_generation(f, OPEN)
    _wake(f)
    f.do("call void @take(ptr %pool, i64 0)")
    f.op(f"atomicrmw and ptr {_word(f, STATE)}, i64 {~OPEN} seq_cst")
    again, more, done = f.label("again"), f.label("more"), f.label("done")
    f.do(f"br label %{again}")
    f.start(again)
    with f.loop(0, SPIN):
        inside = f.op(f"and i64 {_load(f, STATE)}, {OPEN - 1}")
        on = f.label("on")
        f.do(f"br i1 {f.test('eq', inside, 0)}, label %{done}, label %{on}")
        f.start(on)
        f.do("call void @pause()")
    f.do(f"br label %{more}")
    f.start(more)
    f.call("i32", "sched_yield", [])  # the one that is waited for may want this very core
    f.do(f"br label %{again}")
    f.start(done)
    return f


def _serial() -> Function:
    """Every task, one after the other, in the thread that calls."""
    f = Function("serial", [("ptr", "task"), ("ptr", "job"), ("i64", "count")], public=True)
    with f.loop(0, "%count") as i:
        f.do(f"call void %task(ptr %job, i64 {i.index}, i64 0)")
    return f


def _start() -> Function:
    """Start up to `count` workers; says how many there are, for a system may refuse some."""
    f = Function("start", [("ptr", "pool"), ("i64", "count")], public=True, result="i64")
    f.call("i32", "pthread_mutex_init", [("ptr", _word(f, MUTEX)), ("ptr", "null")])
    f.call("i32", "pthread_cond_init", [("ptr", _word(f, CONDITION)), ("ptr", "null")])
    with f.loop(0, "%count", 1, [("i64", "0")]) as i:
        place = f.at("i64", _word(f, THREADS), i.values[0])
        failed = f.call("i32", "pthread_create", [("ptr", place), ("ptr", "null"), ("ptr", "@work"), ("ptr", "%pool")])
        made = f.op(f"zext i1 {f.op(f'icmp eq i32 {failed}, 0')} to i64")
        i.next = [f.add(i.values[0], made)]
    f.do(f"ret i64 {i.values[0]}")
    return f


def _stop() -> Function:
    f = Function("stop", [("ptr", "pool"), ("i64", "count")], public=True)
    _store(f, QUIT, 1)
    _next_generation(f, 0)
    _wake(f)
    with f.loop(0, "%count") as i:
        thread = f.op(f"load i64, ptr {f.at('i64', _word(f, THREADS), i.index)}")
        f.call("i32", "pthread_join", [("i64", thread), ("ptr", "null")])
    return f


@lru_cache(maxsize=1)
def _native() -> dict[str, Any]:
    void, pointer, word = None, ctypes.c_void_p, ctypes.c_int64
    signatures: dict[str, tuple[Any, ...]] = {
        "submit": (void, pointer, pointer, pointer, word),
        "serial": (void, pointer, pointer, word),
        "start": (word, pointer, word),
        "stop": (void, pointer, word),
    }
    names = tuple(signatures) if THREADED else ("serial",)
    found = compile.load(pool_module(), host_target(), names)
    return {name: ctypes.CFUNCTYPE(*signatures[name])(found[name]) for name in names}


class Pool:
    """`workers` native threads beside the one that calls."""

    def __init__(self, workers: int) -> None:
        self.asked = workers
        self.words = (ctypes.c_int64 * (WORDS + 8))()
        self.address = (ctypes.addressof(self.words) + 63) // 64 * 64
        self.lock = threading.Lock()
        self.workers = int(_native()["start"](self.address, workers))

    def stop(self) -> None:
        with self.lock:
            _native()["stop"](self.address, self.workers)
            self.workers = 0


_pool: Pool | None = None
_threads: int | None = None
_changing = threading.Lock()


def run_tasks(task: int, job: int, count: int, threads: int) -> None:
    """Run `count` tasks with up to `threads` threads; `job` is the address of the job's words."""
    if threads > 1 and count > 1 and THREADED:
        pool = _ready(threads - 1)
        if pool is not None and pool.lock.acquire(blocking=False):
            try:
                if pool.workers:
                    _native()["submit"](pool.address, task, job, count)
                    return
            finally:
                pool.lock.release()
    _native()["serial"](task, job, count)


def _ready(workers: int) -> Pool | None:
    global _pool
    pool = _pool
    if pool is not None and pool.asked == workers:
        return pool
    if not _changing.acquire(blocking=False):
        return None
    try:
        if _pool is not None:
            _pool.stop()
        _pool = Pool(workers)
        return _pool
    finally:
        _changing.release()


def num_threads() -> int:
    """Threads a product may use: what was set, else TILEWISE_NUM_THREADS, else the cores this process may use."""
    global _threads
    if _threads is None:
        asked = os.environ.get("TILEWISE_NUM_THREADS")
        _threads = _checked(asked, "TILEWISE_NUM_THREADS") if asked else available_cores()
    return _threads


def set_num_threads(count: int | None) -> None:
    """How many threads a product on the CPU may use; None asks the environment and the machine again."""
    global _threads
    _threads = None if count is None else _checked(count, "count")
    KNOWN.clear()  # what is kept there was cut for another number of threads


def _checked(value: object, name: str) -> int:
    try:
        count = int(str(value))
    except ValueError:
        count = 0
    if isinstance(value, bool) or not 1 <= count <= 1024:
        raise UsageError(f"{name}={value!r} must be a whole number of threads from 1 to 1024")
    return count


def available_cores() -> int:
    """Cores by affinity, and by the cgroup's quota where there is one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _cgroup_quota() or cores))


def _cgroup_quota() -> int | None:
    """Whole cores the cgroup allows, version 2 or 1; None where nothing is limited."""
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as file:
            quota, period = file.read().split()[:2]
    except (OSError, ValueError):
        try:
            with open("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", encoding="ascii") as file:
                quota = file.read().strip()
            with open("/sys/fs/cgroup/cpu/cpu.cfs_period_us", encoding="ascii") as file:
                period = file.read().strip()
        except OSError:
            return None
    if quota == "max" or int(quota) <= 0 or int(period) <= 0:
        return None
    return max(1, -(-int(quota) // int(period)))


def _forget() -> None:
    """A forked child has none of its parent's workers, and locks may have been held: start anew."""
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
