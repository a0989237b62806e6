"""Products of a short k on tensor cores as the planner sees them: what a warp holds of N, where P's rows are cut."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewise.algebra.dtypes import DType
from tilewise.core.plan import Geometry
from tilewise.core.problem import Problem
from tilewise.kernels.capabilities import Condition

KERNEL = "short_k"
IDEA = "a short k on tensor cores: P leaves in whole sectors from registers, whatever its stride; lines start anywhere"
ROWS = 16  # of P, that a warp makes at a time
WARPS = 4  # of a block
SECTOR = 32  # bytes: what rows of P are cut at
TRANSPOSED_BYTES = 32  # what turned lines start on
READ_BYTES = 8  # that a lane reads of a line at once, where it may
WAVES = (0.5, 1.0)  # of blocks: half of a card's room leaves the next launch some


@dataclass(frozen=True)
class Held:
    """What a warp has of N in registers: `cols` columns, `steps` of k; `resident` blocks share a multiprocessor."""

    cols: int
    steps: int
    resident: int


HELD = {  # by bytes of an element; none of them spills
    2: (Held(64, 2, 4), Held(32, 2, 6), Held(64, 3, 3), Held(32, 4, 4)),
    4: (Held(32, 3, 4), Held(64, 3, 3), Held(32, 6, 3)),
}
DEEPEST = {size: max(held.steps for held in every) * 32 // size for size, every in HELD.items()}  # k, by the same


@dataclass(frozen=True)
class ShortConfig:
    """What a warp holds, and about how many waves of blocks there are. Operands that are `turned` first have their k
    side by side."""

    held: Held
    waves: float
    transposed: str = ""

    def words(self) -> str:
        transposed = f" {' and '.join(self.transposed)} turned" if self.transposed else ""
        return f"16x{self.held.cols} k{self.held.steps} v{self.waves:g}{transposed}"

    def spec(self) -> str:
        return self.words()


def step_of(dtype: DType) -> int:
    """k of a product of fragments: 32 bytes."""
    return 32 // dtype.itemsize


def lead_of(problem: Problem) -> int:
    """From row to row of P, or of the scratch memory that it is made in."""
    return problem.layout_p.leading_dimension(problem.m, problem.n) or problem.n


def classes_of(problem: Problem) -> int:
    """Rows of P so far apart start equally far behind a boundary of sectors."""
    return SECTOR // math.gcd(lead_of(problem) * problem.dtype.itemsize, SECTOR)


def across_of(n: int, cols: int) -> int:
    """Warps of a block side by side: the others take other rows."""
    return WARPS if n > 2 * cols else 1


def panels_of(problem: Problem, held: Held) -> int:
    """Blocks side by side. Strips begin at P's boundaries, before the first column."""
    before = SECTOR // problem.dtype.itemsize - 1
    return -(-(problem.n + before) // (across_of(problem.n, held.cols) * held.cols))


def row_warps(problem: Problem, config: ShortConfig, units: int) -> int:
    """Warps that share the rows of a strip: as many of every class."""
    p, held, classes = problem, config.held, classes_of(problem)
    rows = -(-p.m // classes)  # of each class
    groups = -(-rows // ROWS)
    strips = panels_of(p, held) * across_of(p.n, held.cols)
    each = min(groups, int(config.waves * held.resident * WARPS * units / (strips * classes)) + 1)
    return classes * -(-groups // -(-groups // each))


def width_of(problem: Problem, side: str) -> int:
    """Bytes of an operand's line that may be read at once."""
    p, size = problem, problem.dtype.itemsize
    layout, apart, along = (p.layout_m, p.layout_m.row, p.layout_m.col)
    if side == "N":
        layout, apart, along = p.layout_n, p.layout_n.col, p.layout_n.row
    if along != 1:
        return size
    for width in (8, 4):
        starts = all(x * size % width == 0 for x in (apart, p.k, *layout.stack))
        if width >= size and layout.misalignment % width == 0 and starts:
            return width
    return size


def slow_sides(problem: Problem) -> str:
    """Operands whose lines are not read READ_BYTES at once; those of a stack are not turned."""
    if problem.stack:
        return ""
    return "".join([side for side in "MN" if width_of(problem, side) < READ_BYTES])


def _is_short(p: Problem) -> bool:
    return p.k <= DEEPEST[p.dtype.itemsize] and bool(p.m and p.n)


SHORT = Condition(_is_short, f"is for a P that is not empty and a k of up to {DEEPEST[2]}, of tf32 {DEEPEST[4]}")


def configs(problem: Problem) -> list[ShortConfig]:
    """What holds all of k, as operands lie and with those turned that are slow to read."""
    p, slow = problem, slow_sides(problem)
    holding = [held for held in HELD[p.dtype.itemsize] if p.k <= held.steps * step_of(p.dtype)]
    return [
        ShortConfig(held, waves, transposed)
        for transposed in dict.fromkeys(("", slow))
        for held in holding
        for waves in WAVES
    ]


def geometry(problem: Problem, config: ShortConfig) -> Geometry:
    held, depth = config.held, config.held.steps * step_of(problem.dtype)
    across = across_of(problem.n, held.cols)
    return Geometry((32 * WARPS, 1), ROWS * WARPS // across, across * held.cols, depth, 0)
