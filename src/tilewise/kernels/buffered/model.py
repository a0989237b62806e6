"""Stacks of products by double-buffered strips, as the planner sees them: which tile, how many blocks share a k."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import NamedTuple

from tilewise.algebra.builtin import is_plus_times
from tilewise.algebra.semiring import Algebra
from tilewise.core.machine import Machine, arch_number
from tilewise.core.plan import Geometry
from tilewise.core.problem import Layout, Problem
from tilewise.kernels.capabilities import Condition
from tilewise.kernels.plain.configs import step_slots
from tilewise.kernels.shared.residency import MOST, busiest, padded, rooms
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

KERNEL = "buffered"
IDEA = "strips pass through registers into two buffers, a thread makes many cells: middling products and stacks of them"
LARGEST = 2**31  # steps of one member beyond which pipelines always win
SIZE = 4  # bytes of an element, and of a partial sum
CLUSTERS = (1, 2, 4, 8)  # blocks that share the k of a tile
UNIT_SHARED = 227 * 1024
FARTHEST = 2**31 // 256  # elements from line to line: offsets in a tile have 32 bits


class Figures(NamedTuple):
    """Seconds, but for shares: fitted to 1,146 ways of 205 random stacks on an H200 (rms 10 % near the best; the choice
    2 % above the best of them in the mean)."""

    start: float  # of a launch
    meet: float  # of a cluster,
    met: float  # and for a block of it
    block: float  # of a block beside its strips,
    cell: float  # and of a cell of its tile
    strip: tuple[float, ...]  # by tile, until a strip is there,
    of_k: float  # and of each k of it, where a block has a unit to itself
    shares: tuple[float, ...]  # of the plain cores' rate, by tile
    unit: float  # bytes a second that a unit loads when all of them do
    crowd: float  # how much faster it is when few of them do, as a power of their share
    reading: float  # over the bandwidth's own time
    from_l2: float
    storing: float


FIGURES = Figures(
    1.76e-6, 0.435e-6, 0.00461e-6, 0.347e-6, 2.74e-10,
    (0.303e-6, 0.589e-6, 0.612e-6, 0.546e-6, 0.316e-6, 0.694e-6, 0.724e-6, 1.25e-6, 0.913e-6, 0.763e-6,
      1.86e-6, 0.566e-6),
    1.07e-9,
    (0.314, 0.363, 0.291, 0.381, 0.339, 0.47, 0.488, 0.549, 0.547, 0.545, 0.679, 0.432),
    77.7e9, 0.395, 1.03, 0.606, 0.116,
)  # fmt: skip
# From these sides on other semirings are slower, by so much where a step is two slots (min_plus) and where it is more:
SLOWER_SIDE, SLOWER_PAIR, SLOWER_REST = 200, 1.7, 1.21  # as stacks of min_plus and max_min of 256 to 1000 took
SLOWER_WHOLE = 1.12  # where such a step is one instruction on whole numbers
# and their tiles' shares are these of plus_times': 35 stacks of five semirings, each in 6 ways, took so long.
OTHER_SHARES = (1.0, 1.0, 1.0, 1.0, 1.0, 1.12, 1.06, 0.98, 1.05, 1.1, 0.89, 1.0)
FEWEST = 0.15  # share of the units, below which nothing is faster any more


@dataclass(frozen=True)
class BufferedTile:
    """A block makes rows × cols of P, a thread tm × tn of them; `groups` of threads share a strip's `deep` of k."""

    rows: int
    cols: int
    tm: int
    tn: int
    groups: int
    deep: int
    resident: int  # blocks of a multiprocessor that registers are kept for

    @property
    def threads(self) -> int:
        return self.rows // self.tm * (self.cols // self.tn) * self.groups

    @property
    def shared_bytes(self) -> int:
        strips = 2 * self.deep * (self.rows + self.cols + 8)
        return SIZE * max(strips, self.groups * self.rows * self.cols)

    def words(self) -> str:
        return f"{self.rows}x{self.cols} g{self.groups}"


