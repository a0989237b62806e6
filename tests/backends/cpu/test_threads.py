"""Threads never change a bit, and survive forks, other threads, each other and the end of the interpreter."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed
from tilewise.backends.cpu.kernels.dots.text import FAR as FAR_M
from tilewise.backends.cpu.kernels.shared import tasks
from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS
from tilewise.backends.cpu.runtime import compile, pool
from tilewise.backends.cpu.runtime.pool_layout import ANY_ORDER
from tilewise.backends.cpu.runtime.target import host_target
from tilewise.errors import UsageError
from tilewise.system.llvm_text import IRFunction, module

TASKS = Path("/proc/self/task")


@pytest.fixture(autouse=True)
def as_many_threads_as_before() -> Iterator[None]:
    yield
    tw.set_num_threads(None)


def same_bits_by_any_threads(M: np.ndarray, N: np.ndarray, output: str = "") -> None:
    made = []
    for count in (1, 2, 3, 7):
        tw.set_num_threads(count)
        made.append(tw.matmul(M, N))
    for other in made[1:]:
        np.testing.assert_array_equal(made[0], other, output)


@pytest.mark.drawn(6)
@pytest.mark.parametrize(
    "shape", [(300, 300, 300), (129, 700, 257), (5, 900, 2000), (2000, 900, 5), (3000, 400, 1), (40, 20000, 30)]
)
@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64"])
def test_the_bits_do_not_depend_on_the_number_of_threads(shape: tuple[int, int, int], dtype: str) -> None:
    m, k, n = shape
    rng = np.random.default_rng(0)
    M, N = (rng.uniform(-1, 1, s).astype(dtype) for s in ((m, k), (k, n)))
    same_bits_by_any_threads(M, N)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_no_bits_of_shapes_by_chance_depend_on_the_number_of_threads(dtype: str) -> None:
    """Last rows and columns above all: tiles of other heights and widths must add up in the same order."""
    seed = next_seed() % 2**32
    rng, draw = np.random.default_rng(seed), random.Random(seed)
    for _ in range(8):
        m, n = (8 * draw.randint(1, 30) + 1 if draw.random() < 0.5 else draw.randint(1, 300) for _ in range(2))
        k = draw.randint(50, 900)
        M, N = (rng.uniform(-1, 1, s).astype(dtype) for s in ((m, k), (k, n)))
        same_bits_by_any_threads(M, N, f"seed {seed}: {m}x{k}x{n}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_column_and_an_m_that_comes_from_memory(dtype: str) -> None:
    """Row after row of it as one stream, k of any length; onto P as well."""
    seed = next_seed() % 2**32
    rng, draw = np.random.default_rng(seed), random.Random(seed)
    for k in (1, 15, draw.randint(16, 900), 1003, 2048):
        m = FAR_M // (k * np.dtype(dtype).itemsize) + draw.randint(1, 7)
        M, N = rng.uniform(-1, 1, (m, k)).astype(dtype), rng.uniform(-1, 1, (k, 1)).astype(dtype)
        same_bits_by_any_threads(M, N, f"seed {seed}: {m}x{k}x1")
        P = np.full((m, 1), 2, dtype)
        tw.matmul(M, N, out=P, accumulate=True)
        np.testing.assert_allclose(P, M.astype(np.float64) @ N.astype(np.float64) + 2, rtol=0, atol=1e-3)


def test_one_row_times_an_n_that_comes_from_memory() -> None:
    """Stretches of k, by N as a whole and not by a thread's part."""
    rng = np.random.default_rng(0)
    M, N = rng.integers(-8, 9, (1, 4099)), rng.integers(-8, 9, (4099, 4103))
    right, (x, y) = M @ N, (each.astype(np.float32) for each in (M, N))
    assert y.nbytes > tasks.FAR
    for count in (1, 2, 3):
        tw.set_num_threads(count)
        np.testing.assert_array_equal(tw.matmul(x, y), right)
    same_bits_by_any_threads(x / 3, y)


