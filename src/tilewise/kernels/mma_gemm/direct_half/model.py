"""Cost model of `direct_half`: a formula for every tile and cluster of single products; waves of stacks and groups."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import sqrt
from typing import NamedTuple

from tilewise.core.machine import Machine, arch_number
from tilewise.core.plan import Geometry
from tilewise.core.problem import Problem
from tilewise.kernels.coefficients import Numbers, coefficients
from tilewise.kernels.family import Searched, numbered
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


HEIGHTS = 128, 64, 32, 16  # of tiles


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


class Figures(NamedTuple):
    """What times depend on besides sizes: a kind of product on a card."""

    units: int  # multiprocessors
    bandwidth: float  # bytes a second
    rate: float  # steps a second of a multiprocessor's tensor cores
    clusters: bool  # the card has them


def figures_of(p: Problem, machine: Machine) -> Figures:
    rate = machine.tensor_rate(p.dtype.name) / machine.units
    return Figures(machine.units, machine.bandwidth, rate, arch_number(machine.arch) >= 90)


def given_of_many(p: Problem, f: Figures) -> Row:
    """What is given of stacks; for each height, the rows of tiles of all members."""
    deep = min(p.k, DEPTH)
    return (
        p.m, p.n, f.units, max(1, -(-p.k // DEPTH)), 2 * deep, 16 * -(-deep // 16), f.rate * FIGURES.share, 0.0,
        p.least_bytes / (f.bandwidth * FIGURES.memory), rows_of_tiles(p, 128), rows_of_tiles(p, 64),
        rows_of_tiles(p, 32), rows_of_tiles(p, 16),
    )  # fmt: skip


def rows_of_tiles(p: Problem, height: int) -> int:
    return p.members * max(1, -(-p.m // height))


def given_of_groups(p: Problem, f: Figures) -> Row:
    """The same of groups; rows of tiles as expected of all of them."""
    deep = min(p.k, DEPTH)
    return (
        p.m, p.n, f.units, max(1, -(-p.k // DEPTH)), 2 * deep, 16 * -(-deep // 16), f.rate * FIGURES.share,
        FIGURES.walk, p.least_bytes / (f.bandwidth * FIGURES.memory), expected_tiles(p, 128), expected_tiles(p, 64),
        expected_tiles(p, 32), expected_tiles(p, 16),
    )  # fmt: skip


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


def given_of(p: Problem, f: Figures) -> Row:
    deep, passing = min(p.k, DEPTH), p.least_bytes / (f.bandwidth * SINGLE.memory)
    return (
        p.m, p.n, max(1, -(-p.k // DEPTH)), f.clusters, 2 * deep / SINGLE.unit,
        16 * -(-deep // 16) / (f.rate * SINGLE.share), passing**4,
    )  # fmt: skip


def in_one_launch(row: Row, given: Row, seconds: float) -> float:
    """Other kernels need launches before, which the model expects to be shorter than they are."""
    return SINGLE.one_launch * seconds


EXPECTED = Formula(expected, given_of, final=in_one_launch)
EXPECTED_OF_MANY = Formula(expected_of_many, given_of_many)
EXPECTED_OF_GROUPS = Formula(expected_of_many, given_of_groups)


def searched(p: Problem, machine: Machine) -> list[Searched]:
    if p.groups is None and p.members == 1:
        configs, rows = table(machine.units)
        return [Searched(EXPECTED, rows, figures_of(p, machine), numbered(configs))]
    formula = EXPECTED_OF_GROUPS if p.groups else EXPECTED_OF_MANY
    return [Searched(formula, table_of_many(), figures_of(p, machine), numbered(TILES))]
