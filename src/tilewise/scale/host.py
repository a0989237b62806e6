"""Streaming through host memory: a tile of P stays, panels are read ahead, the CPU backend multiplies."""

from __future__ import annotations

import os
import queue
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.backends import reference
from tilewise.backends.cpu.limits import host_machine
from tilewise.backends.cpu.ready import Ready
from tilewise.backends.cpu.run import run as run_on_cpu
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.planning.choose import make_plan
from tilewise.scale.panels import read_ahead
from tilewise.scale.pieces import is_long, of_panels, run_in_pieces
from tilewise.scale.schedule import Level, OutputTile, Schedule, make_schedule
from tilewise.scale.sources import BAND, MatrixSource
from tilewise.scale.targets import MatrixTarget

Progress = Callable[[int, int], None]
Finished = Callable[[OutputTile], None]

PROBE = 512  # side of the product that is timed to measure the rate
NOMINAL_STEPS = 40e9  # a second, of a core
DISK = Level("files → memory", 1.5e9, 4e8, NOMINAL_STEPS)  # a typical disk
MEMORY = Level("memory → tiles", 8e9, 8e9, NOMINAL_STEPS)


def multiply(problem: Problem, M: Array, N: Array, P: Array, accumulate: bool) -> Plan:
    """P = M ⊗ N, or P ⊕= M ⊗ N, on arrays in memory, with the semiring and precision of `problem`."""
    made = make_plan(of_panels(problem, M, N, P, accumulate), host_machine())
    if made.engine != "reference" and is_long(made.problem, made.machine):
        run_in_pieces(made.problem, made.machine, M, N, P)
        return made
    (reference.run if made.engine == "reference" else run_on_cpu)(made, M, N, P)
    return made


def host_schedule(problem: Problem, level: Level, memory: int, **how: Any) -> Schedule:
    """The schedule for this machine, with tiles chosen for a nominal rate: the measured one varies from run to run,
    and with it the tiles, the order of sums and so the bits of P would vary."""
    usual = replace(level, steps=NOMINAL_STEPS * (os.cpu_count() or 1))
    return replace(make_schedule(problem, usual, memory, **how), level=level)


def load_kernels(schedule: Schedule) -> None:
    """Compile and load every kernel of a schedule, and of the product that `host_level` times."""
    p = schedule.problem
    shapes = {_phase_shape(schedule, last) for last in product((False, True), repeat=3)}
    for rows, cols, depth in {*shapes, _probe(p)}:
        M, N = np.empty((rows, depth), p.dtype_m.numpy), np.empty((depth, cols), p.dtype_n.numpy)  # untouched
        P = np.empty((rows, cols), p.result.numpy)
        for accumulate in (False, True):
            made = make_plan(of_panels(p, M, N, P, accumulate), host_machine())
            if made.engine == "cpu":
                assert made.blocking is not None
                Ready(made.problem, made.blocking)


def _probe(problem: Problem) -> tuple[int, int, int]:
    """Rows, columns and depth of the product that `host_level` times."""
    rows, cols, depth = (max(1, min(PROBE, extent)) for extent in (problem.m, problem.n, problem.k))
    return rows, cols, depth


def _phase_shape(s: Schedule, last: tuple[bool, ...]) -> tuple[int, int, int]:
    """Rows, columns and depth of a phase; `last`: whether each of them is at the end of its axis."""
    sides = zip(last, (s.problem.m, s.problem.n, s.problem.k), (s.rows, s.cols, s.depth), strict=True)
    return tuple((extent - 1) % side + 1 if at_end and extent else side for at_end, extent, side in sides)  # type: ignore


def host_level(problem: Problem) -> Level:
    """A typical disk, and this machine's measured rate of a product of PROBE³, for the expected time."""
    rows, cols, depth = _probe(problem)
    rng = np.random.default_rng(0)
    M, N = (
        rng.integers(0, 2, shape).astype(dtype.numpy)
        for shape, dtype in (((rows, depth), problem.dtype_m), ((depth, cols), problem.dtype_n))
    )
    P = np.empty((rows, cols), problem.result.numpy)
    multiply(problem, M, N, P, False)  # compiles
    times = []
    for _ in range(2):
        start = time.perf_counter()
        multiply(problem, M, N, P, False)
        times.append(time.perf_counter() - start)
    return replace(DISK, steps=rows * depth * cols / min(times))


