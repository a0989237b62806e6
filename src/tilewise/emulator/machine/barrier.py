"""`__syncthreads` and `__syncwarp`: divergence check, and the order of accesses in shadow memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.emulator.machine.context import Context
from tilewise.emulator.machine.costs import distinct
from tilewise.emulator.machine.findings import Kind
from tilewise.emulator.source.source import Span

GRID = 8  # __wait(GRID) of device.h: a barrier of the whole grid


def barrier(c: Context, span: Span, grid: bool = False) -> None:
    """All threads of a block must arrive, or of the grid, except those that have exited."""
    if c.barrier_hook is not None:
        c.barrier_hook(c, span)
        return
    passed: Any = None
    if c.mask is not None:
        passed = _arrived(c, span, grid)
    c.grid_epoch += grid
    threads = c.geometry.threads
    c.counters["barriers"] += c.n // threads if passed is None else len(distinct(c.slot[passed]))
    if c.recorder is not None:
        c.recorder.barrier(c, span.line)
    for buffer in c.buffers:
        buffer.shadow.barrier(c, passed is None)
    c.epochs[slice(None) if passed is None else distinct(c.slot[passed])] += 1


def _arrived(c: Context, span: Span, grid: bool) -> Any:
    """The lanes of blocks that arrive; None if all do. A block with missing threads is reported and passes."""
    here = c.mask
    missing = ~here
    if c.exited is not None:
        missing = missing & ~c.exited
    if not missing.any():
        return None
    blocks = c.block_count
    threads = c.geometry.threads
    some = here.reshape(blocks, threads).any(axis=1)
    absent = missing.reshape(blocks, threads)
    divergent = (some | grid) & absent.any(axis=1)
    if divergent.any() and c.checks:
        lanes = np.flatnonzero((absent & divergent[:, None]).reshape(-1))
        c.collector.add(c, Kind.DIVERGENT_BARRIER, span, lanes, access="barrier", scope="the grid" if grid else "")
    if some.all():
        return None
    return np.repeat(some, threads)


def warp_barrier(c: Context) -> None:
    """`__syncwarp` orders the threads of a warp: races inside a warp are not reported from then on."""
    for buffer in c.buffers:
        buffer.shadow.warp_synced = True
