"""How long `direct_half` is expected to take over one product: a formula for every tile and cluster."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import sqrt

from tilewise.kernels.direct_half.model import DEPTH, TILES, HalfTile
from tilewise.machine import Machine, arch_number
from tilewise.problem import Problem
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

MOST_BLOCKS = 8  # of a cluster
LEAST_PHASES = 2  # of a part of k
# Fitted to 4,700 ways of 460 random products on an H200 (rms 17 %).
START_SECONDS = 1.44e-6  # of a launch,
TILE_SECONDS = 3.12e-6  # and of a tile's first phase and its stores;
CELL_SECONDS = 8.2e-11  # of each cell that a block stores
PHASE_SECONDS = 4.1e-7  # from a phase's loads to its products, where nothing hides that,
LOAD_SECONDS = 1.87e-7  # and of each 16 bytes of a thread
UNIT_BANDWIDTH = 2.22e10  # bytes a second that a multiprocessor loads, shifts and puts into shared memory
RATE_SHARE, MEMORY_SHARE = 0.102, 0.299
ONE_LAUNCH = 0.9  # of its time it is offered for: queued, a launch more of others costs the host 7 µs
MEET_SECONDS, MET_CELL_SECONDS = 3.9e-7, 2.9e-10  # blocks of a cluster wait for one another; of each cell of their tile


@Formula
def expected(row: Row, given: Row) -> float:
    """Waves of blocks, each as long as its phases one after the other, or a multiprocessor's loads or products; beside
    the bytes."""
    m, n, phases, units = int(given[0]), int(given[1]), int(given[2]), int(given[3])
    rows, cols, threads, held, parts = int(row[0]), int(row[1]), int(row[2]), int(row[3]), int(row[4])
    if parts * LEAST_PHASES > max(phases, LEAST_PHASES):
        return INFINITE
    if parts > 1 and (row[5] == 0.0 or given[4] == 0.0):  # sums do not fit where the phases were; no clusters
        return INFINITE
    blocks = -(-m // rows) * -(-n // cols) * parts
    waves, together = blocks / (units * held), min(held, -(-blocks // units))
    turns = waves + 0.5
    if waves < 4.0:
        turns = -(-blocks // (units * held)) * 1.0
    loads = together * (min(m, rows) + min(n, cols)) * given[5]
    products = together * rows * cols * given[6]
    alone = PHASE_SECONDS + LOAD_SECONDS * (rows + cols) * 8 / threads
    phase = sqrt(sqrt(alone**4 + loads**4 + products**4))
    each = (-(-phases // parts) - 1) * phase + TILE_SECONDS + CELL_SECONDS * together * rows * cols / parts
    work = START_SECONDS + sqrt(sqrt((turns * each) ** 4 + given[7]))
    return work + (MEET_SECONDS + MET_CELL_SECONDS * rows * cols if parts > 1 else 0.0)


@lru_cache(maxsize=1)
def table() -> tuple[tuple[HalfTile, ...], Rows]:
    ways = [replace(tile, cluster=parts) for tile, parts in product(TILES, range(1, MOST_BLOCKS + 1))]
    rows = [(t.rows, t.cols, t.threads, t.resident, t.cluster, t.takes_cluster) for t in ways]
    return tuple(ways), Rows(rows)


def given_of(p: Problem, machine: Machine) -> Row:
    deep = min(p.k, DEPTH)
    rate = machine.tensor_rate(p.dtype.name) / machine.units * RATE_SHARE
    passing = p.least_bytes / (machine.bandwidth * MEMORY_SHARE)
    return (
        p.m, p.n, max(1, -(-p.k // DEPTH)), machine.units, arch_number(machine.arch) >= 90, 2 * deep / UNIT_BANDWIDTH,
        16 * -(-deep // 16) / rate, passing**4,
    )  # fmt: skip


def least(p: Problem, machine: Machine) -> tuple[HalfTile, float]:
    """The way with the least expected seconds."""
    number, seconds = expected.least(table()[1], given_of(p, machine), p.largest)
    return table()[0][number], seconds


def every(p: Problem, machine: Machine) -> list[HalfTile]:
    given = given_of(p, machine)
    return [way for way, row in zip(*_both(), strict=True) if expected(row, given) < INFINITE]


def seconds(way: HalfTile, p: Problem, machine: Machine) -> float:
    ways, rows = _both()
    return expected(rows[ways.index(way)], given_of(p, machine))


def _both() -> tuple[tuple[HalfTile, ...], tuple[Row, ...]]:
    ways, rows = table()
    return ways, rows.rows


def least_seconds(p: Problem, machine: Machine) -> float:
    """What no way goes below."""
    return ONE_LAUNCH * (START_SECONDS + max(TILE_SECONDS, p.least_bytes / (machine.bandwidth * MEMORY_SHARE)))
