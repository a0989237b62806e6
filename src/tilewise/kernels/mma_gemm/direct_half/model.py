"""Cost model of `direct_half` for stacks and groups: tiles and their expected time."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry
from tilewise.core.problem import Problem
from tilewise.kernels.coefficients import Numbers, coefficients
from tilewise.kernels.shared.groups import expected_tiles

KERNEL = "direct_half"
IDEA = "unaligned rows are shifted into shared memory and multiplied on tensor cores, in one launch: ragged stacks"
DEPTH = 64  # k of a phase
# Fitted to 84 plans of 35 random stacks on an H200 (rms 11 %, the choice 0.5 % above the best in the mean).
FIGURES: Numbers = coefficients("direct_half stack")


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


def seconds(tile: HalfTile, problem: Problem, machine: Machine) -> float:
    """Waves of blocks, each as long as its phases one after the other, or the multiprocessor's loads or products."""
    p = problem
    down, across = tiles_of(p, tile)
    phases = max(1, math.ceil(p.k / DEPTH))
    blocks = expected_tiles(p, tile.rows) * across if p.groups else p.members * down * across
    waves = blocks / (machine.units * tile.resident)
    waves = math.ceil(waves) if waves < 4 else waves + 0.5
    together = min(tile.resident, max(1, math.ceil(blocks / machine.units)))
    deep, rows, cols = min(p.k, DEPTH), min(p.m, tile.rows), min(p.n, tile.cols)
    loads = together * (rows + cols) * 2 * deep / FIGURES.unit
    rate = machine.tensor_rate(p.dtype.name) / machine.units * FIGURES.share
    products = together * tile.rows * tile.cols * 16 * math.ceil(deep / 16) / rate
    storing = FIGURES.block + FIGURES.cell * together * tile.rows * tile.cols
    work = waves * (phases * max(FIGURES.phase, loads, products) + storing)
    finding = FIGURES.walk if p.groups else 0.0
    return FIGURES.start + finding + max(work, p.least_bytes / (machine.bandwidth * FIGURES.memory))
