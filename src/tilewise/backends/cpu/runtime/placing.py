"""Workers are not woken on the core of the thread that calls.

A worker parks on some core, and is woken there, where the thread that calls may be by then, or beside the one that
wakes it, because Linux takes two that wake each other for a pair. A system looks for an idle core then, but in a
virtual machine no sleeping core counts as one, and both would share theirs for milliseconds: longer than most products
take. So a worker is sent elsewhere until it is up: to the core that the other one has left, where it parked on this
one; else to any but this (on ARM; x86 was not timed for it, and there it is left where it parked).
"""

from __future__ import annotations

from tilewise.backends.cpu.kernels.shared.ir import Function
from tilewise.backends.cpu.runtime.pool_words import BEFORE, CORE, HOME, MASK, MASK_WORDS, SELF, SENT, load, store
from tilewise.backends.cpu.runtime.systems.cores_of_threads import CoresOfThreads


def note_home(f: Function, cores: CoresOfThreads | None) -> None:
    """Where the thread that calls is, and where it was before; cores are counted from 1, 0 is none."""
    if cores is None:
        return
    now, home = f.add(cores.core(f), 1), load(f, HOME)
    with f.when(f.test("ne", now, home)):
        store(f, BEFORE, home)
        store(f, HOME, now)


def note_bed(f: Function, cores: CoresOfThreads | None, bed: str) -> None:
    """Where a worker parks, and who it is."""
    if cores is None:
        return
    come_back(f, cores, bed)
    for number, value in ((CORE, f.add(cores.core(f), 1)), (SELF, cores.itself(f))):
        f.store("i64", value, f.at("i64", bed, number), 8)


def send_elsewhere(f: Function, cores: CoresOfThreads | None, bed: str, always: bool) -> None:
    """By the one that wakes it, who has its lock: where it parked on the caller's core, or `always`."""
    if cores is None:
        return
    home, mask = load(f, HOME), f.at("i64", bed, MASK)
    core, thread, sent = (_word(f, bed, number) for number in (CORE, SELF, SENT))
    met = f.test("eq", core, home)
    asked = f.test("eq", sent, 0) if always else f.both(met, f.test("eq", sent, 0))
    new = f.op(f"alloca i64, i64 {MASK_WORDS}, align 8")
    with f.when(asked), f.when(cores.ask(f, thread, mask)):
        some = _elsewhere(f, mask, home, new, met if always else "")
        with f.when(f.test("ne", some, 0)):
            f.store("i64", 1, f.at("i64", bed, SENT), 8)
            cores.allow(f, thread, new)


def come_back(f: Function, cores: CoresOfThreads | None, bed: str) -> None:
    """A worker that is up may be anywhere again."""
    if cores is None:
        return
    with f.when(f.test("ne", _word(f, bed, SENT), 0)):
        cores.allow(f, cores.itself(f), f.at("i64", bed, MASK))
        f.store("i64", 0, f.at("i64", bed, SENT), 8)


def _elsewhere(f: Function, mask: str, home: str, new: str, met: str) -> str:
    """The core that the thread that calls has left, if they `met` and it is in `mask`, else all of `mask` but where it
    is now: written to `new`. Whether that is any comes back, as no zero."""
    left = load(f, BEFORE)
    left = f.select(f.test("eq", left, 0), "i64", home, left)
    (here, here_bit), (there, there_bit) = _bit(f, home), _bit(f, left)
    may = f.test("ne", f.op(f"and i64 {_word(f, mask, there)}, {there_bit}"), 0)
    only_there = f.both(may, f.test("ne", left, home))
    if met:
        only_there = f.both(met, only_there)
    with f.loop(0, MASK_WORDS, 1, [("i64", "0")]) as i:
        not_here = f.select(f.test("eq", i.index, here), "i64", f.op(f"xor i64 {here_bit}, -1"), -1)
        others = f.op(f"and i64 {_word(f, mask, i.index)}, {not_here}")
        one = f.select(f.test("eq", i.index, there), "i64", there_bit, 0)
        bits = f.select(only_there, "i64", one, others)
        f.store("i64", bits, f.at("i64", new, i.index), 8)
        i.next = [f.op(f"or i64 {i.values[0]}, {bits}")]
    return i.values[0]


def _bit(f: Function, core: str) -> tuple[str, str]:
    """The word of a mask that has a core's bit, and the bit."""
    number = f.sub(core, 1)
    return f.op(f"lshr i64 {number}, 6"), f.op(f"shl i64 1, {f.op(f'and i64 {number}, 63')}")


def _word(f: Function, base: str, number: str | int) -> str:
    return f.load("i64", f.at("i64", base, number), 8)
