"""Small products by tiles that are read straight, as the planner sees them: which tile, how many blocks share a k."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import NamedTuple

from tilewise.algebra.semiring import Algebra
from tilewise.core.machine import Machine, arch_number
from tilewise.core.plan import Geometry
from tilewise.core.problem import Problem
from tilewise.kernels.plain.configs import step_slots
from tilewise.kernels.shared.residency import MOST, busiest, padded, rooms
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

KERNEL = "direct"
IDEA = "a block reads whole strips of M and N straight into shared memory: small products, any layout, one launch"
LARGEST = 2**29  # steps of one member beyond which pipelines always win
SHARED_BYTES = 40 * 1024  # of a block, for its strips and then for its sums
BYTES_AT_ONCE = 144  # that a thread has on their way
GROUPS = (4, 2)  # of threads that share a strip's k,
LARGE = 2048  # unless their tile has so many cells: of 82,000 drawn products 19 would take that
WIDEST = 8  # bytes of a partial sum: strips of wider ones do not fit
CLUSTERS = (1, 2, 4, 8)  # blocks that share the k of a tile
UNIT_SHARED = 227 * 1024
RESIDENT_REGISTERS = 65536 // 88  # threads that a unit's registers allow


class Figures(NamedTuple):
    """Seconds, but for shares: fitted to the ways of 1,200 random products on an H200 (rms 11 %; held out, the choice
    2 % above the best of them in the mean)."""

    start: float  # of a launch
    meet: float  # of a cluster,
    met: float  # and for a block of it
    block: float  # of a block beside its strips,
    cell: float  # and of a cell of its tile
    strip: dict[int, float]  # until a strip is there, by groups of threads,
    of_k: dict[int, float]  # and of each k of it
    shares: tuple[float, ...]  # of the plain cores' rate, by tile
    unit: float  # bytes a second that a unit loads when all of them do
    crowd: float  # how much faster it is when few of them do, as a power of their share
    reading: float  # over the bandwidth's own time
    from_l2: float
    storing: float


FIGURES = {  # by bytes of an element; of 8 for sums of 8 bytes, too
    2: Figures(
        1.38e-6, 1.0e-6, 0.017e-6, 0.29e-6, 3.89e-10,
        {1: 1.008e-6, 2: 1.037e-6, 4: 1.486e-6}, {1: 12.9e-9, 2: 20e-9, 4: 0.2e-9},
        (0.275, 0.274, 0.354, 0.236, 0.232), 41.4e9, 0.484, 4.26, 3.29, 0.085,
    ),
    4: Figures(
        1.43e-6, 1.03e-6, 0.018e-6, 0.28e-6, 3.71e-10,
        {1: 0.916e-6, 2: 1.105e-6, 4: 1.511e-6}, {1: 14.6e-9, 2: 20.7e-9, 4: 0.14e-9},
        (0.383, 0.274, 0.368, 0.275, 0.357), 58.1e9, 0.425, 2.02, 1.87, 0.036,
    ),
    8: Figures(
        1.39e-6, 1.17e-6, 0.011e-6, 0.62e-6, 3.02e-10,
        {1: 0.677e-6, 2: 1.16e-6, 4: 0.107e-6}, {1: 11e-9, 2: 2.7e-9, 4: 15e-9},
        (0.271, 0.178, 0.317, 0.166, 0.326), 74.3e9, 0.463, 2.08, 1.35, 0.037,
    ),
}  # fmt: skip
# A launch whose blocks take no more than half of a card's room is followed by the next one before it is over; where
# they take more, the next one's last blocks come late. Seven products of 16x32 tiles with 3.3 to 4.6 blocks a unit took
# 0.9 to 2.4 µs longer than what fits those of 1 to 3 blocks within 0.2, and those of 10 to 19 within 1.2.
LATE_SECONDS = 1.8e-6
ROOM = {2: 7, 4: 8, 8: 6}  # blocks of 16x32 that a unit has room for, by bytes of an element
FEWEST = 0.15  # share of the units, below which nothing is faster any more


@dataclass(frozen=True)
class DirectTile:
    """A block makes rows × cols of P; a thread tm × tn of them."""

    rows: int
    cols: int
    tm: int
    tn: int

    @property
    def group(self) -> int:
        """Threads that make the tile once."""
        return self.rows // self.tm * (self.cols // self.tn)


TILES = (
    DirectTile(16, 32, 2, 2),
    DirectTile(32, 32, 2, 4),
    DirectTile(64, 32, 4, 4),
    DirectTile(8, 128, 2, 4),
    DirectTile(128, 8, 4, 2),
)


@dataclass(frozen=True)
class DirectConfig:
    """A tile, how many groups of threads share a strip's k, and how many blocks of a cluster share all of it."""

    tile: DirectTile
    groups: int
    cluster: int

    @property
    def threads(self) -> int:
        return self.tile.group * self.groups

    def depth(self, partial_bytes: int) -> int:
        """How much of k a strip holds: as much as fits, and as many loads as a thread can have on their way."""
        lines, deep = self.tile.rows + self.tile.cols, 256
        loads = BYTES_AT_ONCE // max(4, partial_bytes) * self.threads
        while deep * lines > loads or self._strips(deep, partial_bytes) > SHARED_BYTES:
            deep //= 2
        return deep

    def fits(self, partial_bytes: int) -> bool:
        """Whether every thread loads as much as every other, and what the groups make fits."""
        whole = min(self.tile.rows, self.tile.cols) * self.depth(partial_bytes) % self.threads == 0
        return whole and self.groups * self.tile.rows * self.tile.cols * partial_bytes <= SHARED_BYTES

    def _strips(self, deep: int, partial_bytes: int) -> int:
        return deep * (self.tile.rows + self.tile.cols + 2 * (16 // partial_bytes)) * partial_bytes

    def shared_bytes(self, partial_bytes: int) -> int:
        sums = self.groups * self.tile.rows * self.tile.cols * partial_bytes
        return max(self._strips(self.depth(partial_bytes), partial_bytes), sums)

    def words(self) -> str:
        return f"{self.tile.rows}x{self.tile.cols} g{self.groups} c{self.cluster}"


def clusters_of(machine: Machine) -> tuple[int, ...]:
    return CLUSTERS if arch_number(machine.arch) >= 90 else (1,)


@lru_cache(maxsize=64)
def every_config(partial_bytes: int, clusters: tuple[int, ...]) -> tuple[DirectConfig, ...]:
    """All there are: one group for a short k, as many as fit for a longer one, by themselves and in clusters."""
    made = []
    for tile in TILES:
        made.append(DirectConfig(tile, 1, 1))
        if tile.rows * tile.cols >= LARGE:
            continue
        groups = next((g for g in GROUPS if DirectConfig(tile, g, 1).fits(partial_bytes)), 1)
        made += [DirectConfig(tile, groups, cluster) for cluster in clusters if groups * cluster > 1]
    return tuple(config for config in made if config.fits(partial_bytes))


def figures_of(algebra: Algebra) -> Figures:
    return FIGURES[_bytes(algebra)]


def _bytes(algebra: Algebra) -> int:
    """2, 4 or 8."""
    size = 8 if algebra.partial.itemsize == 8 else min(8, algebra.element.itemsize)  # complex128 to truth values, too
    return max(2, size)


ROOMS = 14  # where they begin in a row


@lru_cache(maxsize=64)
def _table(algebra: Algebra, machine: Machine) -> tuple[tuple[DirectConfig, ...], Rows]:
    """Every way, with what its seconds are reckoned from: k up to which its blocks would have too little; its sides and
    the depth of a strip; seconds until that is there, and of each k of it where a block has a unit to itself; of each k
    on the cores of a unit that has many, and on its way into shared memory; of a block beside its strips, and of its
    stores; of a launch; blocks of a cluster; from how many tiles on the next launch is late, and up to how many."""
    size, rows, figures = algebra.partial.itemsize, list[tuple[float, ...]](), figures_of(algebra)
    configs = every_config(size, clusters_of(machine))
    for config in configs:
        tile, deep, threads, cluster = config.tile, config.depth(size), config.threads, config.cluster
        registers, shared = RESIDENT_REGISTERS // threads, UNIT_SHARED // config.shared_bytes(size)
        resident = max(1, min(machine.resident_threads // threads, registers, shared, MOST))
        rate = _rate(algebra, machine) / machine.units * figures.shares[TILES.index(tile)]
        cells, meeting = tile.rows * tile.cols, figures.meet + figures.met * cluster if cluster > 1 else 0.0
        rows.append(
            (
                deep * cluster // 2 if cluster > 1 else -1,
                tile.rows,
                tile.cols,
                deep,
                figures.strip[config.groups],
                figures.of_k[config.groups],
                cells / rate,
                (tile.rows + tile.cols) * algebra.element.itemsize / figures.unit,
                figures.block,
                figures.cell * tile.rows * tile.cols,
                figures.start + meeting,
                cluster,
                *(_late(algebra, machine) if config == every_config(size, (1,))[0] else (0, 0)),
                *padded(rooms(machine.units, cluster, resident)),
            )
        )
    return configs, Rows(rows)


def _late(algebra: Algebra, machine: Machine) -> tuple[int, int]:
    """Tiles of 16x32, each by a block of its own: more than these, and no more than those, delay the next launch."""
    room = ROOM[_bytes(algebra)] * machine.units
    return room // 2, room


@Formula
def _seconds(row: Row, given: Row) -> float:
    """Strips one after the other, each as long as one block alone takes or all of a unit's together; or the bytes from
    memory, or those from the L2; and what a launch takes anyway. Two limits that are equally near hinder each other."""
    m, k, n, members, units = int(given[0]), int(given[1]), int(given[2]), int(given[3]), int(given[4])
    rows, cols, depth, cluster, end, stores = int(row[1]), int(row[2]), int(row[3]), int(row[11]), row[8], row[9]
    if k <= int(row[0]):
        return INFINITE
    tiles, piece = members * -(-m // rows) * -(-n // cols), -(-k // cluster)
    deep = min(piece, depth)
    crowd = min(1.0, max(FEWEST, tiles * cluster / units)) ** given[5]
    alone, busy = (row[4] + row[5] * deep) ** 4, deep**4 * (row[6] ** 4 + (row[7] * crowd) ** 4)
    held = int(row[ROOMS])
    full, rest = tiles // int(row[ROOMS + held]), tiles % int(row[ROOMS + held])
    strips, work = -(-piece // depth), 0.0
    if full:
        work = full * (strips * sqrt(sqrt(alone + busy * held**4)) + end + stores * held)
    if rest:
        last = busiest(rest, row, ROOMS)
        work += strips * sqrt(sqrt(alone + busy * last**4)) + end + stores * last
    read = given[7] * tiles * (rows + cols)
    if tiles > int(row[12]) and tiles <= int(row[13]):
        work += LATE_SECONDS
    return row[10] + sqrt(sqrt(work**4 + given[6] + read**4)) + given[8]


def _given(p: Problem, machine: Machine) -> Row:
    """What all rows share."""
    figures, size = figures_of(p.algebra), p.dtype.itemsize
    memory = figures.reading * p.least_bytes / machine.bandwidth
    storing = figures.storing * p.members * p.m * p.n * size / machine.bandwidth
    from_l2 = figures.from_l2 * p.k * size / machine.bandwidth
    return p.m, p.k, p.n, p.members, machine.units, figures.crowd, memory**4, from_l2, storing


def configs(problem: Problem, machine: Machine) -> list[DirectConfig]:
    """Those whose blocks have some of k each."""
    every, table = _table(problem.algebra, machine)
    return [config for config, row in zip(every, table.rows, strict=True) if problem.k > row[0]]


@lru_cache(maxsize=64)
def best_config(problem: Problem, machine: Machine) -> tuple[DirectConfig, float]:
    """The way with the least expected seconds."""
    every, table = _table(problem.algebra, machine)
    number, least = _seconds.least(table, _given(problem, machine), problem.largest)
    return every[number], least


def least_seconds(problem: Problem, machine: Machine) -> float:
    """A launch, and the longest of: every step at the best tile's rate, one block's strips of k, the bytes."""
    p, figures = problem, figures_of(problem.algebra)
    steps = figures.block + p.steps / (_rate(p.algebra, machine) * max(figures.shares))
    alone = min([p.k * of_k + beside for of_k, beside in _alone(p.algebra, machine)])
    reading = figures.reading * p.least_bytes / machine.bandwidth
    return 0.999 * (figures.start + max(steps, alone, reading))


@lru_cache(maxsize=64)
def _alone(algebra: Algebra, machine: Machine) -> list[tuple[float, float]]:
    """By blocks of a cluster: the least seconds of each k where a block has a unit to itself, and beside."""
    rows, figures = _table(algebra, machine)[1].rows, figures_of(algebra)
    return [
        (min((row[4] / row[3] + row[5]) / blocks for row in alike), alike[0][10] - figures.start + figures.block)
        for blocks in sorted({row[11] for row in rows})
        if (alike := [row for row in rows if row[11] == blocks])
    ]


@lru_cache(maxsize=256)
def _rate(algebra: Algebra, machine: Machine) -> float:
    """Steps a second of the whole card."""
    wide = "float64" if algebra.partial.name == "float64" else "float32"
    return machine.step_rate(wide) / max(1.0, step_slots(algebra, machine) / 2)


def tiles_of(problem: Problem, tile: DirectTile) -> tuple[int, int]:
    return math.ceil(problem.m / tile.rows), math.ceil(problem.n / tile.cols)


def piece(problem: Problem, config: DirectConfig) -> int:
    """How much of k one block of a cluster takes."""
    return math.ceil(problem.k / config.cluster)


def seconds(config: DirectConfig, problem: Problem, machine: Machine) -> float:
    """What the model expects of one way."""
    every, table = _table(problem.algebra, machine)
    return _seconds(table.rows[every.index(config)], _given(problem, machine))


def geometry(problem: Problem, config: DirectConfig) -> Geometry:
    tile, size = config.tile, problem.algebra.partial.itemsize
    return Geometry((config.threads, 1), tile.rows, tile.cols, config.depth(size), config.shared_bytes(size))
