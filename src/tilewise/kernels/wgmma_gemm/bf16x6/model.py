"""Cost model of `bf16x6`: float32 on tensor cores, each operand as three bfloat16 planes, six products of them.

`transforms/split_bf16.cu` makes the planes, from operands of any strides, `bf16x6.cu` the products, and
`simt_gemm/tiled/plain.cu` is the fallback for operands whose planes would overflow or underflow; a flag on the card
chooses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry
from tilewise.core.problem import Problem
from tilewise.kernels.capabilities import Condition
from tilewise.kernels.coefficients import Numbers, coefficients
from tilewise.kernels.family import Searched
from tilewise.kernels.shared.residency import UNIT_SHARED, parts_of
from tilewise.kernels.shared.stacked import GRID_LIMIT, Runs
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

PLANE_SHARE = 1.6  # of an operand's bytes, that its planes take, padding included
KERNEL = "bf16x6"
IDEA = "float32 in three bfloat16 parts each, six products of them on tensor cores, summed in float32"
DEPTH = 32  # k of a stage
PLANES = 3
PRODUCTS = 6
LINES = 32  # rows of M, or columns of N, that planes are padded to
LINE_BYTES = 2 * DEPTH
SEGMENT = 256  # stages whose sums are added up in registers before they are added onto P
PLANE_LIMIT = 2**30  # bytes of an operand's planes at a time: k comes in slabs where it would be more,
LEAST_SLAB = 1024  # k of a slab, at least
STAGING_BYTES = 8 * 16 * 40 * 4  # of the consumers' warps, as the kernel has it

# The model's figures, fitted to 447 random products on an H200 (rms 5 %).
FIGURES: Numbers = coefficients("bf16x6")
MANY_PARTS = 16
ORDERED = Condition(
    lambda p: not p.ordered or (p.precision == "high" and not p.accumulate),
    "has an order of sums with precision='high', and not with accumulate=True",
)  # with tf32 k_major has it; an unsafe row is computed a second time, and would be added twice


@dataclass(frozen=True)
class SplitTile:
    """A tile of P."""

    cols: int
    rows: ClassVar = 128

    @property
    def stages(self) -> int:
        return min(5, (UNIT_SHARED - 1024 - STAGING_BYTES) // (self._stage_bytes + 16))

    @property
    def _stage_bytes(self) -> int:
        return PLANES * LINE_BYTES * (self.rows + self.cols)

    @property
    def shared_bytes(self) -> int:
        return 1024 + self.stages * (self._stage_bytes + 16) + STAGING_BYTES

    @property
    def geometry(self) -> Geometry:
        return Geometry((128 * (self.rows // 64 + 1), 1), self.rows, self.cols, DEPTH, self.shared_bytes)


# Without other multiples of 8, and without clusters of two that share N, 97 products that had them take 0.99 of the
# time.
TILES = tuple(SplitTile(cols) for cols in (192, 176, 168, 160, 152, 144, 136, 128, 112, 104, 88, 80, 64))


@dataclass(frozen=True)
class SplitConfig:
    """A configuration of bf16x6."""

    tile: SplitTile
    splits: int = 1  # parts that k is cut into

    @property
    def in_order(self) -> bool:
        """Whether k is one chain of stages."""
        return self.splits == 1

    def notes(self) -> list[str]:
        """Notes of the plan."""
        words = ["operands of Inf, NaN or extreme magnitudes are found on the card, and multiplied on plain cores"]
        if self.splits > 1:
            words.append(f"k is cut into {self.splits} parts, whose sums are added up in a fixed order")
        return words

    def tiles(self, m: int, n: int) -> int:
        """Tiles of P."""
        return math.ceil(m / self.tile.rows) * math.ceil(n / self.tile.cols)

    def blocks(self, m: int, n: int, units: int, members: int = 1) -> int:
        """A persistent grid: no more blocks than the card holds at once."""
        return min(units, self.tiles(m, n) * self.splits * members)

    def waves(self, m: int, n: int, units: int, members: int = 1) -> int:
        return math.ceil(self.tiles(m, n) * self.splits * members / units)


def runs_of(problem: Problem) -> Runs:
    """The launches of a stack: members at a constant stride whose planes are within the limit."""
    p = problem
    most = most_of(plane_bytes(p.m, p.k) + plane_bytes(p.n, p.k))
    return Runs(p.stack, [x.stack for x in (p.layout_m, p.layout_n, p.layout_p)], most)


def slab_of(m: int, k: int, n: int, ordered: bool = False) -> int:
    """The k of a slab: all, or whole stages whose planes are within the limit; `ordered`: it ends where sums are added
    to P anyway."""
    least, whole = SEGMENT * DEPTH if ordered else LEAST_SLAB, SEGMENT * DEPTH if ordered else DEPTH
    fits = PLANE_LIMIT // plane_bytes(max(m, n), DEPTH) * DEPTH if m and n else k
    slabs = max(1, -(-k // max(least, fits)))
    each = -(-k // slabs)
    return -(-each // whole) * whole


def plane_bytes(lines: int, k: int) -> int:
    """Of the three planes of an operand with so many rows (of M) or columns (of N)."""
    return -(-k // DEPTH) * PLANES * -(-lines // LINES) * LINES * LINE_BYTES


def expected(row: Row, given: Row) -> float:
    """The time of all runs of a stack, and what does not depend on the tile."""
    return given[9] * run_seconds(row, given) + given[10]


def run_seconds(row: Row, given: Row) -> float:
    """The waves of tiles, and adding up the parts of k."""
    m, n, phases, units, deepest = int(given[0]), int(given[1]), int(given[2]), int(given[3]), int(given[4])
    stage, start, tiles = row[2], row[3], int(given[8]) * -(-m // int(row[0])) * -(-n // int(row[1]))
    if row[4] == 0.0:
        return -(-tiles // units) * (max(phases, 1) * stage + start)
    most = parts_of(tiles, units, deepest)
    if most <= 1:
        return INFINITE
    seconds = -(-tiles * most // units) * (-(-phases // most) * stage + start)
    cells = given[7] if most > MANY_PARTS else given[7] / 8
    return seconds + given[6] + cells + most * given[5]


class Figures(NamedTuple):
    """What times depend on besides sizes."""

    units: int  # multiprocessors


def given_of(p: Problem, f: Figures) -> Row:
    """The numbers that all rows share."""
    members = run_of(p)
    launches, phases, cells = max(1, -(-p.members // members)), -(-p.k // DEPTH), members * p.m * p.n
    return (
        p.m, p.n, phases, f.units, phases // 8, 8 * cells / FIGURES.gathering, FIGURES.gather,
        cells * FIGURES.gathered_cell, members, launches, other_seconds(p, launches),
    )  # fmt: skip


def passes(row: Row, given: Row) -> int:
    """One that makes planes, the plain kernel behind them, and one to add up the parts of k."""
    return 3 if row[4] > 0.0 else 2


EXPECTED = Formula(expected, given_of, passes=passes)


def run_of(p: Problem) -> int:
    """Members of a launch."""
    if p.members <= 1:
        return 1
    planes = plane_bytes(p.m, p.k) + plane_bytes(p.n, p.k)
    return max(1, min(p.in_a_row, most_of(planes)))


def most_of(planes: int) -> int:
    """Members of a launch whose planes, of so many bytes a member, are within the limit."""
    return max(1, min(GRID_LIMIT, 2 * PLANE_LIMIT // max(1, planes)))


def searched(machine: Machine) -> list[Searched]:
    figures = Figures(machine.units)

    def config(number: int, p: Problem) -> SplitConfig:
        """Every second one has split-K."""
        tile, (m, n, _, units, deepest, *rest) = TILES[number // 2], given_of(p, figures)
        tiles = rest[3] * -(-m // tile.rows) * -(-n // tile.cols)
        return SplitConfig(tile, parts_of(int(tiles), int(units), int(deepest)) if number % 2 else 1)

    return [Searched(EXPECTED, _table(machine), figures, config)]


@lru_cache(maxsize=64)
def _table(machine: Machine) -> Rows:
    """A tile's rows, columns, seconds of a stage, of a tile beside them; whether k is cut."""
    made = [
        (tile.rows, tile.cols, _stage_seconds(tile, machine), FIGURES.block + FIGURES.column * tile.cols)
        for tile in TILES
    ]
    return Rows([(*row, cut) for row in made for cut in (0, 1)])


