"""Counts of instrumented blocks (`lower/races.py`) for the cost model: statements, and sectors of global memory that
each warp accessed."""

from __future__ import annotations

import ctypes

import numpy as np

from tilewise.emulator.host.lower.program import Program
from tilewise.emulator.host.lower.races import LOGGED
from tilewise.emulator.host.lower.recording import ENTRY_BYTES
from tilewise.emulator.machine.costs import SECTOR_BYTES, WARP, Costs, SiteCost, distinct
from tilewise.emulator.machine.execute import Outcome

ACCESS = np.dtype({
    "names": ["address", "line", "thread"], "formats": ["<i8", "<i4", "<i4"], "offsets": [0, 20, 24],
    "itemsize": ENTRY_BYTES,
})  # fmt: skip


def reset_counters(program: Program) -> None:
    program.memory.cells(program.work_log, ctypes.c_int64, 2)[:] = 0, 0


def counted_work(program: Program, threads: int) -> Outcome:
    accesses, statements = program.memory.cells(program.work_log, ctypes.c_int64, 2)
    logged = min(accesses, LOGGED)
    raw = program.memory.cells(program.work_log + 64, ctypes.c_char, ENTRY_BYTES * logged)
    costs = Costs(threads)
    if logged:
        sectors = _sectors(np.frombuffer(memoryview(raw), ACCESS))
        costs.globals[0] = SiteCost(units=int(sectors * accesses / logged))
    return Outcome({"loads": accesses}, costs, [], 1, 1, statements)


def _sectors(log: np.ndarray) -> int:
    """Sectors accessed, counted once per warp instruction: the nth access of a warp's threads on a line."""
    line, thread = log["line"].astype(np.int64), log["thread"].astype(np.int64)
    order = np.lexsort((line, thread))
    same = np.diff(line[order] << 32 | thread[order], prepend=-1) == 0
    number = np.arange(len(log))
    nth = np.empty(len(log), np.int64)
    nth[order] = number - np.maximum.accumulate(np.where(same, 0, number))
    ranks = np.searchsorted(distinct(line), line)
    request = ((thread // WARP) * (int(ranks.max()) + 1) + ranks) * (int(nth.max()) + 1) + nth
    sector = log["address"] // SECTOR_BYTES
    return len(distinct(request * (int(np.ptp(sector)) + 1) + sector - sector.min()))
