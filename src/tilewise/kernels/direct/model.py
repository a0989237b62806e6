"""Small products by tiles that are read straight, as the planner sees them: which tile, how many blocks share a k."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from tilewise.algebra.semiring import Algebra
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
# Fitted to 164 random products on an H200, every way of each (rms 25 %, the choice 8 % above the best in the mean).
START_SECONDS = 2.3e-6  # of a launch, its first loads and its stores
CLUSTER_SECONDS = 0.53e-6  # to meet; and a tenth of it for each block whose sums are added
STRIP_SECONDS = {1: 1.57e-6, 2: 3.77e-6, 4: 2.24e-6}  # of a full strip by groups: loads, barriers, steps one by one
SHORT_STRIP = 0.35  # share of that which no strip is too short for
BUSY_THREADS = 512  # of a unit, below which its cores wait
READING, L2_READING, STORING = 1.78, 1.97, 2.13  # over the bandwidth's own time
RESIDENT_REGISTERS = 65536 // 88  # threads that a unit's registers allow
UNIT_SHARED = 227 * 1024


@dataclass(frozen=True)
class DirectTile:
    """A block makes rows × cols of P; a thread tm × tn of them, at a share of the plain cores' rate."""

    rows: int
    cols: int
    tm: int
    tn: int
    share: float

    @property
    def group(self) -> int:
        """Threads that make the tile once."""
        return self.rows // self.tm * (self.cols // self.tn)


TILES = (
    DirectTile(16, 32, 2, 2, 0.82),
    DirectTile(32, 32, 2, 4, 0.57),
    DirectTile(64, 32, 4, 4, 0.75),
    DirectTile(64, 64, 4, 4, 0.66),
    DirectTile(8, 128, 2, 4, 0.43),
    DirectTile(128, 8, 4, 2, 0.74),
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


def clusters_of(machine: Machine) -> tuple[int, ...]:
    return CLUSTERS if arch_number(machine.arch) >= 90 else (1,)


@lru_cache(maxsize=64)
def every_way(partial_bytes: int, clusters: tuple[int, ...]) -> tuple[DirectWay, ...]:
    """All there are: one group for a short k, as many as fit for a longer one, by themselves and in clusters."""
    made = []
    for tile in TILES:
        made.append(DirectWay(tile, 1, 1))
        groups = next((g for g in GROUPS if DirectWay(tile, g, 1).fits(partial_bytes)), 1)
        made += [DirectWay(tile, groups, cluster) for cluster in clusters if groups * cluster > 1]
    return tuple(way for way in made if way.fits(partial_bytes))


class Cost(NamedTuple):
    """What a way's seconds are reckoned from, the same for every product of a dtype on a machine."""

    way: DirectWay
    shallow: int  # k up to which its blocks would have too little each
    rows: int
    cols: int
    depth: int
    at_once: int  # blocks that the card holds
    strip: float  # seconds of an empty one,
    strip_of_k: float  # and of each k in it
    busy: float  # share of a card's threads that one block is
    steps: float  # seconds of a cell's k on a card that is busy
    meeting: float


@lru_cache(maxsize=64)
def costs(algebra: Algebra, machine: Machine) -> dict[DirectWay, Cost]:
    size, made = algebra.partial.itemsize, {}
    for way in every_way(size, clusters_of(machine)):
        tile, deep, threads = way.tile, way.depth(size), way.threads
        registers, shared = RESIDENT_REGISTERS // threads, UNIT_SHARED // way.shared_bytes(size)
        at_once = machine.units * max(1, min(machine.resident_threads // threads, registers, shared))
        strip = STRIP_SECONDS[way.groups]
        made[way] = Cost(
            way,
            deep * way.cluster // 2 if way.cluster > 1 else -1,
            tile.rows,
            tile.cols,
            deep,
            at_once,
            strip * SHORT_STRIP,
            strip * (1 - SHORT_STRIP) / (128 if way.groups > 1 else 64),
            threads / (machine.units * BUSY_THREADS),
            tile.rows * tile.cols / (_rate(algebra, machine) * tile.share),
            START_SECONDS + (CLUSTER_SECONDS * (1 + way.cluster / 10) if way.cluster > 1 else 0.0),
        )
    return made


def ways(problem: Problem, machine: Machine) -> list[DirectWay]:
    """Those whose blocks have some of k each."""
    return [cost.way for cost in costs(problem.algebra, machine).values() if problem.k > cost.shallow]


@lru_cache(maxsize=64)
def best_way(problem: Problem, machine: Machine) -> tuple[DirectWay, float]:
    """The way with the least expected seconds."""
    k = problem.k
    fitting = [cost for cost in costs(problem.algebra, machine).values() if k > cost.shallow]
    times = _seconds(fitting, problem, machine)
    least = min(times)
    return fitting[times.index(least)].way, least


def least_seconds(problem: Problem, machine: Machine) -> float:
    """A launch, and the longer of the steps at the best tile's rate and the bytes."""
    memory = problem.least_bytes / machine.bandwidth
    steps = problem.steps / (_rate(problem.algebra, machine) * max(tile.share for tile in TILES))
    return START_SECONDS + max(steps, READING * memory) + STORING * memory


@lru_cache(maxsize=256)
def _rate(algebra: Algebra, machine: Machine) -> float:
    """Steps a second of the whole card."""
    wide = "float64" if algebra.partial.name == "float64" else "float32"
    return machine.step_rate(wide) / max(1.0, step_slots(algebra, machine) / 2)


def tiles_of(problem: Problem, tile: DirectTile) -> tuple[int, int]:
    return math.ceil(problem.m / tile.rows), math.ceil(problem.n / tile.cols)


def piece(problem: Problem, way: DirectWay) -> int:
    """How much of k one block of a cluster takes."""
    return math.ceil(problem.k / way.cluster)


def seconds(way: DirectWay, problem: Problem, machine: Machine) -> float:
    """What the model expects of one way."""
    return _seconds([costs(problem.algebra, machine)[way]], problem, machine)[0]


def _seconds(several: list[Cost], problem: Problem, machine: Machine) -> list[float]:
    """The longest of four: strips one after the other, the steps, the bytes from memory, those from the L2; and what a
    launch takes anyway."""
    m, k, n, members = problem.m, problem.k, problem.n, problem.members
    memory = problem.least_bytes / machine.bandwidth
    reading, storing = READING * memory, STORING * memory
    from_l2 = L2_READING * k * problem.dtype.itemsize / machine.bandwidth
    made = []
    for way, _, rows, cols, depth, at_once, strip, strip_of_k, busy, steps, meeting in several:
        tiles = members * -(-m // rows) * -(-n // cols)
        blocks = max(1, tiles * way.cluster)
        piece = -(-k // way.cluster)
        strips = -(-blocks // at_once) * -(-piece // depth) * (strip + strip_of_k * (k if k < depth else depth))
        work = max(
            strips,
            tiles * k * steps / min(1.0, blocks * busy),
            reading,
            from_l2 * tiles * (rows + cols),
        )
        made.append(meeting + work + storing)
    return made


def geometry(problem: Problem, way: DirectWay) -> Geometry:
    tile, size = way.tile, problem.algebra.partial.itemsize
    return Geometry((way.threads, 1), tile.rows, tile.cols, way.depth(size), way.shared_bytes(size))
