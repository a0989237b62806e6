"""Ragged halves by warpgroups, their lines shifted on the way, as the planner sees them: tiles, and their time."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry
from tilewise.core.problem import Problem
from tilewise.kernels.coefficients import Numbers, coefficients
from tilewise.kernels.shared.groups import expected_tiles

KERNEL = "shifted_half"
IDEA = "warps load lines that start anywhere and shift them into place, warpgroups multiply: ragged stacks and groups"
DEPTH = 64  # k of a stage


@dataclass(frozen=True)
class ShiftedTile:
    """A block makes rows × cols of P: `loaders` warpgroups load, `ahead` chunks of 16 bytes a thread at a time, and one
    for each 64 rows multiplies. `registers` of a thread that loads, and of one that multiplies."""

    rows: int
    cols: int
    loaders: int
    ahead: int
    stages: int
    resident: int
    registers: tuple[int, int]
    stage_seconds: float  # beside as many other blocks as share a multiprocessor
    cluster: int = 1

    @property
    def threads(self) -> int:
        return 128 * (self.loaders + self.rows // 64)

    @property
    def shared_bytes(self) -> int:
        return 1024 + self.stages * ((self.rows + self.cols) * 2 * DEPTH + 16)

    @property
    def geometry(self) -> Geometry:
        return Geometry((self.threads, 1), self.rows, self.cols, DEPTH, self.shared_bytes)

    def spec(self) -> str:
        return f"{self.rows}x{self.cols}l{self.loaders}a{self.ahead}"


# None of them spills. Of eight tiles that were timed (an H200, 12 products of groups, 359 stacks) these were the
# soonest of all kernels somewhere. Calling lines into L2 stages before made them take 1.3 to 2 times as long.
TILES = (
    ShiftedTile(64, 256, 2, 10, 5, 1, (168, 168), 1.54e-6),
    ShiftedTile(64, 128, 1, 6, 4, 2, (128, 128), 1.60e-6),
)


# Fitted to groups of 2047x1409 on an H200, 8 to 256 of them and 1,024 to 60,000 rows (rms 9 %).
FIGURES: Numbers = coefficients("shifted_half")


def seconds(tile: ShiftedTile, problem: Problem, machine: Machine) -> float:
    """Tiles of a multiprocessor one after the other, each as long as its stages take through it; or the bytes."""
    p = problem
    across, stages = math.ceil(p.n / tile.cols), math.ceil(p.k / DEPTH)
    blocks = expected_tiles(p, tile.rows) * across if p.groups else p.members * math.ceil(p.m / tile.rows) * across
    waves = max(1.0, blocks / (machine.units * tile.resident) + 0.5)
    work = waves * (stages * tile.stage_seconds + FIGURES.block)
    return FIGURES.start + max(work, p.least_bytes / (machine.bandwidth * FIGURES.memory))