def stress(calls: int, errors: list[str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    M, N = rng.integers(0, 9, (90, 70)), rng.integers(0, 9, (70, 80))
    big = rng.integers(0, 9, (200, 200))
    right, right_big = M @ N, big @ big
    for call in range(calls):
        made, expected = (tw.matmul(M, N), right) if call % 8 else (tw.matmul(big, big), right_big)
        if not np.array_equal(made, expected):
            errors.append(f"thread {seed}, call {call}")


def hammer(calls: int) -> None:
    tw.set_num_threads(3)
    errors: list[str] = []
    threads = [threading.Thread(target=stress, args=(calls // 4, errors, seed)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_several_python_threads_at_once() -> None:
    hammer(300)


@pytest.mark.slow
def test_ten_thousand_calls_from_several_threads() -> None:
    hammer(10_000)


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


FORKS = """
import os, numpy as np, tilewise as tw
tw.set_num_threads(2)
M = np.arange(200 * 200).reshape(200, 200) % 7
right = M @ M
for turn in range({turns}):
    assert (tw.matmul(M, M) == right).all()
    child = os.fork()
    if child == 0:
        ok = all((tw.matmul(M, M) == right).all() for _ in range({calls}))
        ok = ok and (not os.path.isdir("/proc/self/task") or len(os.listdir("/proc/self/task")) == 2)
        os._exit(0 if ok else 1)
    assert (tw.matmul(M, M) == right).all()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("whole")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_its_own_threads() -> None:
    assert "whole" in run(FORKS.format(turns=2, calls=20))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_ten_thousand_calls_in_forked_children() -> None:
    assert "whole" in run(FORKS.format(turns=50, calls=200))


def test_the_interpreter_ends_while_threads_are_awake() -> None:
    code = """
import threading, numpy as np, tilewise as tw
tw.set_num_threads(4)
M = np.ones((400, 400))
threading.Thread(target=lambda: [tw.matmul(M, M) for _ in range(200)], daemon=True).start()
tw.matmul(M, M)
print("over")
"""
    assert "over" in run(code)


def test_how_many_threads() -> None:
    assert pool.num_threads() == pool.available_cores()
    tw.set_num_threads(2)
    assert pool.num_threads() == 2
    code = "from tilewise.backends.cpu.runtime.pool import num_threads; print(num_threads())"
    assert run(code, TILEWISE_NUM_THREADS="3").strip() == "3"
    for wrong in (0, -1, 1.5, True, "many"):
        with pytest.raises(UsageError, match="whole number of threads"):
            tw.set_num_threads(wrong)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="TILEWISE_NUM_THREADS='no'"):
        run(code, TILEWISE_NUM_THREADS="no")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_affinity_is_respected() -> None:
    code = (
        "import os; os.sched_setaffinity(0, {next(iter(os.sched_getaffinity(0)))});"
        "from tilewise.backends.cpu.runtime.pool import num_threads; print(num_threads())"
    )
    assert run(code).strip() == "1"


def test_memory_stays_within_a_few_panels() -> None:
    """Operands of 32 MB each, strided or row by row: nothing the size of an operand is allocated beside them."""
    code = """
import resource, numpy as np, tilewise as tw
tw.set_num_threads(2)
M, N = np.ones((2000, 4000), np.float32)[:, ::2], np.ones((4000, 2000), np.float32)[::2].T
A, B = np.ones((2000, 4000), np.float32), np.ones((4000, 2000), np.float32)
P = np.empty((2000, 2000), np.float32)
P[:] = 0
tw.matmul(M[:64, :64], N[:64, :64]), tw.matmul(A[:64, :64], B[:64, :64])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
tw.matmul(A, B, out=P)
assert P[5, 5] == 4000
tw.matmul(M, N, out=P)
assert P[5, 5] == 2000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    pytest.importorskip("resource")
    assert int(run(code)) < 16 * 1024  # kB


def tally(times: int = 1) -> int:
    """A task that counts itself, in the element of its number; many times, where it should take long."""
    f = IRFunction("tally", TASK_PARAMS, public=True)
    with f.loop(0, times):
        f.op(f"atomicrmw add ptr {f.at('i64', '%job', '%task')}, i64 1 seq_cst")
    return compile.load(module([f]), host_target(), ("tally",))["tally"]


@pytest.mark.parametrize("order", [0, ANY_ORDER])
def test_every_task_runs_once_whoever_it_was_dealt_to(order: int) -> None:
    """Fewer tasks than threads, more, and more threads wanted than there are."""
    seed = next_seed() % 2**31
    print(f"seed {seed}")
    draw, task = random.Random(seed), tally()
    tw.set_num_threads(3)
    workers = pool.current_pool()
    assert workers is not None
    for _ in range(300):
        count, limit = draw.choice((2, 3, 4, 7, draw.randint(1, 500))), draw.randint(1, 5)
        counts = np.zeros(count, np.int64)
        pool.native()["run"](workers.address, task, counts.ctypes.data, count, limit | order)
        assert (counts == 1).all(), (seed, count, limit)


def test_workers_park_when_no_product_follows() -> None:
    """They spin a fifth of a millisecond, and that only once."""
    tw.set_num_threads(2)
    M = np.ones((300, 300))
    tw.matmul(M, M)
    begun = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - begun < 0.1


@pytest.mark.skipif(not TASKS.is_dir(), reason="switches of threads are not counted here")
def test_only_as_many_are_woken_as_a_job_wants() -> None:
    """All others sleep on, however many such jobs there are; a long job that wants all of them wakes them."""
    short, long, counts = tally(), tally(100_000), np.zeros(64, np.int64)
    before = set(os.listdir(TASKS))
    tw.set_num_threads(9)
    workers = pool.current_pool()
    assert workers is not None
    threads = sorted(set(os.listdir(TASKS)) - before, key=int)
    assert len(threads) == 8

    def switches() -> list[int]:
        status = [(TASKS / thread / "status").read_text().splitlines() for thread in threads]
        return [int(line.split()[1]) for lines in status for line in lines if line.startswith("voluntary")]

    def woken(task: int, count: int, limit: int) -> int:
        """Workers that woke in so many jobs, with time to fall asleep after each."""
        was = switches()
        for _ in range(count):
            pool.native()["run"](workers.address, task, counts.ctypes.data, len(counts), limit)
            time.sleep(0.02)
        return sum(now > then for now, then in zip(switches(), was, strict=True))

    assert woken(long, 5, 9) > 2
    time.sleep(0.2)
    assert woken(short, 20, 3) <= 2
    assert counts.sum() == (5 * 100_000 + 20) * len(counts)


def whereabouts() -> int:
    """A task that takes a while and leaves, in the element of its number, the core it ran on, plus 1; workers' only."""
    f = IRFunction("whereabouts", TASK_PARAMS, public=True)
    with f.loop(0, 20_000):
        f.op(f"atomicrmw add ptr {f.at('i64', '%job', 64)}, i64 1 seq_cst")
    core = f.add(f.op(f"sext i32 {f.call('i32', 'sched_getcpu', [])} to i64"), 1)
    with f.when(f.test("ne", "%worker", 0)):
        f.do(f"store i64 {core}, ptr {f.at('i64', '%job', '%task')}")
    return compile.load(module([f]), host_target(), ("whereabouts",))["whereabouts"]


@pytest.mark.skipif(
    not TASKS.is_dir() or pool.available_cores() < 2, reason="needs two cores and a system with affinities"
)
def test_a_worker_is_not_woken_where_the_thread_that_calls_is() -> None:
    """With as many threads as cores it has one of its own, and another while the caller is there."""
    task, counts = whereabouts(), np.zeros(65, np.int64)
    cores = os.sched_getaffinity(0)
    tw.set_num_threads(2)
    workers = pool.current_pool()
    assert workers is not None

    def job() -> None:
        counts[:] = 0
        pool.native()["run"](workers.address, task, counts.ctypes.data, 64, 2)
        time.sleep(0.01)

    def met() -> tuple[int, int]:
        """Jobs in which the worker ran where the caller was, and elsewhere."""
        here = elsewhere = 0
        for home in [*sorted(cores)[:2]] * 12:
            os.sched_setaffinity(0, {home})  # of this thread alone
            job()
            here += (counts[:64] == home + 1).any()
            elsewhere += ((counts[:64] > 0) & (counts[:64] != home + 1)).any()
        return here, elsewhere

    try:
        # A busy machine may not have let it run at all: then once more.
        rounds = [met()]
        while 2 * rounds[-1][1] < rounds[-1][0] and len(rounds) < 6:
            rounds.append(met())
    finally:
        os.sched_setaffinity(0, cores)
    here, elsewhere = rounds[-1]
    assert 2 * elsewhere >= here, rounds
