"""Problem + budget → Schedule: the tile of P that stays, the panels that stream, bytes moved and expected time.

One level above a kernel's plan, with the same terms: the small memory holds one tile of P and, for the current phase
and the next, a panel of M and one of N. A larger tile reads the operands fewer times; a deeper panel visits the tile
less often. Pure functions over plain values: no array, device or file is touched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

from tilewise.core.problem import Problem
from tilewise.core.reproducible import CHAIN
from tilewise.errors import TooLargeError
from tilewise.system.quantities import counted, seconds, size

JSON_VERSION = 1
SETS = 2  # buffers for the panels of an operand: one is used while the other is filled
HELD = 3  # buffers for bands of M's panels, if a panel has several
BAND_GRAIN = 384  # rows of a band: whole tiles of every kernel
GRAIN = 64  # sides of tiles and depths of panels are multiples of this, unless the matrix is smaller
MOST = 4096  # parts into which a side is divided, at most
NORM = 4


@dataclass(frozen=True)
class Level:
    """Rates between a large and a small memory."""

    name: str
    read: float  # bytes a second into the small memory
    write: float  # bytes a second back
    steps: float  # steps a second on resident data
    revisit: float = math.inf  # bytes a second at which a phase reads and writes the sums
    each: float = 1e-3  # overhead of a phase in seconds


@dataclass(frozen=True)
class OutputTile:
    """One tile of P, and its number in row-major order."""

    number: int
    rows: slice
    cols: slice

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.stop - self.rows.start, self.cols.stop - self.cols.start


@dataclass(frozen=True)
class Schedule:
    """The tiles and panels of a product that streams through a small memory."""

    problem: Problem
    level: Level
    memory: int
    rows: int
    cols: int
    depth: int
    spare: int = 0  # bytes set aside: staging, workspaces
    copied: tuple[float, float] = (0.0, 0.0)  # packed or split copies of M's and N's panels in memory
    align: int = 1  # alignment in bytes of rows in the small memory
    bands: int = 1  # bands of rows in which a phase is multiplied; HELD of them are in memory

    @property
    def grid(self) -> tuple[int, int]:
        """Tiles of P, down and across."""
        return math.ceil(self.problem.m / self.rows), math.ceil(self.problem.n / self.cols)

    @property
    def tiles(self) -> int:
        return self.grid[0] * self.grid[1]

    @property
    def phases(self) -> int:
        return math.ceil(self.problem.k / self.depth)

    @property
    def band(self) -> int:
        """Rows of a band."""
        grain = BAND_GRAIN if self.bands > 1 else 1
        return min(self.rows, -(-self.rows // self.bands // grain) * grain)

    @property
    def held(self) -> int:
        """Bands of M's panels in the small memory; an undivided panel is one band."""
        return min(HELD, -(-self.rows // self.band) + 1)

    @cached_property
    def needs(self) -> int:
        """Bytes of the small memory."""
        p, kernel = self.problem, self.problem.dtype.itemsize
        total = self._bytes(self.rows, self.cols, p.algebra.partial.itemsize) + self.spare
        for side, sets, item, copied in (
            (self.band, self.held, p.dtype_m.itemsize, self.copied[0]),
            (self.cols, SETS, p.dtype_n.itemsize, self.copied[1]),
        ):
            panel = max(self._bytes(side, self.depth, item), self._bytes(self.depth, side, item))
            total += sets * panel + math.ceil(copied * side * self.depth * kernel)
        return total

    def _bytes(self, count: int, length: int, item: int) -> int:
        return count * (-(-length * item // self.align) * self.align)

    @property
    def down(self) -> bool:
        """Whether tiles are walked column by column. It matters with a single phase, where a panel stays for a row or
        column of tiles: N's can always stay, M's if it is one band."""
        p, (a, b) = self.problem, self.grid
        by_rows = p.m * p.dtype_m.itemsize + a * p.n * p.dtype_n.itemsize
        by_columns = b * p.m * p.dtype_m.itemsize + p.n * p.dtype_n.itemsize
        return self.phases == 1 and (self.band < self.rows or by_columns < by_rows)

    @cached_property
    def bytes_in(self) -> int:
        """M is read once for each column of tiles and N once for each row; with a single phase, one of them once."""
        p, (a, b) = self.problem, self.grid
        if self.phases <= 1:
            a, b = (1, b) if self.down else (a, 1)
        return p.k * (b * p.m * p.dtype_m.itemsize + a * p.n * p.dtype_n.itemsize)

    @property
    def bytes_out(self) -> int:
        p = self.problem
        return p.m * p.n * p.semiring.over(p.dtype).result.itemsize

    @property
    def compute(self) -> float:
        sums = self.problem.m * self.problem.n * self.problem.algebra.partial.itemsize
        return self.problem.steps / self.level.steps + 2 * sums * max(0, self.phases - 1) / self.level.revisit

    @cached_property
    def predicted(self) -> float:
        """Seconds: three stages overlap, except for the first panels and the last tile. Stages of similar length slow
        each other down, which the norm, instead of the maximum, models."""
        p = self.problem
        first = self.depth * (self.band * p.dtype_m.itemsize + self.cols * p.dtype_n.itemsize) / self.level.read
        last = self.bytes_out / self.tiles / self.level.write if self.tiles else 0.0
        stages = (self.compute, self.bytes_in / self.level.read, self.bytes_out / self.level.write)
        overlapped: float = sum(stage**NORM for stage in stages) ** (1 / NORM)
        return overlapped + first + last + self.stall_seconds + self.tiles * self.phases * self.level.each

    @property
    def stall_seconds(self) -> float:
        """Seconds of waiting for tiles in bands: a tile's rows are copied out during its last phase and the next
        tile's first; the rest of the copy is waited for."""
        if self.bands == 1 or not self.tiles:
            return 0.0
        phase = self.compute / (self.tiles * self.phases)
        leaving = self.bytes_out / self.tiles / self.level.write
        return (self.tiles - 1) * max(0.0, leaving - 2 * phase * (1 - 1 / self.bands))

    @property
    def floor(self) -> float:
        """Seconds if everything fitted into the small memory, so that each operand is read once."""
        come = (self.problem.least_bytes - self.bytes_out) / self.level.read
        return max(self.problem.steps / self.level.steps, come, self.bytes_out / self.level.write)

    @property
    def bound(self) -> str:
        stages = {
            "arithmetic": self.compute,
            "bytes coming in": self.bytes_in / self.level.read,
            "bytes going out": self.bytes_out / self.level.write,
        }
        return max(stages, key=lambda name: stages[name])

    def tile(self, number: int) -> OutputTile:
        row, col = divmod(number, self.grid[1])
        rows = slice(row * self.rows, min((row + 1) * self.rows, self.problem.m))
        cols = slice(col * self.cols, min((col + 1) * self.cols, self.problem.n))
        return OutputTile(number, rows, cols)

    def walk(self) -> Iterator[OutputTile]:
        """Every tile of P in boustrophedon order, so that successive tiles share a row or column."""
        a, b = self.grid
        outer, inner = (b, a) if self.down else (a, b)
        for i in range(outer):
            for j in range(inner) if i % 2 == 0 else reversed(range(inner)):
                yield self.tile(j * b + i if self.down else i * b + j)

    def slices(self) -> list[slice]:
        """The ranges of k of the phases."""
        return [slice(k, min(k + self.depth, self.problem.k)) for k in range(0, self.problem.k, self.depth)]

    def __repr__(self) -> str:
        p = self.problem
        return (
            f"Schedule({p.shape} {p.dtype} {p.semiring} within {size(self.memory)}: {self.grid[0]}x{self.grid[1]} "
            f"tiles of {self.rows}x{self.cols}, {self.phases} phases of {self.depth}, {seconds(self.predicted)})"
        )

    def summary(self) -> list[tuple[str, str]]:
        """The schedule as a table of (name, text)."""
        return [
            ("memory", f"{size(self.memory)} requested, {size(self.needs)} used ({self.level.name})"),
            ("resident", f"a tile of {self.rows}x{self.cols} of P; {self.grid[0]} x {self.grid[1]} of them"),
            ("panels", f"{self.held} of {self.band}x{self.depth} of M, {SETS} of {self.depth}x{self.cols} of N"),
            (
                "streamed",
                f"{counted(self.phases, 'phase')} a tile; {size(self.bytes_in)} in, {size(self.bytes_out)} out",
            ),
            ("stages", self._stages()),
            ("expected", f"{seconds(self.predicted)}, set by {self.bound}; floor {seconds(self.floor)}"),
        ]

    def _stages(self) -> str:
        come, go = self.bytes_in / self.level.read, self.bytes_out / self.level.write
        return f"{seconds(come)} coming in, {seconds(self.compute)} multiplying, {seconds(go)} going out, overlapped"

    def to_json(self) -> dict[str, Any]:
        return {
            "version": JSON_VERSION,
            "level": self.level.name,
            "memory": self.memory,
            "needs": self.needs,
            "tile_of_P": [self.rows, self.cols],
            "grid": list(self.grid),
            "depth": self.depth,
            "phases": self.phases,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "compute_seconds": self.compute,
            "predicted_seconds": self.predicted,
            "floor_seconds": self.floor,
            "bound": self.bound,
        }


def make_schedule(
    problem: Problem,
    level: Level,
    memory: int,
    *,
    spare: int = 0,
    grain: tuple[int, int] = (GRAIN, GRAIN),
    copied: tuple[float, float] = (0.0, 0.0),
    align: int = 1,
    bands: int = 1,
    least: tuple[int, int, int] = (GRAIN, GRAIN, GRAIN),
    floor: int = 0,
    name: str = "memory",
) -> Schedule:
    """The schedule with the least expected time within `memory` bytes.

    grain: P's tiles are multiples of it (the chunks of a store). least: rows, columns and depth of the smallest useful
    tile; a budget too small for it, or below `floor`, is refused. `problem` should be `unrounded`, so that sums count
    with the accumulator's size.
    """
    smallest = Schedule(
        problem,
        level,
        memory,
        max(1, min(max(grain[0], least[0]), problem.m)),
        max(1, min(max(grain[1], least[1]), problem.n)),
        max(1, min(max(least[2], _unit(problem)), problem.k)),
        spare,
        copied,
        align,
        bands,
    )
    needs, beside = max(smallest.needs, floor), max(spare, floor)
    if needs > memory:
        part = f", {size(beside)} of it for the process and its buffers" if 2 * beside > needs else ""
        raise TooLargeError(
            f"{name}={size(memory)} is too small for one tile of {problem.shape} {problem.dtype}: "
            f"the least that works is {-(-needs // 1000) * 1000:,} bytes ({size(needs * 1.005)}{part})"
        )
    best: Schedule | None = None
    cuts = product(_sides(problem.m, grain[0]), _sides(problem.n, grain[1]))
    for bound, rows, cols in sorted((_lower_bound(smallest, *cut), *cut) for cut in cuts):
        if best is not None and bound > best.predicted:
            break
        for made in _depths(replace(smallest, rows=rows, cols=cols)):
            if best is None or (made.predicted, made.bytes_in) < (best.predicted, best.bytes_in):
                best = made
    assert best is not None
    return best


def _lower_bound(made: Schedule, rows: int, cols: int) -> float:
    """A lower bound of the seconds for reading the panels of tiles of this size, for any depth."""
    p, down, across = made.problem, math.ceil(made.problem.m / rows), math.ceil(made.problem.n / cols)
    of_m, of_n = p.m * p.k * p.dtype_m.itemsize, p.k * p.n * p.dtype_n.itemsize
    come = across * of_m + down * of_n
    if SETS * cols * p.k * p.dtype_n.itemsize <= made.memory:  # perhaps a single phase: then one operand is read once
        come = min(across * of_m + of_n, of_m + down * of_n)
    return come / made.level.read


def _sides(extent: int, grain: int) -> list[int]:
    """Candidate sides of a tile: the matrix divided into 1, 2, 3, … equal parts, in multiples of the grain."""
    sides: list[int] = []
    parts = 1
    while parts <= MOST:
        side = max(1, min(extent, -(-math.ceil(extent / parts) // grain) * grain))
        if not sides or side < sides[-1]:
            sides.append(side)
        if side <= grain:
            break
        parts = parts + 1 if parts < 12 else math.ceil(parts * 1.2)
    if extent > grain and sides[-1] > grain:
        sides.append(grain)
    return sides


def _unit(problem: Problem) -> int:
    """What depths of panels are multiples of: where sums have a specified order, of a chain."""
    return CHAIN if problem.ordered else GRAIN


def _depths(made: Schedule) -> Iterator[Schedule]:
    """Schedules with the deepest panels that fit beside this tile, and with shallower ones, which start sooner."""
    p, k = made.problem, made.problem.k
    (copied_m, copied_n), kernel, unit = made.copied, p.dtype.itemsize, _unit(p)
    each = made.band * (made.held * p.dtype_m.itemsize + copied_m * kernel)  # bytes per step of k
    each += made.cols * (SETS * p.dtype_n.itemsize + copied_n * kernel)
    tile = made.rows * made.cols * p.algebra.partial.itemsize + made.spare
    deepest = min(k, int((made.memory - tile) / each))
    while deepest > 0 and replace(made, depth=deepest).needs > made.memory:  # rows are padded, panels packed
        deepest -= max(1, min(GRAIN, deepest // 16))
    if deepest < min(unit, k):
        deepest = min(unit, k)  # the loop above may have skipped it
        if replace(made, depth=deepest).needs > made.memory:
            return
    deepest = deepest if deepest == k else deepest // unit * unit
    if k == 0:
        yield replace(made, depth=1)
        return
    phases = math.ceil(k / deepest)
    for factor in (1, 2, 4, 8):
        depth = math.ceil(k / (phases * factor))
        depth = min(deepest, -(-depth // unit) * unit, k)
        yield replace(made, depth=depth)
        if depth <= unit:
            break
