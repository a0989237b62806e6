"""Small products on tensor cores as the planner sees them: which tile, and how many blocks of a cluster share a k."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from tilewise.algebra.builtin import is_plus_times
from tilewise.kernels.mma_sync.model import mma_rate
from tilewise.machine import Machine, arch_number
from tilewise.plans import Geometry
from tilewise.problem import Layout, Problem

MMA, FMA = "mma_small", "fma_small"
IDEAS = {
    MMA: "small products on tensor cores: elements copied one by one from any layout, k cut over a cluster's blocks",
    FMA: "small products of float32: elements copied one by one from any layout, k cut over a cluster's blocks",
}
LARGEST = 2**34  # steps of one member beyond which large tiles always win
CLUSTERS = (1, 2, 3, 4, 6, 8, 16)  # blocks that share the k of a tile; more than 8 must be allowed
ACROSS, ALONG, VECTORS = range(3)  # how an operand is copied, as mma_small.cu has it


class Figures(NamedTuple):
    """Seconds, but for shares: fitted to every way of 104 random products on an H200 (rms 15 % of those within three
    times the best)."""

    start: float  # of a launch
    block: float  # of a block beside its phases: its first loads, its stores
    cell: float  # of a cell of its tile
    meet: float  # of a cluster,
    met_cell: float  # for a cell of its tile,
    met_block: float  # and for a block of it
    phase: float  # beside its products: the barrier, fragments on their way
    share: float  # of the cores' rate, with as many blocks as fit
    copies: tuple[float, float, float]  # of 8 bytes, on a multiprocessor: across, along, by vectors
    reading: float  # over the bandwidth's own time
    from_l2: float


FIGURES = {
    "float64": Figures(
        1.2e-6, 1.9e-6, 2.5e-12, 0.07e-6, 5.1e-10, 0.23e-6, 0.4e-6, 0.47, (2.9e-10, 2.2e-10, 1.6e-10), 3.0, 0.1
    ),
    "tf32": Figures(
        1.2e-6, 1.8e-6, 2.4e-10, 0.03e-6, 4.5e-10, 0.09e-6, 0.06e-6, 0.22, (3.7e-10, 3.6e-10, 2.3e-10), 1.54, 0.1
    ),
    "float32": Figures(
        1.2e-6, 2.26e-6, 2.5e-10, 0.36e-6, 0.9e-10, 0.25e-6, 0.34e-6, 0.35, (4e-10, 5.5e-10, 3.1e-10), 1.43, 3.2
    ),
}


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
PLAIN_TILES = (
    SmallTile(16, 32, 1, 1, 8, 256, 4, 2),
    SmallTile(32, 32, 2, 1, 4, 256, 4, 2),
    SmallTile(32, 64, 2, 2, 2, 128, 4, 2),
    SmallTile(64, 32, 2, 1, 4, 128, 4, 2),
    SmallTile(64, 64, 2, 2, 2, 128, 4, 2),
    SmallTile(128, 64, 4, 2, 1, 128, 4, 2),
)


@dataclass(frozen=True)
class SmallWay:
    tile: SmallTile
    cluster: int

    def words(self) -> str:
        return f"{self.tile.rows}x{self.tile.cols} c{self.cluster}"


def kernel_for(problem: Problem) -> str:
    """Plain cores multiply what tensor cores would round."""
    return FMA if problem.dtype.name == "float32" and problem.precision != "tf32" else MMA


def refusal(problem: Problem, machine: Machine, kernel: str | None) -> str | None:
    p = problem
    name = kernel or kernel_for(p)
    if machine.kind != "cuda" or arch_number(machine.arch) < 80:
        return f"kernel={name!r} needs a card from Ampere on (sm_80), and this is {machine.arch or 'no card'}"
    if p.dtype_m != p.dtype or p.dtype_n != p.dtype or p.result != p.dtype:
        return f"kernel={name!r} multiplies operands of one dtype, not {p.dtype_m} by {p.dtype_n} to {p.result}"
    if p.dtype.name not in ("float64", "float32") or name != kernel_for(p):
        takes = {MMA: "float64, and float32 with precision='tf32'", FMA: "float32 with precision='high' or 'ieee'"}
        return f"kernel={name!r} multiplies {takes[name]}, not {p.dtype} with precision={p.precision!r}"
    if not is_plus_times(p.semiring):
        return f"kernel={name!r} knows plus_times alone, not {p.semiring}"
    if p.m * p.k * p.n > LARGEST:
        return f"kernel={name!r} is for small products, up to {LARGEST:,} steps, and this is {p.shape}"
    return None


def tiles_for(problem: Problem) -> tuple[SmallTile, ...]:
    return PLAIN_TILES if kernel_for(problem) == FMA else TILES


def step_rate(problem: Problem, machine: Machine) -> float:
    """Steps a second of the whole card."""
    return machine.step_rate("float32") if kernel_for(problem) == FMA else mma_rate(problem, machine)


def tiles_of(problem: Problem, tile: SmallTile) -> tuple[int, int]:
    return math.ceil(problem.m / tile.rows), math.ceil(problem.n / tile.cols)


def piece(problem: Problem, way: SmallWay) -> int:
    """How much of k one block of a cluster takes: whole phases."""
    deep = way.tile.depth(problem.dtype.itemsize)
    return max(1, math.ceil(math.ceil(problem.k / deep) / way.cluster)) * deep


def copied(layout: Layout, k_stride: int, line_stride: int, size: int) -> int:
    """How an operand is copied: 16 bytes at a time where k lies side by side and every line starts on 16 bytes."""
    if abs(k_stride) > abs(line_stride):
        return ACROSS
    strides = (line_stride, *layout.stack)
    aligned = k_stride == 1 and all(s * size % 16 == 0 for s in strides) and layout.alignment == 16
    return VECTORS if aligned else ALONG


def copies_of(problem: Problem) -> tuple[int, int]:
    m, n, size = problem.layout_m, problem.layout_n, problem.dtype.itemsize
    return copied(m, m.col, m.row, size), copied(n, n.row, n.col, size)


class Pace(NamedTuple):
    """A tile's own figures: what does not depend on the shape."""

    tile: SmallTile
    deep: int
    alone: float  # seconds of a phase of a block that has a multiprocessor to itself,
    busy: float  # and of one of many
    end: float  # of a block beside its phases,
    met: float  # and in a cluster
    resident: int  # blocks of a multiprocessor, by themselves
    clustered: int  # and in clusters


