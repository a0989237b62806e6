"""A model of bytes, memory and time of a product distributed over many workers.

2-D: every worker computes one tile of P and reads the rows of M and the columns of N it needs. 2.5-D: workers form
layers, each layer takes a part of k, and the layers' sums are reduced at the end: fewer bytes read, some bytes more for
the reduction, and more memory in total. `docs/scale.md` compares the model with small measured runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from tilewise.core.problem import Problem
from tilewise.errors import OutOfMemoryError, UsageError
from tilewise.system.quantities import seconds, size

PANEL = 1024  # of k, double-buffered by a worker
LAYERS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Workers:
    """Identical workers."""

    count: int
    steps: float  # a second and worker
    bandwidth: float  # bytes a second that one worker receives
    memory: int = 0  # bytes of each; 0: unlimited
    overlap: bool = True  # panels are read while others are multiplied
    start: float = 0.0  # seconds before the first and after the last task


@dataclass(frozen=True)
class Spread:
    """A product over rows × cols × layers of tiles; the workers take them in waves."""

    problem: Problem
    workers: Workers
    rows: int
    cols: int
    layers: int

    @property
    def tiles(self) -> int:
        return self.rows * self.cols * self.layers

    @property
    def waves(self) -> int:
        """Tiles of the busiest worker."""
        return math.ceil(self.tiles / self.workers.count)

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
        """Bytes of the reduction over layers, per worker: a reduce-scatter and a gather."""
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
        return self.waves * m * k * n / self.workers.steps

    @property
    def predicted(self) -> float:
        come, add = self.bytes_in / self.workers.bandwidth, self.bytes_added / self.workers.bandwidth
        stages = max(self.compute, come) if self.workers.overlap else self.compute + come
        return stages + add + self.workers.start

    @property
    def floor(self) -> float:
        """Seconds without communication and with even load."""
        return self.problem.steps / (self.workers.count * self.workers.steps)

    def row(self) -> list[str]:
        """A row of the table: algorithm, tiles, bytes in, sums added, memory, time, share of the floor."""
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
            "workers": self.workers.count,
            "tile": list(self.tile),
            "waves": self.waves,
            "bytes_in_a_worker": self.bytes_in,
            "bytes_added_a_worker": self.bytes_added,
            "memory_a_worker": self.needs,
            "compute_seconds": self.compute,
            "predicted_seconds": self.predicted,
            "floor_seconds": self.floor,
        }


def plan_workers(problem: Problem, workers: Workers) -> list[Spread]:
    """The best spread for each number of layers, 2-D first."""
    if workers.count < 1:
        raise UsageError(f"workers={workers.count} must be 1 or more")
    problem = replace(problem, unrounded=True)
    best = []
    for layers in LAYERS:
        if layers > workers.count or (layers > 1 and layers > problem.k):
            break
        found = [s for s in _grids(problem, workers, layers) if not workers.memory or s.needs <= workers.memory]
        if found:
            best.append(min(found, key=lambda s: (s.predicted, s.bytes_in)))
    if not best:
        least = min(s.needs for s in _grids(problem, workers, 1))
        raise OutOfMemoryError(
            f"a worker's memory={size(workers.memory)} is too small: {workers.count} workers with one tile of "
            f"{problem.shape} each need at least {size(least * 1.005)} a worker"
        )
    return best


def _grids(problem: Problem, workers: Workers, layers: int) -> list[Spread]:
    """Every grid shape with a tile for each worker of a layer."""
    a_layer = workers.count // layers
    made = []
    for rows in range(1, a_layer + 1):
        cols = a_layer // rows
        if rows <= max(1, problem.m) and cols <= max(1, problem.n):
            made.append(Spread(problem, workers, rows, cols, layers))
    return made or [Spread(problem, workers, 1, 1, layers)]