def _stage_seconds(tile: SplitTile, machine: Machine) -> float:
    ideal = PRODUCTS * tile.rows * tile.cols * DEPTH / (machine.tensor_rate("bfloat16") / machine.units)
    return float(max(FIGURES.stage_sums + ideal / FIGURES.share, FIGURES.narrow + ideal / FIGURES.narrow_share))


def other_seconds(p: Problem, launches: int) -> float:
    """The time that does not depend on the tile: launches, the split into planes, slabs of k."""
    slabs = -(-p.k // max(1, slab_of(p.m, p.k, p.n, False)))
    if p.members > 1 and slabs == 1:
        return stack_seconds(p, launches)
    work = FIGURES.start + 10 * (p.m * p.k + p.k * p.n) / FIGURES.splitting
    if slabs > 1:
        work += slabs * (FIGURES.start + 8 * p.m * p.n / FIGURES.splitting)
        work += 4 * (p.m * p.k + p.k * p.n) / FIGURES.splitting
    return p.members * work


def stack_seconds(p: Problem, launches: int) -> float:
    """The same of a stack: padded planes, those of a broadcast operand once."""
    of_m = (p.members if p.layout_m.step else 1) * (4 * p.m * p.k + plane_bytes(p.m, p.k))
    of_n = (p.members if p.layout_n.step else 1) * (4 * p.n * p.k + plane_bytes(p.n, p.k))
    return launches * FIGURES.start + (of_m + of_n) / FIGURES.splitting
