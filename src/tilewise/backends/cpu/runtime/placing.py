"""Workers have cores of their own, and are not woken on the calling thread's.

The cores that the process may use are divided among the threads: with as many threads as cores each worker has one.
Linux takes threads that wake each other for a pair, and where no core is idle (those of a BLAS spin for a while after
its product, and in a virtual machine a sleeping core does not count as idle) puts several of them on one core, where
they take turns of milliseconds: beside 16 spinning threads a product of 384×384 took 16 workers 6.9 ms, and 0.32 with
a core each. The first part is the calling thread's, which may be on any core: the waker moves a worker that has the
caller's present core among its own to the others, or else to the first part.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewise.backends.cpu.runtime import pool_layout as pool
from tilewise.backends.cpu.runtime.systems.cores_of_threads import CoresOfThreads
from tilewise.system.llvm_text import IRFunction


def core_sets(cores: Sequence[int], threads: int) -> list[int]:
    """The cores of each of so many threads as a mask, one bit each; none where threads have to share cores."""
    if threads > len(cores) or max(cores) >= 64 * pool.MASK_SIZE:
        return []
    return [sum(1 << core for core in cores[thread::threads]) for thread in range(threads)]


def record_caller_core(f: IRFunction, cores: CoresOfThreads | None) -> None:
    """Store the calling thread's core, plus 1; 0 is none."""
    if cores is not None:
        pool.store(f, pool.CALLER_CORE, f.add(cores.core(f), 1))


def settle(f: IRFunction, cores: CoresOfThreads | None, slot: str) -> None:
    """A new worker stores its handle and moves to its cores, if it has any."""
    if cores is None:
        return
    thread, mask = cores.thread(f), f.at("i64", slot, pool.MASK)
    f.store("i64", thread, f.at("i64", slot, pool.WORKER_THREAD), 8)
    with f.when(f.test("ne", _without(f, mask, mask, "0"), 0)):
        cores.set_affinity(f, thread, mask)


def avoid_caller_core(f: IRFunction, cores: CoresOfThreads | None, slot: str) -> None:
    """Called by the waker, which holds the lock. A worker that was moved stays there until the caller has left its
    cores: two calls of the system when the caller moves, none otherwise."""
    if cores is None:
        return
    home, mask = pool.load(f, pool.CALLER_CORE), f.at("i64", slot, pool.MASK)
    thread, avoided = (f.load("i64", f.at("i64", slot, n), 8) for n in (pool.WORKER_THREAD, pool.AVOIDED))
    field, bit = f.op(f"lshr i64 {f.sub(home, 1)}, 6"), f.op(f"shl i64 1, {f.op(f'and i64 {f.sub(home, 1)}, 63')}")
    known = f.both(f.test("ne", home, 0), f.test("slt", field, pool.MASK_SIZE))
    near = f.load("i64", f.at("i64", mask, f.select(known, "i64", field, 0)), 8)
    met = f.both(known, f.test("ne", f.op(f"and i64 {near}, {bit}"), 0))
    new = f.op(f"alloca i64, i64 {pool.MASK_SIZE}, align 8")
    with f.when(f.both(met, f.test("ne", avoided, home))):
        left = _without(f, mask, new, home)
        with f.when(f.test("eq", left, 0)):
            _without(f, pool.field(f, pool.SPARE), new, home)
        cores.set_affinity(f, thread, new)
        f.store("i64", home, f.at("i64", slot, pool.AVOIDED), 8)
    with f.when(f.both(f.negated(met), f.test("ne", avoided, 0))):
        cores.set_affinity(f, thread, mask)
        f.store("i64", 0, f.at("i64", slot, pool.AVOIDED), 8)


def _without(f: IRFunction, mask: str, new: str, core: str) -> str:
    """Copy a mask to `new` without one core, plus 1; nonzero if a core is left."""
    number = f.sub(core, 1)
    field, bit = f.op(f"ashr i64 {number}, 6"), f.op(f"shl i64 1, {f.op(f'and i64 {number}, 63')}")
    with f.loop(0, pool.MASK_SIZE, 1, [("i64", "0")]) as i:
        kept = f.select(f.test("eq", i.index, field), "i64", f.op(f"xor i64 {bit}, -1"), -1)
        bits = f.op(f"and i64 {f.load('i64', f.at('i64', mask, i.index), 8)}, {kept}")
        f.store("i64", bits, f.at("i64", new, i.index), 8)
        i.next = [f.op(f"or i64 {i.values[0]}, {bits}")]
    return i.values[0]