def stream(
    schedule: Schedule,
    M: MatrixSource,
    N: MatrixSource,
    P: MatrixTarget,
    *,
    done: frozenset[int] = frozenset(),
    progress: Progress | None = None,
    finished: Finished | None = None,
    checkpoint: Any = None,
    saved: Any = None,
) -> None:
    """Compute and write every tile that is not done, and report it to `finished` once it is durable. `checkpoint`
    gets the sums of a tile between its phases; `saved`: the tile whose sums an earlier run saved."""
    problem = schedule.problem
    result = problem.semiring.over(problem.dtype).result.numpy
    sums = np.empty(schedule.rows * schedule.cols, problem.result.numpy)
    total, count = schedule.tiles * max(1, schedule.phases), len(done) * max(1, schedule.phases)
    start = None if saved is None else (saved.tile, saved.phases)
    with TileFinalizer(P, finished) as finalizer, closing(read_ahead(schedule, M, N, done, start)) as panels:
        if problem.k == 0:
            for tile in schedule.walk():
                zero_tile = np.full(tile.shape, problem.algebra.zero, result)
                P.write(tile.rows, tile.cols, zero_tile)
                finalizer.take(tile)
            return
        for phase, panel_m, panel_n in panels:
            rows, cols = phase.tile.shape
            here = sums[: rows * cols].reshape(rows, cols)
            if start == (phase.tile.number, phase.number):
                saved.load(here)
            multiply(problem, panel_m, panel_n, here, not phase.first)
            if phase.last:
                write_rounded(P, phase.tile, here, result)
                finalizer.take(phase.tile)
            elif checkpoint is not None:
                checkpoint.offer(phase.tile.number, phase.number + 1, here)
            count += 1
            if progress is not None:
                progress(count, total)


def write_rounded(P: MatrixTarget, tile: OutputTile, sums: Array, result: np.dtype[Any]) -> None:
    """Write the tile in P's dtype; half precision is rounded here, once, a band at a time."""
    if sums.dtype == result:
        P.write(tile.rows, tile.cols, sums)
        return
    step = max(1, BAND // max(1, sums.shape[1] * sums.itemsize))
    for top in range(0, len(sums), step):
        with np.errstate(all="ignore"):
            band = sums[top : top + step].astype(result)
        start = tile.rows.start + top
        P.write(slice(start, start + len(band)), tile.cols, band)


class TileFinalizer:
    """A thread that syncs finished tiles while the next tile is computed."""

    def __init__(self, P: MatrixTarget, finished: Finished | None) -> None:
        self._target, self._finished = P, finished
        self._queue: queue.Queue[OutputTile | None] = queue.Queue()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="tilewise finalizer", daemon=True)

    def __enter__(self) -> TileFinalizer:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._queue.put(None)
        self._thread.join()
        if self._error is not None and kind is None:
            raise self._error

    def take(self, tile: OutputTile) -> None:
        if self._error is not None:
            raise self._error
        self._queue.put(tile)

    def _work(self) -> None:
        while (tile := self._queue.get()) is not None:
            if self._error is not None:
                continue
            try:
                if self._finished is not None:
                    self._target.sync()
                    self._finished(tile)
            except BaseException as error:  # raised by the thread that multiplies
                self._error = error


def checksum(tile: OutputTile, P: Any, dtype: np.dtype[Any]) -> int:
    """The CRC of a tile's bytes as read back from P, row by row."""
    rows, cols = tile.shape
    step = max(1, BAND // max(1, cols * dtype.itemsize))
    value = 0
    for top in range(0, rows, step):
        band = np.empty((min(step, rows - top), cols), dtype)
        P.read(slice(tile.rows.start + top, tile.rows.start + top + len(band)), tile.cols, band)
        value = zlib.crc32(band.view(np.uint8).data, value)
    return value