TILES = (  # of 19 that were timed these: without the others random stacks take 0.1 % longer in the mean
    BufferedTile(16, 32, 4, 4, 4, 32, 6),
    BufferedTile(16, 64, 4, 4, 2, 32, 6),
    BufferedTile(64, 16, 4, 4, 2, 32, 6),
    BufferedTile(32, 32, 4, 4, 2, 32, 6),
    BufferedTile(32, 32, 4, 4, 4, 32, 3),
    BufferedTile(64, 32, 8, 4, 2, 16, 5),
    BufferedTile(32, 64, 8, 4, 2, 16, 5),
    BufferedTile(128, 32, 8, 4, 1, 16, 4),
    BufferedTile(32, 128, 8, 4, 1, 16, 4),
    BufferedTile(64, 64, 8, 4, 1, 16, 4),
    BufferedTile(128, 64, 8, 8, 1, 16, 3),
    BufferedTile(16, 128, 4, 4, 1, 16, 6),
)


@dataclass(frozen=True)
class BufferedConfig:
    """A tile, and how many blocks of a cluster share all of k."""

    tile: BufferedTile
    cluster: int

    def words(self) -> str:
        return f"{self.tile.words()} c{self.cluster}"

    def spec(self) -> str:
        return self.words()


def _contiguous(p: Problem) -> bool:
    of_n = lines_of(p.layout_n, p.n, p.k, transposed=True)
    return of_n is not None and lines_of(p.layout_m, p.m, p.k) is not None


CONTIGUOUS = Condition(_contiguous, f"takes contiguous rows or columns, less than {FARTHEST:,} elements apart")


def lines_of(layout: Layout, lines: int, k: int, transposed: bool = False) -> tuple[bool, int] | None:
    """Whether elements side by side are neighbours along k, and how far apart lines, or k, are; None where no
    neighbours lie side by side."""
    of_line, of_k = (layout.col, layout.row) if transposed else (layout.row, layout.col)
    along, across = of_k == 1 or k == 1, of_line == 1 or lines == 1
    lead_along, lead_across = of_line if lines > 1 else 0, of_k if k > 1 else 0
    if along and not (across and abs(of_k) > abs(of_line)) and abs(lead_along) < FARTHEST:
        return True, lead_along
    return (False, lead_across) if across and abs(lead_across) < FARTHEST else None


def clusters_of(machine: Machine) -> tuple[int, ...]:
    return CLUSTERS if arch_number(machine.arch) >= 90 else (1,)


ROOMS = 10  # where they begin in a row


