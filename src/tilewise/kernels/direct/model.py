"""Small products by tiles that are read straight, as the planner sees them: which tile, how many blocks share a k."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tilewise.kernels.plain.ways import step_slots
from tilewise.machine import Machine, arch_number
from tilewise.plans import Geometry
from tilewise.problem import Problem

KERNEL = "direct"
IDEA = "a block reads whole strips of M and N straight into shared memory: small products, any layout, one launch"
LARGEST = 2**29  # steps of one member beyond which pipelines always win
SHARED_BYTES = 40 * 1024  # of a block, for its strips and then for its sums
BYTES_AT_ONCE = 144  # that a thread has on their way
GROUPS = (4, 2)  # of threads that share a strip's k
WIDEST = 8  # bytes of a partial sum: strips of wider ones do not fit
CLUSTERS = (1, 2, 4, 8)  # blocks that share the k of a tile
START_SECONDS = 2.3e-6  # of a launch, its first loads and its stores
STRIP_SECONDS = 0.55e-6  # of a strip where too few threads hide the way to memory
CLUSTER_SECONDS = 0.5e-6  # to meet, and to add up
RATE_SHARE = 0.45  # of the plain cores' rate
READING = 0.5  # share of the memory's bandwidth
BLOCKS_AT_ONCE = 6  # of a unit


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
    DirectTile(64, 64, 4, 4),
    DirectTile(8, 128, 2, 4),
    DirectTile(128, 8, 4, 2),
)


@dataclass(frozen=True)
class DirectWay:
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


def refusal(problem: Problem) -> str | None:
    p = problem
    if p.dtype_m != p.dtype or p.dtype_n != p.dtype:
        return f"kernel={KERNEL!r} multiplies operands of one dtype, not {p.dtype_m} by {p.dtype_n}"
    if p.algebra.partial.itemsize > WIDEST:
        return f"kernel={KERNEL!r} adds up in at most {WIDEST} bytes, and {p.algebra.partial} has more"
    if p.m * p.k * p.n > LARGEST:
        return f"kernel={KERNEL!r} is for small products, up to {LARGEST:,} steps, and this is {p.shape}"
    return None


@lru_cache(maxsize=64)
def every_way(partial_bytes: int, clusters: tuple[int, ...]) -> tuple[DirectWay, ...]:
    """All there are: one group for a short k, as many as fit for a longer one, by themselves and in clusters."""
    made = []
    for tile in TILES:
        made.append(DirectWay(tile, 1, 1))
        groups = next((g for g in GROUPS if DirectWay(tile, g, 1).fits(partial_bytes)), 1)
        made += [DirectWay(tile, groups, cluster) for cluster in clusters if groups * cluster > 1]
    return tuple(way for way in made if way.fits(partial_bytes))


def ways(problem: Problem, machine: Machine) -> Iterator[DirectWay]:
    """Those whose blocks have some of k each."""
    size = problem.algebra.partial.itemsize
    for way in every_way(size, CLUSTERS if arch_number(machine.arch) >= 90 else (1,)):
        if way.cluster == 1 or problem.k > way.depth(size) * way.cluster // 2:
            yield way


def tiles_of(problem: Problem, tile: DirectTile) -> tuple[int, int]:
    return math.ceil(problem.m / tile.rows), math.ceil(problem.n / tile.cols)


def piece(problem: Problem, way: DirectWay) -> int:
    """How much of k one block of a cluster takes."""
    return math.ceil(problem.k / way.cluster)


def seconds(way: DirectWay, problem: Problem, machine: Machine) -> float:
    """The longer of three: the way to memory and back for every strip, the steps, the bytes."""
    p, tile = problem, way.tile
    down, across = tiles_of(p, tile)
    blocks = p.members * down * across * way.cluster
    at_once = machine.units * BLOCKS_AT_ONCE * 128 / way.threads
    strips = math.ceil(piece(p, way) / way.depth(p.algebra.partial.itemsize))
    latency = STRIP_SECONDS * strips * math.ceil(blocks / at_once)
    wide = p.algebra.partial.name if p.algebra.partial.name == "float64" else "float32"
    spread = max(1.0, machine.units * 4 / max(1, blocks))  # fewer blocks than four a unit leave cores idle
    rate = machine.step_rate(wide) * RATE_SHARE / max(1.0, step_slots(p.algebra, machine) / 2)
    steps = blocks * tile.rows * tile.cols * piece(p, way) / rate * min(spread, 8.0)
    size = p.dtype.itemsize
    read = p.members * down * across * (tile.rows + tile.cols) * p.k * size / (2.5 * machine.bandwidth)  # from the L2
    reading = max(p.least_bytes / (READING * machine.bandwidth), read)
    return START_SECONDS + (CLUSTER_SECONDS if way.cluster > 1 else 0.0) + max(latency, steps, reading)


def geometry(problem: Problem, way: DirectWay) -> Geometry:
    tile, size = way.tile, problem.algebra.partial.itemsize
    return Geometry((way.threads, 1), tile.rows, tile.cols, way.depth(size), way.shared_bytes(size))
