"""Few rows or columns of halves whose long operand has lines along k that start anywhere, as the planner sees them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewise.algebra.builtin import is_plus_times
from tilewise.kernels.shared.layouts import along_k, contiguous_lines
from tilewise.machine import Machine, arch_number
from tilewise.plans import Geometry
from tilewise.problem import Problem

KERNEL = "half_dots"
IDEA = "few rows or columns of halves on tensor cores: lines along k that start anywhere are read once, by whole words"
THREADS, LINES, STEP = 256, 64, 32  # of a block; lines of the long operand; k of a step
MOST_BLOCKS = 8  # of a cluster


@dataclass(frozen=True)
class DotsTile:
    """A block makes `rows` by LINES of P. `stage` steps of the few rows are staged at a time, `ahead` words loaded."""

    rows: int
    stage: int
    ahead: int
    resident: int

    @property
    def shared_bytes(self) -> int:
        return max(2 * self.rows * (self.stage * STEP + 32), 4 * self.rows * LINES)


@dataclass(frozen=True)
class DotsWay:
    """`swapped`: P has few columns, and M is the long operand. A cluster's blocks take a part of k each."""

    tile: DotsTile
    swapped: bool
    cluster: int = 1

    def spec(self) -> str:
        return f"{self.tile.rows}x{LINES}a{self.tile.ahead} c{self.cluster}{' swapped' * self.swapped}"

    @property
    def geometry(self) -> Geometry:
        sides = (LINES, self.tile.rows) if self.swapped else (self.tile.rows, LINES)
        return Geometry((THREADS, 1), *sides, STEP, self.tile.shared_bytes)


TILES = (DotsTile(16, 32, 4, 3),)  # taller ones, of 32 and 64 rows, lose to wgmma_half with its operands realigned


def refusal(problem: Problem, machine: Machine) -> str | None:
    """Why it does not take this problem, or None when it does."""
    p = problem
    if machine.kind != "cuda" or arch_number(machine.arch) < 90:
        return f"kernel={KERNEL!r} needs a card from Hopper on (sm_90), and this is {machine.arch or 'no card'}"
    if p.dtype.name not in ("bfloat16", "float16") or p.dtype_m != p.dtype or p.dtype_n != p.dtype:
        return f"kernel={KERNEL!r} multiplies bfloat16 and float16, not {p.dtype_m} by {p.dtype_n}"
    if not is_plus_times(p.semiring):
        return f"kernel={KERNEL!r} knows plus_times alone, not {p.semiring}"
    if p.groups or p.members > 1 or p.unrounded:
        return f"kernel={KERNEL!r} makes one product of rounded halves: no stack, no groups"
    if not sides(p):
        most = TILES[-1].rows
        return f"kernel={KERNEL!r} makes up to {most} rows or columns of P from lines along k, and this is {p.shape}"
    return None


def sides(p: Problem) -> list[bool]:
    """Whether it can be taken with few rows (False), and with few columns (True)."""
    given = ((False, p.m, p.layout_n, p.k, p.n, "N"), (True, p.n, p.layout_m, p.m, p.k, "M"))
    return [
        swapped
        for swapped, few, layout, rows, cols, name in given
        if 0 < few <= TILES[-1].rows and contiguous_lines(layout, rows, cols) and along_k(layout, rows, cols, name)
    ]


def ways(p: Problem, machine: Machine) -> list[DotsWay]:
    """The least tile that has all rows, and clusters of a few sizes."""
    made = []
    for swapped in sides(p):
        few, length = (p.n, p.m) if swapped else (p.m, p.n)
        tile = next(tile for tile in TILES if tile.rows >= few)
        steps, blocks = math.ceil(p.k / STEP), math.ceil(length / LINES)
        most = max(1, min(MOST_BLOCKS, steps // tile.ahead, math.ceil(machine.units * tile.resident / max(1, blocks))))
        made += [DotsWay(tile, swapped, cluster) for cluster in range(1, most + 1)]
    return made


# Fitted to 430 ways of 82 random products on an H200 (rms 13 %), when all 16 rows were staged; fewer take less.
START_SECONDS = 3.42e-6  # a launch, the first words' way in, the sums' way out
UNIT_BANDWIDTH = 5.82e10  # bytes a second of the long operand that a multiprocessor takes
ROW_SECONDS, ACROSS_SLOW = 1.41e-8, 1.31  # to stage a step of one of the few rows; and where k lies across its lines
FEWEST = 8  # rows, below which nothing is expected to be faster
CLUSTER_SECONDS, PART_SECONDS = 4.67e-7, 2.1e-8  # blocks of a cluster wait for one another
MEMORY_SHARE = 0.436


def seconds(way: DotsWay, problem: Problem, machine: Machine) -> float:
    """Waves of blocks, whose words a multiprocessor's blocks take together; what is staged before; or the bytes."""
    p, tile = problem, way.tile
    few, length, lies = (p.n, p.m, p.layout_n.row) if way.swapped else (p.m, p.n, p.layout_m.col)
    blocks = math.ceil(length / LINES) * way.cluster
    waves = math.ceil(blocks / (machine.units * tile.resident))
    together = min(tile.resident, math.ceil(blocks / machine.units))
    steps = math.ceil(math.ceil(p.k / STEP) / way.cluster)
    words = together * steps * LINES * 2 * STEP / UNIT_BANDWIDTH
    staged = ROW_SECONDS * max(few, FEWEST) * steps * (1.0 if lies == 1 else ACROSS_SLOW)
    passing = p.least_bytes / (machine.bandwidth * MEMORY_SHARE)
    work = math.sqrt(math.hypot((waves * (words + staged)) ** 2, passing**2))
    return START_SECONDS + work + (CLUSTER_SECONDS + PART_SECONDS * way.cluster if way.cluster > 1 else 0.0)


def least_seconds(problem: Problem, machine: Machine) -> float:
    """What no way goes below."""
    return START_SECONDS + problem.least_bytes / (machine.bandwidth * MEMORY_SHARE)


def best_way(problem: Problem, machine: Machine) -> tuple[DotsWay, float]:
    timed = [(seconds(way, problem, machine), number, way) for number, way in enumerate(ways(problem, machine))]
    soonest, _, way = min(timed)
    return way, soonest
