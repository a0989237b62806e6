"""Tiles of a warp as the planner sees them: which tile, and how many warps and blocks share its k."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter

from tilewise.algebra.builtin import is_plus_times
from tilewise.kernels.mma_sync.model import mma_rate
from tilewise.machine import Machine, arch_number
from tilewise.plans import Geometry
from tilewise.problem import Problem

KERNEL = "sliced_k"
IDEA = "a warp makes a tile over a slice of k by itself; warps and a cluster's blocks share a tile's k: any layout"
LARGEST = 2**34  # steps of one member beyond which large tiles always win
STEP = 8  # of k, that a warp takes at a time
MOST_WARPS = 8
MOST_STRIDE = 2**31  # bytes from line to line
TEAMS = ((4, 1), (4, 2), (4, 4), (8, 1), (8, 2), (8, 4), (8, 8))  # warps of a block, and how many of them share a tile
CLUSTERS = (1, 2, 4, 8)


@dataclass(frozen=True)
class SlicedTile:
    """What a warp makes. `stages` of its lines are in shared memory; `resident` blocks of MOST_WARPS share a unit."""

    rows: int
    cols: int
    stages: int
    resident: int
    warps: int  # that a unit's registers hold
    rolling: bool = False  # rows of M are read over those that have been multiplied

    def warp_bytes(self, size: int) -> int:
        """Of shared memory: its stages, and then its sums."""
        sums = self.rows * (self.cols + 16 // size) * size
        return max(sums, self.stages * STEP * (self.rows + self.cols + 8) * size)


TILES = {
    8: (
        SlicedTile(32, 32, 0, 1, 8),
        SlicedTile(32, 32, 0, 1, 12, True),
        SlicedTile(64, 16, 0, 1, 12, True),
        SlicedTile(64, 32, 0, 1, 8, True),
    ),
    4: (
        SlicedTile(64, 32, 4, 2, 16),
        SlicedTile(64, 48, 4, 1, 8),
        SlicedTile(64, 16, 4, 2, 16),
        SlicedTile(32, 32, 4, 2, 16),
        SlicedTile(64, 64, 3, 1, 8),
    ),
}


@dataclass(frozen=True)
class SlicedWay:
    """`slices` of a block's `warps` share a tile, and `cluster` blocks; `turned`: P's columns are the tile's rows."""

    tile: SlicedTile
    warps: int
    slices: int
    cluster: int
    turned: bool

    def words(self) -> str:
        sides = f"{self.tile.cols}x{self.tile.rows}" if self.turned else f"{self.tile.rows}x{self.tile.cols}"
        return f"{sides}{'r' * self.tile.rolling} w{self.warps} s{self.slices} c{self.cluster}"


def refusal(problem: Problem, machine: Machine) -> str | None:
    p = problem
    if machine.kind != "cuda" or arch_number(machine.arch) < 80:
        return f"kernel={KERNEL!r} needs a card from Ampere on (sm_80), and this is {machine.arch or 'no card'}"
    if p.dtype_m != p.dtype or p.dtype_n != p.dtype or p.result != p.dtype:
        return f"kernel={KERNEL!r} multiplies operands of one dtype, not {p.dtype_m} by {p.dtype_n} to {p.result}"
    if p.dtype.name not in ("float64", "float32") or (p.dtype.name == "float32" and p.precision == "tf32"):
        return f"kernel={KERNEL!r} multiplies float64 and float32, not {p.dtype} with precision={p.precision!r}"
    if not is_plus_times(p.semiring):
        return f"kernel={KERNEL!r} knows plus_times alone, not {p.semiring}"
    if any(abs(s) * p.dtype.itemsize >= MOST_STRIDE for x in (p.layout_m, p.layout_n) for s in (x.row, x.col)):
        return f"kernel={KERNEL!r} takes lines less than {MOST_STRIDE:,} bytes apart"
    if p.m * p.k * p.n > LARGEST:
        return f"kernel={KERNEL!r} is for small products, up to {LARGEST:,} steps, and this is {p.shape}"
    return None


def tiles_of(problem: Problem, way: SlicedWay) -> tuple[int, int]:
    """Down and across the tile's own way."""
    sides = (problem.n, problem.m) if way.turned else (problem.m, problem.n)
    return math.ceil(sides[0] / way.tile.rows), math.ceil(sides[1] / way.tile.cols)


