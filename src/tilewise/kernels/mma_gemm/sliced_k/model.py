"""Cost model of `sliced_k`: a warp's tile, and the warps and blocks that split its k."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import gcd, sqrt
from typing import NamedTuple

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry
from tilewise.core.problem import Layout, Problem
from tilewise.kernels.capabilities import Condition
from tilewise.kernels.coefficients import coefficients
from tilewise.kernels.family import Searched, numbered
from tilewise.kernels.mma_gemm.mma_sync.model import mma_rate
from tilewise.kernels.shared.residency import clusters_of, rooms
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

KERNEL = "sliced_k"
IDEA = "a warp computes a tile over a slice of k by itself; split-K over warps and a cluster's blocks: any layout"
LARGEST = 2**34  # steps of one member beyond which large tiles always win
STEP = 8  # of k, that a warp takes at a time
GRAIN = {8: 8, 4: 16}  # columns of a tile come in multiples of this, by bytes of an element
MOST_WARPS = 8
MOST_STRIDE = 2**31  # bytes
TEAMS = ((4, 1), (4, 2), (4, 4), (8, 1), (8, 2), (8, 4), (8, 8))  # warps of a block, and how many of them share a tile


@dataclass(frozen=True)
class SlicedTile:
    """A warp's tile, with `stages` of k in shared memory; `resident` blocks of MOST_WARPS a multiprocessor."""

    rows: int
    cols: int
    stages: int
    resident: int
    warps: int  # that a unit's registers hold
    held: bool = False  # float32: lines come through registers

    def warp_bytes(self, size: int) -> int:
        """Of shared memory: its stages, and then its sums."""
        sums = self.rows * (self.cols + 16 // size) * size
        return max(sums, self.stages * STEP * (self.rows + self.cols + 8) * size)


TILES = {
    8: (
        SlicedTile(32, 32, 0, 1, 12),
        SlicedTile(64, 16, 0, 1, 12),
        SlicedTile(64, 32, 0, 1, 8),
    ),
    4: (
        SlicedTile(64, 48, 4, 1, 8),
        SlicedTile(64, 16, 2, 2, 16, True),
        SlicedTile(32, 32, 2, 2, 16, True),
    ),
}


@dataclass(frozen=True)
class SlicedConfig:
    """`slices` of a block's `warps` share a tile, and `cluster` blocks; `transposed`: its rows are P's columns."""

    tile: SlicedTile
    warps: int
    slices: int
    cluster: int
    transposed: bool

    def spec(self) -> str:
        sides = f"{self.tile.cols}x{self.tile.rows}" if self.transposed else f"{self.tile.rows}x{self.tile.cols}"
        return f"{sides}{'r' * self.tile.held} w{self.warps} s{self.slices} c{self.cluster}"


def is_near(p: Problem) -> bool:
    of_m, of_n = max(abs(p.layout_m.row), abs(p.layout_m.col)), max(abs(p.layout_n.row), abs(p.layout_n.col))
    return max(of_m, of_n) * p.dtype.itemsize < MOST_STRIDE


NEAR = Condition(is_near, f"takes rows and columns less than {MOST_STRIDE:,} bytes apart")


def tiles_of(problem: Problem, config: SlicedConfig) -> tuple[int, int]:
    """Tiles down and across, in the tile's orientation."""
    sides = (problem.n, problem.m) if config.transposed else (problem.m, problem.n)
    return math.ceil(sides[0] / config.tile.rows), math.ceil(sides[1] / config.tile.cols)


def teams_across(problem: Problem, config: SlicedConfig) -> int:
    """Tiles of a block side by side: a square of tiles where P is wide enough, which shares the most loads."""
    _, across = tiles_of(problem, config)
    return min(_widest(config.warps // config.slices), 1 << (across - 1).bit_length())


def groups_of(problem: Problem, config: SlicedConfig) -> tuple[int, int]:
    """Blocks down and across, without the cluster's others."""
    (down, across), wide = tiles_of(problem, config), teams_across(problem, config)
    return math.ceil(down / (config.warps // config.slices // wide)), math.ceil(across / wide)


def blocks_of(problem: Problem, config: SlicedConfig) -> int:
    """Of one member, without the cluster's others."""
    down, across = groups_of(problem, config)
    return down * across


def piece(problem: Problem, config: SlicedConfig) -> int:
    """How much of k one warp takes: whole steps."""
    return max(1, math.ceil(math.ceil(problem.k / STEP) / (config.slices * config.cluster))) * STEP


def along(of_line: int, of_k: int) -> bool:
    """Whether neighbours lie along k, by an operand's strides."""
    return abs(of_k) < abs(of_line) or of_k == 1


def even(layout: Layout, of_line: int, of_k: int, size: int) -> bool:
    """Whether lines are contiguous and start on 16 bytes."""
    side, lead = of_k if along(of_line, of_k) else of_line, of_line if along(of_line, of_k) else of_k
    return side == 1 and layout.alignment == 16 and gcd(lead, layout.step) * size % 16 == 0


def by_pairs(p: Problem) -> bool:
    """Whether float64 is read by pairs of k: one operand's lines lie along k, and those that do are even."""
    of_m, of_n = along(p.layout_m.row, p.layout_m.col), along(p.layout_n.col, p.layout_n.row)
    odd_m = of_m and not even(p.layout_m, p.layout_m.row, p.layout_m.col, 8)
    odd_n = of_n and not even(p.layout_n, p.layout_n.col, p.layout_n.row, 8)
    return (of_m or of_n) and not odd_m and not odd_n


def how_of(lies: bool, is_even: bool, pairs: bool, size: int) -> int:
    """How an operand is read, as the kernel's texts have it: of float64 by pairs of k (1), and those at once (2) where
    lines lie along k and start on 16 bytes; of float32 along k (1) or across it, and on 16 bytes (2)."""
    if size == 4:
        return (1 if lies else 0) + (2 if is_even else 0)
    return (1 if pairs else 0) + (2 if pairs and lies else 0)


def read(p: Problem) -> tuple[tuple[int, bool], ...]:
    """How M and N are read, and whether neighbours lie along k."""
    m, n, size, pairs = p.layout_m, p.layout_n, p.dtype.itemsize, by_pairs(p)
    sides = (m, m.row, m.col), (n, n.col, n.row)
    lies = [along(line, k) for _, line, k in sides]
    return tuple((how_of(x, even(*side, size), pairs, size), x) for x, side in zip(lies, sides, strict=True))


@lru_cache(maxsize=64)
def _table(size: int, rate: float, clusters: tuple[int, ...], units: int) -> tuple[tuple[SlicedConfig, ...], Rows]:
    """Every config with the inputs of its cost: its sides, transposed or not; warps, slices, blocks of a cluster;
    tiles of a block, and how many of them lie across at most; blocks that a unit holds, and clusters with one block of
    each; of the cores for eight of k of a column; of a block's end, and of that for each block of a unit. `rate`: steps
    a second of a unit."""
    figures, made, rows = coefficients(f"sliced_k {size}"), list[SlicedConfig](), list[tuple[float, ...]]()
    for (tile, share), (warps, slices), cluster in product(
        zip(TILES[size], figures.shares, strict=True), TEAMS, clusters
    ):
        if cluster > 1 and slices < warps:
            continue
        teams, sums = warps // slices, tile.rows * tile.cols * size
        end = figures.slices * (slices > 1) + (figures.meet + figures.met_byte * sums * cluster) * (cluster > 1)
        each = figures.part * sums * warps * (slices > 1) + figures.store * sums * teams
        held = rooms(units, cluster, 1)[0]
        cores = tile.rows * STEP / rate / share
        for transposed in (False, True)[: 1 + (tile.rows != tile.cols)]:
            made.append(SlicedConfig(tile, warps, slices, cluster, transposed))
            sides = tile.rows, tile.cols, transposed
            rows.append(
                (*sides, warps, slices, cluster, teams, _widest(teams), tile.warps // warps, held, cores, end, each)
            )
    return tuple(made), Rows(rows)


def expected(row: Row, given: Row) -> float:
    """A warp's steps one after the other, by the busiest unit, each as long as a warp alone takes or all of them on its
    cores or on its way to memory; and its end. Or the bytes from memory, or from the L2. Not where a warp has no k."""
    m, k, n, members = int(given[0]), int(given[1]), int(given[2]), int(given[3])
    rows, cols, parts = int(row[0]), int(row[1]), int(row[4]) * int(row[5])
    tall, wide, of_rows, of_cols = m, n, given[8], given[9]
    if row[2]:
        tall, wide, of_rows, of_cols = n, m, given[9], given[8]
    steps = max(1, -(-k // 8))
    if parts > steps:
        return INFINITE
    down, across = -(-tall // rows), -(-wide // cols)
    beside = min(int(row[7]), 1 if across == 1 else 2 if across == 2 else 4)
    above = int(row[6]) // beside
    groups = -(-down // above) * -(-across // beside) * members
    each, grain = -(-steps // parts), int(given[11])
    used = min(cols, -(-wide // grain) * grain)
    cores, copies = row[10] * used, rows * of_rows + used * of_cols
    alone, busy = (given[6] + given[7] * 4 * cores) ** 2, (row[3] * cores) ** 2 + (row[3] * copies) ** 2
    room, held = int(row[8]), int(row[9])
    full, rest, work = groups // (held * room), groups % (held * room), 0.0
    if full:
        work = full * (each * sqrt(alone + busy * room**2) + row[11] + row[12] * room)
    if rest:
        last = min(room, -(-rest // held))
        work += each * sqrt(alone + busy * last**2) + row[11] + row[12] * last
    lines = groups * (rows * above + cols * beside)
    return given[10] + sqrt(sqrt(work**4 + given[4] + (given[5] * lines * each * 8 * parts) ** 4))


def _widest(teams: int) -> int:
    return 1 << teams.bit_length() // 2


class Figures(NamedTuple):
    """What times depend on besides sizes: a kind of elements on a card."""

    bandwidth: float  # bytes a second
    size: int  # bytes of an element
    grain: int  # columns of a tile come in multiples of this
    reading: float  # factor of the time that the bandwidth makes
    l2_byte: float  # seconds: of a byte from L2,
    step: float  # of a step of a warp alone,
    start: float  # of a launch
    alone: float  # factor of the cores' time of a warp alone
    copies_0: float  # seconds of a byte on its way, by how an operand is read
    copies_1: float
    copies_2: float
    copies_3: float


def takes(p: Problem, f: Figures) -> bool:
    return is_near(p)


def given_of(p: Problem, f: Figures) -> Row:
    pairs, of_m, of_n = by_pairs(p), along(p.layout_m.row, p.layout_m.col), along(p.layout_n.col, p.layout_n.row)
    how_m = how_of(of_m, even(p.layout_m, p.layout_m.row, p.layout_m.col, f.size), pairs, f.size)
    how_n = how_of(of_n, even(p.layout_n, p.layout_n.col, p.layout_n.row, f.size), pairs, f.size)
    memory = (f.reading * p.least_bytes / f.bandwidth) ** 4
    return (
        p.m, p.k, p.n, p.members, memory, f.l2_byte * f.size, f.step, f.alone, copying(f, how_m, of_m),
        copying(f, how_n, of_n), f.start, f.grain,
    )  # fmt: skip


def copying(f: Figures, how: int, lies: bool) -> float:
    """Seconds of eight k of a line."""
    number = how if f.size == 4 else 2 if how >= 2 else 1 if lies else 0
    copies = f.copies_0 if number == 0 else f.copies_1 if number == 1 else f.copies_2 if number == 2 else f.copies_3
    return copies * STEP * f.size


EXPECTED = Formula(expected, given_of, takes)


def searched(p: Problem, machine: Machine) -> list[Searched]:
    size, f = p.dtype.itemsize, coefficients(f"sliced_k {p.dtype.itemsize}")
    made, rows = _table(size, step_rate(p, machine) / machine.units, clusters_of(machine), machine.units)
    numbers = machine.bandwidth, size, GRAIN[size], f.reading, f.l2_byte, f.step, f.start, f.alone
    figures = Figures(*numbers, *f.copies, *[0.0] * (4 - len(f.copies)))
    return [Searched(EXPECTED, rows, figures, numbered(made))]


def step_rate(problem: Problem, machine: Machine) -> float:
    return mma_rate(problem, machine) if problem.dtype.itemsize == 8 else machine.step_rate("float32")


def shared_bytes(problem: Problem, config: SlicedConfig) -> int:
    return config.warps * config.tile.warp_bytes(problem.dtype.itemsize)


def geometry(problem: Problem, config: SlicedConfig) -> Geometry:
    tile = config.tile
    rows, cols = (tile.cols, tile.rows) if config.transposed else (tile.rows, tile.cols)
    return Geometry((32 * config.warps, 1), rows, cols, STEP, shared_bytes(problem, config))
