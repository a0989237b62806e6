"""Workers are not woken on the calling thread's core.

Linux wakes a worker on the core where it parked, which the calling thread may use by then, or on its waker's core,
because it takes threads that wake each other for a pair. It then looks for an idle core, but in a virtual machine a
sleeping core does not count as idle, and both threads would share one core for milliseconds: longer than most products
take. So the waker changes the worker's affinity until it runs: a worker that parked on the caller's present core goes
to the core that the caller has left, others to any other core (on ARM only; x86 was not timed).
"""

from __future__ import annotations

from tilewise.backends.cpu.runtime import pool_layout as pool
from tilewise.backends.cpu.runtime.systems.cores_of_threads import CoresOfThreads
from tilewise.system.llvm_text import IRFunction


def record_caller_core(f: IRFunction, cores: CoresOfThreads | None) -> None:
    """Store the calling thread's core and its previous one, plus 1; 0 is none."""
    if cores is None:
        return
    now, home = f.add(cores.core(f), 1), pool.load(f, pool.CALLER_CORE)
    with f.when(f.test("ne", now, home)):
        pool.store(f, pool.PREVIOUS_CORE, home)
        pool.store(f, pool.CALLER_CORE, now)


def record_worker_core(f: IRFunction, cores: CoresOfThreads | None, slot: str) -> None:
    """Store a worker's core and thread as it parks."""
    if cores is None:
        return
    restore_affinity(f, cores, slot)
    for number, value in ((pool.CORE, f.add(cores.core(f), 1)), (pool.WORKER_THREAD, cores.thread(f))):
        f.store("i64", value, f.at("i64", slot, number), 8)


def move_off_caller_core(f: IRFunction, cores: CoresOfThreads | None, slot: str, always: bool) -> None:
    """Called by the waker, which holds the lock. Without `always`, only workers that parked on the caller's core
    move."""
    if cores is None:
        return
    home, mask = pool.load(f, pool.CALLER_CORE), f.at("i64", slot, pool.MASK)
    core, thread, sent = (_load(f, slot, number) for number in (pool.CORE, pool.WORKER_THREAD, pool.MOVED))
    met = f.test("eq", core, home)
    needed = f.test("eq", sent, 0) if always else f.both(met, f.test("eq", sent, 0))
    new = f.op(f"alloca i64, i64 {pool.MASK_SIZE}, align 8")
    with f.when(needed), f.when(cores.affinity(f, thread, mask)):
        some = _elsewhere(f, mask, home, new, met if always else "")
        with f.when(f.test("ne", some, 0)):
            f.store("i64", 1, f.at("i64", slot, pool.MOVED), 8)
            cores.set_affinity(f, thread, new)


def restore_affinity(f: IRFunction, cores: CoresOfThreads | None, slot: str) -> None:
    """Restore a worker's affinity once it runs."""
    if cores is None:
        return
    with f.when(f.test("ne", _load(f, slot, pool.MOVED), 0)):
        cores.set_affinity(f, cores.thread(f), f.at("i64", slot, pool.MASK))
        f.store("i64", 0, f.at("i64", slot, pool.MOVED), 8)


def _elsewhere(f: IRFunction, mask: str, home: str, new: str, met: str) -> str:
    """Write to `new` the core that the calling thread has left, if they `met` and `mask` has it, else all of `mask` but
    the caller's present core. Returns zero where that is none."""
    left = pool.load(f, pool.PREVIOUS_CORE)
    left = f.select(f.test("eq", left, 0), "i64", home, left)
    (here, here_bit), (there, there_bit) = _bit(f, home), _bit(f, left)
    may = f.test("ne", f.op(f"and i64 {_load(f, mask, there)}, {there_bit}"), 0)
    only_there = f.both(may, f.test("ne", left, home))
    if met:
        only_there = f.both(met, only_there)
    with f.loop(0, pool.MASK_SIZE, 1, [("i64", "0")]) as i:
        not_here = f.select(f.test("eq", i.index, here), "i64", f.op(f"xor i64 {here_bit}, -1"), -1)
        others = f.op(f"and i64 {_load(f, mask, i.index)}, {not_here}")
        one = f.select(f.test("eq", i.index, there), "i64", there_bit, 0)
        bits = f.select(only_there, "i64", one, others)
        f.store("i64", bits, f.at("i64", new, i.index), 8)
        i.next = [f.op(f"or i64 {i.values[0]}, {bits}")]
    return i.values[0]


def _bit(f: IRFunction, core: str) -> tuple[str, str]:
    """The field of a mask that has a core's bit, and the bit."""
    number = f.sub(core, 1)
    return f.op(f"lshr i64 {number}, 6"), f.op(f"shl i64 1, {f.op(f'and i64 {number}, 63')}")


def _load(f: IRFunction, base: str, number: str | int) -> str:
    return f.load("i64", f.at("i64", base, number), 8)
