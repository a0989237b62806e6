"""How workers wait: they spin, then they park; and how they are woken, only those a job wants, each by another one.

To wake a thread takes as long as a small product, and the one that calls has better to do.
"""

from __future__ import annotations

from tilewise.backends.cpu.kernels.shared.ir import Function
from tilewise.backends.cpu.runtime.placing import come_back, note_bed, send_elsewhere
from tilewise.backends.cpu.runtime.pool_words import (
    ANY_ORDER,
    BED,
    BEDS,
    CONDITION,
    LOCK,
    OPEN,
    SIZE,
    STATE,
    load,
    word,
)
from tilewise.backends.cpu.runtime.systems import System

PATIENCE = 8  # times as long a worker spins for the end of a job that it has taken part in: the next may follow at once


def parking(system: System, always: bool) -> list[Function]:
    """For a module that has `pause`; `always`: see `placing.send_elsewhere`."""
    return [_breathe(), _wake(system, always), _wake_next(), _park(system), _spin()]


def _breathe() -> Function:
    """`count` breaths, to be timed: how long one takes differs tenfold between processors."""
    f = Function("breathe", "i64 count", public=True)
    with f.loop(0, "%count"):
        f.do("call void @pause()")
    return f


def bed(f: Function, worker: str | int) -> tuple[str, str, str]:
    """Where a worker parks, counted from 1 as jobs count them: its mark, its lock, its condition."""
    mark = f.at("i64", word(f, BEDS), f.mul(f.sub(worker, 1), BED))
    return mark, f.at("i64", mark, LOCK), f.at("i64", mark, CONDITION)


def _wake(system: System, always: bool) -> Function:
    """Wake a worker that parks. It marks its bed and then looks for a new job, we open the job and then look at the
    mark: one of the two sees the other. Whoever takes the mark away wakes it, and nobody else needs to."""
    f = Function("wake", "ptr pool, i64 worker")
    mark, lock, condition = bed(f, "%worker")
    done, parks, ours = f.label("done"), f.label("parks"), f.label("ours")
    marked = f.test("ne", f.op(f"load atomic i64, ptr {mark} seq_cst, align 8"), 0)
    f.branch(marked, parks, done)
    taken = f.test("ne", f.op(f"atomicrmw xchg ptr {mark}, i64 0 seq_cst"), 0)
    f.branch(taken, ours, done)
    system.acquire(f, lock)  # the worker has it until it sleeps
    send_elsewhere(f, system.cores_of_threads, mark, always)
    system.release(f, lock)
    system.wake_all(f, condition)
    f.goto(done)
    f.start(done)
    return f


def _wake_next() -> Function:
    """The one that calls is 0 and wakes 1 and 2; worker w wakes 2 w + 1 and 2 w + 2: soon all that a job wants are up,
    and nobody has woken more than two."""
    f = Function("wake_next", "ptr pool, i64 worker, i64 count, i64 limit")
    wanted = f.lower("%count", f.lower(f.op(f"and i64 %limit, {ANY_ORDER - 1}"), f.add(load(f, SIZE), 1)))
    first = f.add(f.mul("%worker", 2), 1)
    with f.loop(first, f.lower(wanted, f.add(first, 2))) as next:
        f.do(f"call void @wake(ptr %pool, i64 {next.index})")
    return f


def _generation(f: Function) -> str:
    return f.op(f"lshr i64 {load(f, STATE)}, 32")


def _park(system: System) -> Function:
    """Sleep until there is a job that this worker has not seen."""
    f = Function("park", "ptr pool, i64 worker, i64 seen")
    mark, lock, condition = bed(f, "%worker")
    system.acquire(f, lock)
    note_bed(f, system.cores_of_threads, mark)
    look, nap, up = f.label("look"), f.label("nap"), f.label("up")
    f.goto(look)
    f.start(look)
    f.do(f"store atomic i64 1, ptr {mark} seq_cst, align 8")
    f.branch(f.test("ne", _generation(f), "%seen"), up, nap, then=nap)
    system.sleep(f, condition, lock)
    f.goto(look)
    f.start(up)
    f.do(f"store atomic i64 0, ptr {mark} seq_cst, align 8")
    come_back(f, system.cores_of_threads, mark)
    system.release(f, lock)
    return f


def _spin() -> Function:
    """Whether a new job came within `rounds` breaths, counted from the end of the job that was `seen` where this worker
    took part in it, for then whoever makes products is not done with this one; what it has left of them comes back, 0
    where it should park."""
    f = Function("spin", "ptr pool, i64 seen, i64 rounds, i1 helped", result="i64")
    new, old = f.label("new"), f.label("old")
    with f.loop(0, f.mul("%rounds", PATIENCE), 1, [("i64", "%rounds")]) as spin:
        left, state = spin.values[0], load(f, STATE)
        f.branch(f.test("ne", f.op(f"lshr i64 {state}, 32"), "%seen"), new, old, then=old)
        f.do("call void @pause()")
        goes_on = f.test("ne", f.op(f"and i64 {state}, {2 * OPEN - 1}"), 0)
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
