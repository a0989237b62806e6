"""How workers wait (they spin, then park) and how they are woken: only as many as a job needs, in a binary tree.

Waking a thread takes as long as a small product, so no thread wakes more than two.
"""

from __future__ import annotations

from tilewise.backends.cpu.runtime import pool_layout as pool
from tilewise.backends.cpu.runtime.placing import avoid_caller_core
from tilewise.backends.cpu.runtime.systems import System
from tilewise.system.llvm_text import IRFunction

PATIENCE = 8  # a worker spins this many times longer while a job that it helped with is open: the next may follow


def parking(system: System) -> list[IRFunction]:
    """For a module that has `pause`."""
    return [_pauses(), _wake(system), _wake_next(), _park(system), _spin()]


def _pauses() -> IRFunction:
    """`count` pauses, to be timed: how long one takes differs tenfold between processors."""
    f = IRFunction("pauses", "i64 count", public=True)
    with f.loop(0, "%count"):
        f.do("call void @pause()")
    return f


def parking_slot(f: IRFunction, worker: str | int) -> tuple[str, str, str]:
    """The slot of worker 1, 2, …: its parked mark, its lock, its condition variable."""
    mark = f.at("i64", pool.field(f, pool.SLOTS), f.mul(f.sub(worker, 1), pool.SLOT_SIZE))
    return mark, f.at("i64", mark, pool.LOCK), f.at("i64", mark, pool.CONDITION)


def _wake(system: System) -> IRFunction:
    """Wake a parked worker. The worker sets its mark, then reads the state; the waker opens the job, then reads the
    mark: one of the two sees the other's write. The thread that clears the mark signals the condition."""
    f = IRFunction("wake", "ptr pool, i64 worker")
    mark, lock, condition = parking_slot(f, "%worker")
    done, parks, ours = f.label("done"), f.label("parks"), f.label("ours")
    marked = f.test("ne", f.op(f"load atomic i64, ptr {mark} seq_cst, align 8"), 0)
    f.branch(marked, parks, done)
    taken = f.test("ne", f.op(f"atomicrmw xchg ptr {mark}, i64 0 seq_cst"), 0)
    f.branch(taken, ours, done)
    system.acquire(f, lock)  # the worker holds it until it sleeps
    avoid_caller_core(f, system.cores_of_threads, mark)
    system.release(f, lock)
    system.wake_all(f, condition)
    f.goto(done)
    f.start(done)
    return f


def _wake_next() -> IRFunction:
    """The calling thread is 0 and wakes 1 and 2; worker w wakes 2 w + 1 and 2 w + 2, so that no thread wakes more than
    two."""
    f = IRFunction("wake_next", "ptr pool, i64 worker, i64 count, i64 limit")
    wanted = f.lower(
        "%count", f.lower(f.op(f"and i64 %limit, {pool.ANY_ORDER - 1}"), f.add(pool.load(f, pool.SIZE), 1))
    )
    first = f.add(f.mul("%worker", 2), 1)
    with f.loop(first, f.lower(wanted, f.add(first, 2))) as next:
        f.do(f"call void @wake(ptr %pool, i64 {next.index})")
    return f


def _park(system: System) -> IRFunction:
    """Sleep until the generation differs from the last one that this worker saw."""
    f = IRFunction("park", "ptr pool, i64 worker, i64 seen")
    mark, lock, condition = parking_slot(f, "%worker")
    system.acquire(f, lock)
    look, nap, up = f.label("look"), f.label("nap"), f.label("up")
    f.goto(look)
    f.start(look)
    f.do(f"store atomic i64 1, ptr {mark} seq_cst, align 8")
    generation = f.op(f"lshr i64 {pool.load(f, pool.STATE)}, 32")
    f.branch(f.test("ne", generation, "%seen"), up, nap, then=nap)
    system.sleep(f, condition, lock)
    f.goto(look)
    f.start(up)
    f.do(f"store atomic i64 0, ptr {mark} seq_cst, align 8")
    system.release(f, lock)
    return f


def _spin() -> IRFunction:
    """Spin until there is a new job, at most `rounds` pauses, which count from the end of the last job if this worker
    `helped` with it. Returns the rounds left, 0 where the worker should park."""
    f = IRFunction("spin", "ptr pool, i64 seen, i64 rounds, i1 helped", result="i64")
    new, old = f.label("new"), f.label("old")
    with f.loop(0, f.mul("%rounds", PATIENCE), 1, [("i64", "%rounds")]) as spin:
        left, state = spin.values[0], pool.load(f, pool.STATE)
        f.branch(f.test("ne", f.op(f"lshr i64 {state}, 32"), "%seen"), new, old, then=old)
        f.do("call void @pause()")
        goes_on = f.test("ne", f.op(f"and i64 {state}, {2 * pool.OPEN - 1}"), 0)
        waits = f.both(goes_on, "%helped")
        spin.next = [f.sub(left, f.select(waits, "i64", 0, 1))]
        on, over = f.label("on"), f.label("over")
        f.branch(f.test("sgt", spin.next[0], 0), on, over, then=over)
        f.do("ret i64 0")
        f.start(on)
    f.do("ret i64 0")
    f.start(new)
    f.do(f"ret i64 {left}")
    return f
