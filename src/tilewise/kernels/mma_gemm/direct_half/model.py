"""Cost model of `direct_half`: a formula for every tile and cluster of single products; waves of stacks and groups."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import sqrt

from tilewise.core.machine import Machine, arch_number
from tilewise.core.plan import Geometry
from tilewise.core.problem import Problem
from tilewise.kernels.by_configs import Table
from tilewise.kernels.coefficients import Numbers, coefficients
from tilewise.kernels.shared.groups import expected_tiles
from tilewise.kernels.shared.residency import busiest, padded, rooms, rounded_up
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

KERNEL = "direct_half"
IDEA = "unaligned rows are shifted into shared memory and multiplied on tensor cores, in one launch: ragged stacks"
DEPTH = 64  # k of a phase
# Fitted to 84 plans of 35 random stacks on an H200 (rms 11 %, the choice 0.5 % above the best in the mean).
FIGURES: Numbers = coefficients("direct_half stack")
MOST_BLOCKS = 8  # of a cluster
LEAST_PHASES = 2  # of a part of k
# Fitted to the configurations of about 900 random products on an H200 (median error 8 %; the choice takes 5 % longer
# than the fastest configuration, in the mean).
SINGLE: Numbers = coefficients("direct_half")


@dataclass(frozen=True)
class HalfTile:
    """rows × cols of P a block of warps_m × warps_n warps, `resident` blocks a multiprocessor; split-K over the
    `cluster` blocks of a cluster."""

    rows: int
    cols: int
    warps_m: int
    warps_n: int
    resident: int
    cluster: int = 1

    @property
    def takes_cluster(self) -> bool:
        """Whether the sums of a tile fit the memory of its phases."""
        return self.rows * (self.cols + 8) * 4 <= self.shared_bytes

    @property
    def threads(self) -> int:
        return 32 * self.warps_m * self.warps_n

    @property
    def shared_bytes(self) -> int:
        """Two phases; the staged sums are smaller."""
        return 2 * (self.rows + self.cols) * 2 * DEPTH

    @property
    def geometry(self) -> Geometry:
        return Geometry((self.threads, 1), self.rows, self.cols, DEPTH, self.shared_bytes)

    def spec(self) -> str:
        cut = f" c{self.cluster}" if self.cluster > 1 else ""
        return f"{self.rows}x{self.cols}w{self.warps_m}x{self.warps_n}r{self.resident}{cut}"


TILES = (  # none of them spills
    HalfTile(128, 128, 4, 4, 1),
    HalfTile(128, 64, 4, 4, 1),
    HalfTile(64, 128, 4, 4, 1),
    HalfTile(64, 64, 4, 2, 2),
    HalfTile(32, 64, 2, 2, 4),
    HalfTile(64, 32, 4, 1, 4),
    HalfTile(32, 32, 2, 2, 4),
    HalfTile(128, 16, 4, 1, 3),
    HalfTile(16, 128, 1, 4, 3),
    HalfTile(16, 64, 1, 4, 5),
    HalfTile(64, 16, 4, 1, 5),
)


def tiles_of(problem: Problem, tile: HalfTile) -> tuple[int, int]:
    return max(1, math.ceil(problem.m / tile.rows)), max(1, math.ceil(problem.n / tile.cols))


HEIGHTS = tuple(dict.fromkeys(tile.rows for tile in TILES))


@Formula
def expected_of_many(row: Row, given: Row) -> float:
    """Of stacks and groups: waves of blocks, each as long as its phases one after the other, or the multiprocessor's
    loads or products."""
    rows, cols, resident, m, n, units = int(row[0]), int(row[1]), int(row[2]), int(given[0]), int(given[1]), given[2]
    blocks = given[ROWS_OF_TILES + int(row[3])] * max(1, -(-n // cols))
    waves = blocks / (units * resident)
    waves = rounded_up(waves) * 1.0 if waves < 4 else waves + 0.5
    together = min(resident, max(1, rounded_up(blocks / units)))
    loads = together * (min(m, rows) + min(n, cols)) * given[4] / FIGURES.unit
    products = together * rows * cols * given[5] / given[6]
    storing = FIGURES.block + FIGURES.cell * together * rows * cols
    work = waves * (given[3] * max(FIGURES.phase, max(loads, products)) + storing)
    return FIGURES.start + given[7] + max(work, given[8])


ROWS_OF_TILES = 9  # where what is given of the heights of tiles begins


@lru_cache(maxsize=1)
def table_of_many() -> Rows:
    return Rows([(t.rows, t.cols, t.resident, HEIGHTS.index(t.rows)) for t in TILES])


def given_of_many(p: Problem, machine: Machine) -> Row:
    """For each height, the rows of tiles of all members, or expected of all groups."""
    deep, rate = min(p.k, DEPTH), machine.tensor_rate(p.dtype.name) / machine.units * FIGURES.share
    down = [expected_tiles(p, h) if p.groups else p.members * max(1, -(-p.m // h)) for h in HEIGHTS]
    return (
        p.m, p.n, machine.units, max(1, -(-p.k // DEPTH)), 2 * deep, 16 * -(-deep // 16), rate,
        FIGURES.walk if p.groups else 0.0, p.least_bytes / (machine.bandwidth * FIGURES.memory), *down,
    )  # fmt: skip


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
    together, waves = busiest(tiles, row, ROOMS), tiles / room + 0.5
    if tiles < 4 * room:
        waves = -(-tiles // room) * 1.0
    loads = together * (min(m, rows) + min(n, cols)) * given[4]
    products = together * rows * cols * given[5]
    alone = SINGLE.load_chunk * (rows + cols) * 8 / threads
    phase = sqrt(sqrt(alone**4 + loads**4 + products**4))
    each = (-(-phases // parts) - 1) * phase + SINGLE.block + SINGLE.other_block * (together - 1)
    each += SINGLE.cell * together * rows * cols / parts
    work = SINGLE.start + sqrt(sqrt((waves * each) ** 4 + given[6]))
    return work + (SINGLE.meet + SINGLE.met_cell * rows * cols if parts > 1 else 0.0)


ROOMS = 5  # index of the rooms in a row


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
    rate = machine.tensor_rate(p.dtype.name) / machine.units * SINGLE.share
    passing = p.least_bytes / (machine.bandwidth * SINGLE.memory)
    return (
        p.m, p.n, max(1, -(-p.k // DEPTH)), arch_number(machine.arch) >= 90, 2 * deep / SINGLE.unit,
        16 * -(-deep // 16) / rate, passing**4,
    )  # fmt: skip


def is_single(p: Problem) -> bool:
    return p.groups is None and p.members == 1


def tables(p: Problem, machine: Machine) -> list[Table]:
    if not is_single(p):
        return [Table(expected_of_many, table_of_many(), given_of_many(p, machine), TILES.__getitem__)]
    configs, rows = table(machine.units)
    return [Table(expected, rows, given_of(p, machine), configs.__getitem__)]