@lru_cache(maxsize=64)
def _table(algebra: Algebra, machine: Machine, slower: float) -> tuple[tuple[BufferedConfig, ...], Rows]:
    """Every way, with what its seconds are reckoned from: sides and depth of a strip; seconds until that is there where
    a block has a unit to itself; of each k on the cores of a unit that has many, and on its way into shared memory; of
    a block beside its strips, and of its stores; of a launch; blocks of a cluster."""
    rows, configs = list[tuple[float, ...]](), list[BufferedConfig]()
    for tile, strip, share, other in zip(TILES, FIGURES.strip, FIGURES.shares, OTHER_SHARES, strict=True):
        held = min(machine.resident_threads // tile.threads, tile.resident, UNIT_SHARED // (tile.shared_bytes + 1024))
        rate = rate_of(algebra, machine) / slower / machine.units * share * (other if slower > 1 else 1.0)
        cells = tile.rows * tile.cols
        for cluster in clusters_of(machine):
            meeting = FIGURES.meet + FIGURES.met * cluster if cluster > 1 else 0.0
            configs.append(BufferedConfig(tile, cluster))
            times = (
                strip + FIGURES.of_k * tile.deep,
                cells / rate,
                (tile.rows + tile.cols) * SIZE / FIGURES.unit,
                FIGURES.block,
                FIGURES.cell * cells,
                FIGURES.start + meeting,
            )
            room = rooms(machine.units, cluster, max(1, min(held, MOST)))
            rows.append((tile.rows, tile.cols, tile.deep, *times, cluster, *padded(room)))
    return tuple(configs), Rows(rows)


@Formula
def _seconds(row: Row, given: Row) -> float:
    """Strips one after the other, each as long as one block alone takes or all of a unit's together; or the bytes from
    memory, or those from the L2; and what a launch takes anyway. Two limits that are equally near hinder each other."""
    m, k, n, members, units = int(given[0]), int(given[1]), int(given[2]), int(given[3]), int(given[4])
    rows, cols, depth, cluster, end, stores = int(row[0]), int(row[1]), int(row[2]), int(row[9]), row[6], row[7]
    if cluster > 1 and k <= depth * cluster:
        return INFINITE
    tiles, piece = members * -(-m // rows) * -(-n // cols), -(-k // cluster)
    deep = min(piece, depth)
    crowd = min(1.0, max(FEWEST, tiles * cluster / units)) ** given[5]
    alone, busy = row[3] ** 4, deep**4 * (row[4] ** 4 + (row[5] * crowd) ** 4)
    held = int(row[ROOMS])
    full, rest = tiles // int(row[ROOMS + held]), tiles % int(row[ROOMS + held])
    strips, work = -(-piece // depth), 0.0
    if full:
        work = full * (strips * sqrt(sqrt(alone + busy * held**4)) + end + stores * held)
    if rest:
        last = busiest(rest, row, ROOMS)
        work += strips * sqrt(sqrt(alone + busy * last**4)) + end + stores * last
    read = given[7] * tiles * (rows + cols)
    return row[8] + sqrt(sqrt(work**4 + given[6] + read**4)) + given[8]


def _given(p: Problem, machine: Machine) -> Row:
    """What all rows share."""
    memory = FIGURES.reading * p.least_bytes / machine.bandwidth
    storing = FIGURES.storing * p.members * p.m * p.n * SIZE / machine.bandwidth
    from_l2 = FIGURES.from_l2 * p.k * SIZE / machine.bandwidth
    return p.m, p.k, p.n, p.members, machine.units, FIGURES.crowd, memory**4, from_l2, storing


def configs(problem: Problem, machine: Machine) -> list[BufferedConfig]:
    """Those whose blocks have more than a strip of k each."""
    every, _ = _table(problem.algebra, machine, _slower(problem))
    return [config for config in every if config.cluster == 1 or problem.k > config.tile.deep * config.cluster]


@lru_cache(maxsize=64)
def best_config(problem: Problem, machine: Machine) -> tuple[BufferedConfig, float]:
    """The way with the least expected seconds."""
    every, table = _table(problem.algebra, machine, _slower(problem))
    number, least = _seconds.least(table, _given(problem, machine), problem.largest)
    return every[number], least


def least_seconds(problem: Problem, machine: Machine) -> float:
    """A launch, and the longer of the steps at the best tile's rate and the bytes."""
    memory = problem.least_bytes / machine.bandwidth
    steps = problem.steps / (rate_of(problem.algebra, machine) * max(FIGURES.shares))
    return FIGURES.start + max(FIGURES.block + steps, FIGURES.reading * memory)


@lru_cache(maxsize=256)
def rate_of(algebra: Algebra, machine: Machine) -> float:
    """Steps a second of the whole card."""
    return machine.step_rate("float32") / max(1.0, step_slots(algebra, machine) / 2)


def _slower(p: Problem) -> float:
    """By how much steps of larger members take longer in other semirings than plus_times."""
    if is_plus_times(p.semiring) or min(p.m, p.k, p.n) < SLOWER_SIDE:
        return 1.0
    pair = SLOWER_PAIR if p.dtype.kind == "f" else SLOWER_WHOLE
    return pair if step_slots(p.algebra) <= 2 else SLOWER_REST


def tiles_of(problem: Problem, tile: BufferedTile) -> tuple[int, int]:
    return math.ceil(problem.m / tile.rows), math.ceil(problem.n / tile.cols)


def piece(problem: Problem, config: BufferedConfig) -> int:
    """How much of k one block of a cluster takes."""
    return math.ceil(problem.k / config.cluster)


def seconds(config: BufferedConfig, problem: Problem, machine: Machine) -> float:
    """What the model expects of one way."""
    every, table = _table(problem.algebra, machine, _slower(problem))
    return _seconds(table.rows[every.index(config)], _given(problem, machine))


def geometry(config: BufferedConfig) -> Geometry:
    tile = config.tile
    return Geometry((tile.threads, 1), tile.rows, tile.cols, tile.deep, tile.shared_bytes)