def teams_across(problem: Problem, way: SlicedWay) -> int:
    """Tiles of a block that lie across: a square of them where P is wide enough, so that they share most lines."""
    teams, (_, across) = way.warps // way.slices, tiles_of(problem, way)
    return 1 << min(teams.bit_length() // 2, (across - 1).bit_length())


def groups_of(problem: Problem, way: SlicedWay) -> tuple[int, int]:
    """Blocks down and across, without the cluster's others."""
    (down, across), wide = tiles_of(problem, way), teams_across(problem, way)
    return math.ceil(down / (way.warps // way.slices // wide)), math.ceil(across / wide)


def blocks_of(problem: Problem, way: SlicedWay) -> int:
    """Of one member, without the cluster's others."""
    down, across = groups_of(problem, way)
    return down * across


def piece(problem: Problem, way: SlicedWay) -> int:
    """How much of k one warp takes: whole steps."""
    return max(1, math.ceil(math.ceil(problem.k / STEP) / (way.slices * way.cluster))) * STEP


def hows(problem: Problem) -> tuple[int, int]:
    """How M and N are read, as the kernel's texts have it: of float64 by pairs of k (1), those at once (2) where lines
    lie along k and start on 16 bytes; of float32 along k (1), or across it 16 bytes at a time (2)."""
    size, sides = problem.dtype.itemsize, []
    for x, line, k in (
        (problem.layout_m, problem.layout_m.row, problem.layout_m.col),
        (problem.layout_n, problem.layout_n.col, problem.layout_n.row),
    ):
        along = abs(k) < abs(line) or k == 1
        side, lead = (k, line) if along else (line, k)
        even = side == 1 and x.alignment == 16 and all(s * size % 16 == 0 for s in (lead, *x.stack))
        sides.append((along, even))
    if size == 4:
        return tuple(1 if along else 2 * even for along, even in sides)  # type: ignore[return-value]
    pairs = all(even for along, even in sides if along) and any(along for along, _ in sides)
    return tuple(int(pairs) + 2 * (pairs and along) for along, _ in sides)  # type: ignore[return-value]


def ways(problem: Problem, machine: Machine) -> Iterator[SlicedWay]:
    clusters = CLUSTERS if arch_number(machine.arch) >= 90 else (1,)
    steps = max(1, math.ceil(problem.k / STEP))
    for tile in TILES[problem.dtype.itemsize]:
        for turned in (False, True) if tile.rows != tile.cols else (False,):
            for warps, slices in TEAMS:
                for cluster in clusters:
                    if (cluster > 1 and slices < warps) or slices * cluster > steps:
                        continue
                    yield SlicedWay(tile, warps, slices, cluster, turned)


def step_rate(problem: Problem, machine: Machine) -> float:
    return mma_rate(problem, machine) if problem.dtype.itemsize == 8 else machine.step_rate("float32")


def seconds(way: SlicedWay, problem: Problem, machine: Machine) -> float:
    """Slices one after the other by the busiest multiprocessor; or the bytes; and what a launch takes anyway."""
    p, tile = problem, way.tile
    blocks = blocks_of(p, way) * way.cluster * max(1, p.members)
    rate = step_rate(p, machine) / machine.units * 0.6
    room = tile.warps // way.warps
    busy = min(room, math.ceil(blocks / machine.units)) * way.warps
    work = math.ceil(blocks / (machine.units * room)) * max(4, busy) * tile.rows * tile.cols * piece(p, way) / rate
    memory = 1.3 * p.least_bytes / machine.bandwidth
    end = 0.3e-6 * (way.slices > 1) + 0.7e-6 * (way.cluster > 1)
    return 2.6e-6 + end + math.sqrt(math.hypot(work**2, memory**2))


@lru_cache(maxsize=64)
def best_way(problem: Problem, machine: Machine) -> tuple[float, SlicedWay]:
    timed = ((seconds(way, problem, machine), way) for way in ways(problem, machine))
    return min(timed, key=itemgetter(0))


def shared_bytes(problem: Problem, way: SlicedWay) -> int:
    return way.warps * way.tile.warp_bytes(problem.dtype.itemsize)


def geometry(problem: Problem, way: SlicedWay) -> Geometry:
    tile = way.tile
    rows, cols = (tile.cols, tile.rows) if way.turned else (tile.rows, tile.cols)
    return Geometry((32 * way.warps, 1), rows, cols, STEP, shared_bytes(problem, way))
