"""Past the machines at hand: how a product spreads over many workers, by a model of bytes, memory and time.

2-D: every worker makes one tile of P and reads the rows of M and the columns of N it needs. 2.5-D: workers stand in
layers, each layer takes a part of k, and the layers' sums are added up at the end: fewer bytes in, some bytes more at
the end, and more memory in all. `docs/scale.md` holds the model against small runs that were measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from tilewise.core.problem import Problem
from tilewise.errors import OutOfMemoryError, UsageError
from tilewise.system.quantities import seconds, size

PANEL = 1024  # of k, that a worker holds at a time, twice
LAYERS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Crew:
    """The workers: all alike."""

    count: int
    steps: float  # a second and worker
    bandwidth: float  # bytes a second that one worker receives
    memory: int = 0  # bytes each; 0 where it does not matter
    overlap: bool = True  # whether panels come while others are multiplied
    start: float = 0.0  # seconds before the first and after the last task


@dataclass(frozen=True)
class Spread:
    """A product over rows × cols × layers of tiles; the crew takes them in waves."""

    problem: Problem
    crew: Crew
    rows: int
    cols: int
    layers: int

    @property
    def tiles(self) -> int:
        return self.rows * self.cols * self.layers

    @property
    def waves(self) -> int:
        """Tiles that the busiest worker makes, one after the other."""
        return math.ceil(self.tiles / self.crew.count)

    @property
    def tile(self) -> tuple[int, int, int]:
        """m, k, n of one task."""
        p = self.problem
        return math.ceil(p.m / self.rows), math.ceil(p.k / self.layers), math.ceil(p.n / self.cols)

    @property
    def bytes_in(self) -> int:
        """Operands that the busiest worker reads."""
        m, k, n = self.tile
        p = self.problem
        return self.waves * k * (m * p.dtype_m.itemsize + n * p.dtype_n.itemsize)

    @property
    def bytes_added(self) -> int:
        """Sums that travel to be added up, a worker's share: each layer's tile is scattered and gathered."""
        m, _, n = self.tile
        once = m * n * self.problem.algebra.partial.itemsize
        return 2 * self.waves * once * (self.layers - 1) // self.layers

    @property
    def needs(self) -> int:
        """Memory of a worker: sums, and two panels of each operand."""
        m, k, n = self.tile
        p, depth = self.problem, min(PANEL, k)
        return m * n * p.algebra.partial.itemsize + 2 * depth * (m * p.dtype_m.itemsize + n * p.dtype_n.itemsize)

    @property
    def compute(self) -> float:
        m, k, n = self.tile
        return self.waves * m * k * n / self.crew.steps

    @property
    def predicted(self) -> float:
        come, add = self.bytes_in / self.crew.bandwidth, self.bytes_added / self.crew.bandwidth
        stages = max(self.compute, come) if self.crew.overlap else self.compute + come
        return stages + add + self.crew.start

    @property
    def floor(self) -> float:
        """If nothing had to travel and all had as much to do."""
        return self.problem.steps / (self.crew.count * self.crew.steps)

    def words(self) -> list[str]:
        """One line of the table: how, tiles, bytes in, sums added, memory, time, share of the floor."""
        name = "2-D" if self.layers == 1 else "2.5-D"
        layers = "" if self.layers == 1 else f" x {self.layers} layers"
        share = f"{100 * self.floor / self.predicted:.0f} %" if self.predicted else "–"
        return [
            name,
            f"{self.rows} x {self.cols}{layers}",
            size(self.bytes_in),
            size(self.bytes_added),
            size(self.needs),
            seconds(self.predicted),
            share,
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "grid": [self.rows, self.cols, self.layers],
            "workers": self.crew.count,
            "tile": list(self.tile),
            "waves": self.waves,
            "bytes_in_a_worker": self.bytes_in,
            "bytes_added_a_worker": self.bytes_added,
            "memory_a_worker": self.needs,
            "compute_seconds": self.compute,
            "predicted_seconds": self.predicted,
            "floor_seconds": self.floor,
        }


def plan_workers(problem: Problem, crew: Crew) -> list[Spread]:
    """The best spread in each number of layers, 2-D first, the fastest of all marked by being the minimum."""
    if crew.count < 1:
        raise UsageError(f"workers={crew.count} must be 1 or more")
    problem = replace(problem, unrounded=True)
    best = []
    for layers in LAYERS:
        if layers > crew.count or (layers > 1 and layers > problem.k):
            break
        found = [s for s in _grids(problem, crew, layers) if not crew.memory or s.needs <= crew.memory]
        if found:
            best.append(min(found, key=lambda s: (s.predicted, s.bytes_in)))
    if not best:
        least = min(s.needs for s in _grids(problem, crew, 1))
        raise OutOfMemoryError(
            f"a worker's memory={size(crew.memory)} is too small: {crew.count} workers with one tile of "
            f"{problem.shape} each need at least {size(least * 1.005)} a worker"
        )
    return best


def _grids(problem: Problem, crew: Crew, layers: int) -> list[Spread]:
    """A tile for each worker of a layer, in every shape of the grid."""
    a_layer = crew.count // layers
    made = []
    for rows in range(1, a_layer + 1):
        cols = a_layer // rows
        if rows <= max(1, problem.m) and cols <= max(1, problem.n):
            made.append(Spread(problem, crew, rows, cols, layers))
    return made or [Spread(problem, crew, 1, 1, layers)]