def figures_of(problem: Problem) -> Figures:
    return FIGURES["tf32" if problem.dtype.name == "float32" and problem.precision == "tf32" else problem.dtype.name]


@lru_cache(maxsize=256)
def paces(
    tiles: tuple[SmallTile, ...], size: int, rate: float, figures: Figures, how_m: int, how_n: int
) -> tuple[Pace, ...]:
    """`rate`: steps a second of a multiprocessor."""
    made = []
    for tile in tiles:
        deep, cells = tile.depth(size), tile.rows * tile.cols
        products = cells * deep / rate
        copies = (tile.rows * figures.copies[how_m] + tile.cols * figures.copies[how_n]) * deep * size / 8
        alone, busy = max(figures.phase + products, copies), max(products / figures.share, copies)
        end = figures.block + figures.cell * cells
        held = [min(tile.resident, UNIT_SHARED // (tile.shared_bytes(size, blocks) + 1024)) for blocks in (1, 2)]
        made.append(Pace(tile, deep, alone, busy, end, end + figures.meet + figures.met_cell * cells, *held))
    return tuple(made)


def timed(problem: Problem, machine: Machine) -> Iterator[tuple[float, SmallTile, int]]:
    """(seconds, tile, blocks of a cluster) of every way whose blocks all have some of k, with no more of them than a
    card holds at once. Seconds: phases one after the other by the busiest multiprocessor, whose blocks share its cores
    and its copies; or the bytes; and what a launch takes anyway."""
    p, size, units, rate = problem, problem.dtype.itemsize, machine.units, step_rate(problem, machine)
    figures = figures_of(p)
    memory = figures.reading * p.least_bytes / machine.bandwidth
    clusters = CLUSTERS if arch_number(machine.arch) >= 90 else (1,)
    pace = paces(tiles_for(p), size, rate / units, figures, *copies_of(p))
    for tile, deep, alone, busy, end, met, resident, clustered in pace:
        tiles, phases = -(-p.m // tile.rows) * -(-p.n // tile.cols) * p.members, -(-p.k // deep)
        reading = max(memory, figures.from_l2 * tiles * (tile.rows + tile.cols) * p.k * size / machine.bandwidth)
        for cluster in clusters:
            each, held = -(-phases // cluster), -(-tiles * cluster // units)  # phases; blocks of a multiprocessor
            if cluster == 1:
                work = max(-(-held // resident) * (each * alone + end), held * each * busy + end)
            elif each * (cluster - 1) < phases and held <= 4:
                last = met + figures.met_block * cluster
                work = max(-(-held // clustered) * (each * alone + last), held * each * busy + last)
            else:
                continue
            yield figures.start + max(work, reading), tile, cluster


def ways(problem: Problem, machine: Machine) -> Iterator[SmallWay]:
    return (SmallWay(tile, cluster) for _, tile, cluster in timed(problem, machine))


def seconds(way: SmallWay, problem: Problem, machine: Machine) -> float:
    """What is expected of one of them."""
    return next(s for s, *rest in timed(problem, machine) if rest == [way.tile, way.cluster])


@lru_cache(maxsize=64)
def best_way(problem: Problem, machine: Machine) -> tuple[float, SmallWay]:
    least, tile, cluster = min(timed(problem, machine), key=itemgetter(0))
    return least, SmallWay(tile, cluster)


def geometry(problem: Problem, way: SmallWay) -> Geometry:
    tile, size = way.tile, problem.dtype.itemsize
    return Geometry((tile.threads, 1), tile.rows, tile.cols, tile.depth(size), tile.shared_bytes(size, way.cluster))
