"""The pool's shared memory as 64-bit fields, through which the calling thread and the workers communicate."""

from __future__ import annotations

from tilewise.system.llvm_text import IRFunction

OPEN = 1 << 31
# generation, open bit and the number of workers inside share the first field, so one exchange joins a job
STATE, NEXT, TASK, JOB, COUNT, LIMIT = 0, 8, 16, 17, 18, 19
SPIN, QUIT, IDENTITY, SIZE, BUSY, THREADS = 24, 25, 26, 27, 28, 32  # SPIN: rounds of `pause` before a worker parks
SHARES, LEFT = THREADS + 1024, 20  # each worker's next task, on a cache line of its own; and the number of tasks left
SHARED = 64  # with more workers tasks are taken from one counter
MASK_SIZE = 16  # fields of a mask: 1024 cores
SPARE = SHARES + 8 * SHARED  # the mask of cores that are no worker's
SLOTS = SPARE + MASK_SIZE  # where each worker parks
# fields of a slot: whether the worker parks, its lock and condition variable, its thread, the caller's core (plus 1)
# that it was moved off, and the mask of its cores
SLOT_SIZE, LOCK, CONDITION, WORKER_THREAD, AVOIDED, MASK = 48, 1, 9, 17, 18, 24
CALLER_CORE = 29  # the calling thread's core, plus 1
ANY_ORDER = 1 << 32  # flag in a job's limit: no task waits for another


def pool_size(workers: int) -> int:
    """Fields of a pool with this many workers."""
    return SLOTS + SLOT_SIZE * workers


def field(f: IRFunction, number: int) -> str:
    """The address of a field."""
    return f.at("i64", "%pool", number)


def load(f: IRFunction, number: int) -> str:
    return f.op(f"load atomic i64, ptr {field(f, number)} seq_cst, align 8")


def store(f: IRFunction, number: int, value: str | int) -> None:
    f.do(f"store atomic i64 {value}, ptr {field(f, number)} seq_cst, align 8")
