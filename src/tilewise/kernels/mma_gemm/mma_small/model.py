"""Small products on tensor cores as the planner sees them: which tile, and how many blocks of a cluster share a k."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from operator import itemgetter

from tilewise.core.machine import Machine, arch_number
from tilewise.core.plan import Geometry
from tilewise.core.problem import Layout, Problem
from tilewise.kernels.bounds import Bound, by_parts
from tilewise.kernels.by_configs import Table
from tilewise.kernels.coefficients import coefficients
from tilewise.kernels.mma_gemm.mma_sync.model import mma_rate
from tilewise.kernels.shared.residency import crowded, in_waves, padded, rooms
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

KERNEL = "mma_small"
IDEA = "small products on tensor cores: elements copied one by one from any layout, k cut over a cluster's blocks"
LARGEST = 2**34  # steps of one member beyond which large tiles always win
CLUSTERS = (1, 2, 3, 4, 6, 8, 16)  # blocks that share the k of a tile; more than 8 must be allowed
ACROSS, ALONG, VECTORS = range(3)  # how an operand is copied, as mma_small.cu has it


SHORTEST = 0.25  # share of a phase that no k is too short for


@dataclass(frozen=True)
class SmallTile:
    """A tile of P made by warps_m × warps_n warps, and groups of them that share a phase's k of `deep` bytes."""

    rows: int
    cols: int
    warps_m: int
    warps_n: int
    warps_k: int
    deep: int
    stages: int
    resident: int

    @property
    def threads(self) -> int:
        return 32 * self.warps_m * self.warps_n * self.warps_k

    def depth(self, size: int) -> int:
        """Of k, a phase."""
        return self.deep // size

    def shared_bytes(self, size: int, cluster: int = 1) -> int:
        """Of the stages, and of the parts that groups and blocks send."""
        stages = self.stages * (self.rows + self.cols) * (self.depth(size) + 4)
        groups = self.warps_k * cluster
        parts = groups * (self.rows * self.cols // cluster + 1) if groups > 1 else 0
        return (stages + parts) * size


UNIT_SHARED = 228 * 1024  # of a multiprocessor; a block takes 1 KB beside its own

TILES = (
    SmallTile(16, 32, 1, 2, 4, 256, 4, 3),
    SmallTile(32, 32, 2, 2, 2, 256, 4, 2),
    SmallTile(16, 64, 1, 4, 2, 256, 4, 2),
    SmallTile(64, 16, 4, 1, 2, 256, 4, 2),
    SmallTile(32, 64, 2, 4, 1, 256, 4, 2),
    SmallTile(64, 32, 4, 2, 1, 256, 4, 2),
    SmallTile(64, 64, 2, 4, 1, 128, 5, 2),
)


@dataclass(frozen=True)
class SmallConfig:
    tile: SmallTile
    cluster: int

    def words(self) -> str:
        return f"{self.tile.rows}x{self.tile.cols} c{self.cluster}"


def tiles_of(problem: Problem, tile: SmallTile) -> tuple[int, int]:
    return math.ceil(problem.m / tile.rows), math.ceil(problem.n / tile.cols)


def piece(problem: Problem, config: SmallConfig) -> int:
    """How much of k one block of a cluster takes: whole phases."""
    deep = config.tile.depth(problem.dtype.itemsize)
    return max(1, math.ceil(math.ceil(problem.k / deep) / config.cluster)) * deep


def copied(layout: Layout, k_stride: int, line_stride: int, size: int) -> int:
    """How an operand is copied: 16 bytes at a time where k lies side by side and every line starts on 16 bytes."""
    if abs(k_stride) > abs(line_stride):
        return ACROSS
    step = math.gcd(line_stride, *layout.stack)
    aligned = k_stride == 1 and step * size % 16 == 0 and layout.alignment == 16
    return VECTORS if aligned else ALONG


def copies_of(problem: Problem) -> tuple[int, int]:
    m, n, size = problem.layout_m, problem.layout_n, problem.dtype.itemsize
    return copied(m, m.col, m.row, size), copied(n, n.row, n.col, size)


def kind_of(problem: Problem) -> str:
    """What the figures of its products are kept under."""
    return "tf32" if problem.dtype.name == "float32" else problem.dtype.name


ROOMS = 9  # where they begin in a row


@lru_cache(maxsize=256)
def paces(kind: str, how: tuple[int, int], rate: float, machine: Machine) -> tuple[tuple[SmallConfig, ...], Rows]:
    """Every way, with what its seconds are reckoned from. `rate`: steps a second of the whole card."""
    configs, rows, figures, units = (
        list[SmallConfig](),
        list[tuple[float, ...]](),
        coefficients(f"mma_small {kind}"),
        machine.units,
    )
    clusters, size = CLUSTERS if arch_number(machine.arch) >= 90 else (1,), 8 if kind == "float64" else 4
    rate /= units
    for tile, share in zip(TILES, figures.shares, strict=True):
        deep, cells = tile.depth(size), tile.rows * tile.cols
        products = cells * deep / rate / share
        of_m, of_n = (
            lines * figures.copies[by] * deep * size / 8 for lines, by in zip((tile.rows, tile.cols), how, strict=True)
        )
        alone, cores = (figures.phase + products * figures.alone) ** 4, (products / figures.share) ** 4
        met = figures.meet + figures.met_cell * cells
        for blocks in clusters:
            held = min(tile.resident, UNIT_SHARED // (tile.shared_bytes(size, min(blocks, 2)) + 1024))
            after = figures.block if blocks == 1 else figures.block + met + figures.met * blocks
            times = alone, cores, of_m + of_n, after, figures.cell * cells
            configs.append(SmallConfig(tile, blocks))
            rows.append((tile.rows, tile.cols, deep, *times, blocks, *padded(rooms(units, blocks, max(1, held)))))
    return tuple(configs), Rows(rows)


@Formula
def expected(row: Row, given: Row) -> float:
    """Seconds: phases one after the other by the busiest multiprocessor, each as long as a block alone takes or all of
    them together; or the bytes; and what a launch takes anyway. Limits that are equally near hinder each other. Not
    where some block has none of k, or a card does not hold all."""
    m, k, n, members, units = int(given[0]), int(given[1]), int(given[2]), int(given[3]), int(given[4])
    rows, cols, deep, cluster = int(row[0]), int(row[1]), int(row[2]), int(row[8])
    tiles, phases = -(-m // rows) * -(-n // cols) * members, -(-k // deep)
    each, blocks = -(-phases // cluster), tiles * cluster
    if cluster > 1 and (each * (cluster - 1) >= phases or blocks > 4 * units):
        return INFINITE
    used = (min(m, rows) + min(n, cols)) / (rows + cols)
    copies = row[5] * (1 - given[8] * (1 - used))
    reading = given[6] + (given[7] * tiles * (rows + cols)) ** 4
    short = max(SHORTEST, k / deep) if k < deep else 1.0
    crowd = crowded(blocks, units, given[9])
    busy = row[4] + (copies * crowd) ** 4
    work = in_waves(tiles, row, ROOMS, each * short, row[3], busy, row[6], row[7])
    return given[5] + sqrt(sqrt(work**4 + reading))


def tables(problem: Problem, machine: Machine) -> list[Table]:
    p, kind = problem, kind_of(problem)
    figures = coefficients(f"mma_small {kind}")
    configs, rows = paces(kind, copies_of(p), mma_rate(p, machine), machine)
    memory = (figures.reading * p.least_bytes / machine.bandwidth) ** 4
    from_l2 = figures.from_l2 * p.k * p.dtype.itemsize / machine.bandwidth
    given = (
        p.m, p.k, p.n, p.members, machine.units, figures.start, memory, from_l2, figures.empty, figures.crowd,
    )  # fmt: skip
    return [Table(expected, rows, given, configs.__getitem__)]


def bounds(some: Problem, machine: Machine) -> tuple[Bound, ...]:
    """Every step at the best tile's rate, one block's share of k, the bytes."""
    kind, rate = kind_of(some), mma_rate(some, machine)
    f = coefficients(f"mma_small {kind}")
    step, byte = 1 / (rate * f.share * max(f.shares)), f.reading / machine.bandwidth
    rows = paces(kind, (VECTORS, VECTORS), rate, machine)[1].rows
    lines = by_parts(rows, itemgetter(8), lambda r: sqrt(sqrt(r[3])) / r[2], lambda r: r[6] + r[7])
    return (Bound(f.start, step=step, block=f.block, byte=byte, lines=lines),)


def geometry(problem: Problem, config: SmallConfig) -> Geometry:
    tile, size = config.tile, problem.dtype.itemsize
    return Geometry((tile.threads, 1), tile.rows, tile.cols, tile.depth(size), tile.shared_bytes(size, config.cluster))
