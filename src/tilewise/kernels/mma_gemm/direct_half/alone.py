"""How long `direct_half` is expected to take over one product: a formula for every tile and cluster."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import sqrt

from tilewise.core.machine import Machine, arch_number
from tilewise.core.problem import Problem
from tilewise.kernels.bounds import Bound
from tilewise.kernels.by_configs import Table
from tilewise.kernels.mma_gemm.direct_half.model import DEPTH, TILES, HalfTile
from tilewise.kernels.shared.residency import busiest, padded, rooms
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

MOST_BLOCKS = 8  # of a cluster
LEAST_PHASES = 2  # of a part of k
# Fitted to the ways of some 900 random products on an H200 (half of them 8 % off or less; what it chooses took 5 %
# longer than the soonest of the ways timed, in the mean, and 8 % before blocks of one multiprocessor had their share).
START_SECONDS = 1.59e-6  # of a launch,
TILE_SECONDS = 2.32e-6  # and of a tile's first phase and its stores;
BLOCK_SECONDS = 5.48e-7  # of each other block of its multiprocessor
CELL_SECONDS = 1.12e-10  # of each cell that a block stores
LOAD_SECONDS = 2.6e-7  # of a phase for each 16 bytes of a thread, where nothing hides that
UNIT_BANDWIDTH = 1.6e10  # bytes a second that a multiprocessor loads, shifts and puts into shared memory
RATE_SHARE, MEMORY_SHARE = 0.111, 0.363
ONE_LAUNCH = 0.95  # of its time it is offered for: queued, a launch more of others costs the host 7 µs
MEET_SECONDS, MET_CELL_SECONDS = (
    1.92e-7,
    3.73e-10,
)  # blocks of a cluster wait for one another; of each cell of their tile


@Formula
def expected(row: Row, given: Row) -> float:
    """Waves of blocks, each as long as its phases one after the other, or a multiprocessor's loads or products; beside
    the bytes."""
    m, n, phases = int(given[0]), int(given[1]), int(given[2])
    rows, cols, threads, parts = int(row[0]), int(row[1]), int(row[2]), int(row[3])
    if parts * LEAST_PHASES > max(phases, LEAST_PHASES):
        return INFINITE
    if parts > 1 and (row[4] == 0.0 or given[3] == 0.0):  # sums do not fit where the phases were; no clusters
        return INFINITE
    tiles, room = -(-m // rows) * -(-n // cols), int(row[ROOMS + int(row[ROOMS])])
    together, turns = busiest(tiles, row, ROOMS), tiles / room + 0.5
    if tiles < 4 * room:
        turns = -(-tiles // room) * 1.0
    loads = together * (min(m, rows) + min(n, cols)) * given[4]
    products = together * rows * cols * given[5]
    alone = LOAD_SECONDS * (rows + cols) * 8 / threads
    phase = sqrt(sqrt(alone**4 + loads**4 + products**4))
    each = (-(-phases // parts) - 1) * phase + TILE_SECONDS + BLOCK_SECONDS * (together - 1)
    each += CELL_SECONDS * together * rows * cols / parts
    work = START_SECONDS + sqrt(sqrt((turns * each) ** 4 + given[6]))
    return work + (MEET_SECONDS + MET_CELL_SECONDS * rows * cols if parts > 1 else 0.0)


ROOMS = 5  # where they begin in a row


@lru_cache(maxsize=16)
def table(units: int) -> tuple[tuple[HalfTile, ...], Rows]:
    configs = [replace(tile, cluster=parts) for tile, parts in product(TILES, range(1, MOST_BLOCKS + 1))]
    rows = [
        (t.rows, t.cols, t.threads, t.cluster, t.takes_cluster, *padded(rooms(units, t.cluster, t.resident)))
        for t in configs
    ]
    return tuple(configs), Rows(rows)


def given_of(p: Problem, machine: Machine) -> Row:
    deep = min(p.k, DEPTH)
    rate = machine.tensor_rate(p.dtype.name) / machine.units * RATE_SHARE
    passing = p.least_bytes / (machine.bandwidth * MEMORY_SHARE)
    return (
        p.m, p.n, max(1, -(-p.k // DEPTH)), arch_number(machine.arch) >= 90, 2 * deep / UNIT_BANDWIDTH,
        16 * -(-deep // 16) / rate, passing**4,
    )  # fmt: skip


def tables(p: Problem, machine: Machine) -> list[Table]:
    configs, rows = table(machine.units)
    return [Table(expected, rows, given_of(p, machine), configs.__getitem__)]


def bounds(some: Problem, machine: Machine) -> tuple[Bound, ...]:
    byte = 1 / (machine.bandwidth * MEMORY_SHARE)
    return (Bound(START_SECONDS, block=TILE_SECONDS, byte=byte, share=0.999 * ONE_LAUNCH),)
