"""Cost model of `short_k`: the columns of N that a warp holds, and the cut of P's rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import gcd, sqrt
from typing import NamedTuple

from tilewise.algebra.dtypes import DType
from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry
from tilewise.core.problem import Layout, Problem, row_lead
from tilewise.kernels.capabilities import Condition
from tilewise.kernels.coefficients import coefficients
from tilewise.kernels.family import Searched
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

KERNEL = "short_k"
IDEA = "a short k on tensor cores: P is stored from registers by whole sectors, for any stride and alignment"
ROWS = 16  # of P, that a warp makes at a time
WARPS = 4  # of a block
SECTOR = 32  # bytes: rows of P are cut at multiples
TRANSPOSED_BYTES = 32  # what transposed rows start on
READ_BYTES = 8  # that a lane reads of a line at once, where it may
WAVES = (0.5, 1.0)  # of blocks: half a wave leaves room for the next launch


@dataclass(frozen=True)
class Held:
    """A warp's part of N in registers: `cols` columns, `steps` of k; `resident` blocks a multiprocessor."""

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
    """What a warp holds, and about how many waves of blocks there are. Operands that are `transposed` first have
    their k side by side."""

    held: Held
    waves: float
    transposed: str = ""

    def spec(self) -> str:
        transposed = f" {' and '.join(self.transposed)} transposed" if self.transposed else ""
        return f"16x{self.held.cols} k{self.held.steps} v{self.waves:g}{transposed}"


def step_of(dtype: DType) -> int:
    """k of a product of fragments: 32 bytes."""
    return 32 // dtype.itemsize


def lead_of(problem: Problem) -> int:
    """The leading dimension of P, or of its copy in scratch memory."""
    return problem.layout_p.leading_dimension(problem.m, problem.n) or problem.n


def classes_of(p: Problem) -> int:
    """The distance of rows of P with the same misalignment from sectors."""
    lead = row_lead(p.layout_p, p.m, p.n)
    return SECTOR // gcd((lead if lead > 0 else p.n) * p.dtype.itemsize, SECTOR)


def across_of(n: int, cols: int) -> int:
    """Warps of a block side by side; the others take other rows."""
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


def width_of(layout: Layout, apart: int, along: int, k: int, size: int) -> int:
    """Bytes of a load of an operand's line; its strides between lines and along k."""
    if along != 1:
        return size
    start = gcd(layout.misalignment, gcd(gcd(apart, k), layout.step) * size)
    return 8 if start % 8 == 0 else 4 if start % 4 == 0 else size


def width_of_m(p: Problem, size: int) -> int:
    return width_of(p.layout_m, p.layout_m.row, p.layout_m.col, p.k, size)


def width_of_n(p: Problem, size: int) -> int:
    return width_of(p.layout_n, p.layout_n.col, p.layout_n.row, p.k, size)


def widths_of(p: Problem) -> dict[str, int]:
    """The same of both, by name."""
    return {"M": width_of_m(p, p.dtype.itemsize), "N": width_of_n(p, p.dtype.itemsize)}


def slow_sides(p: Problem) -> str:
    """Operands that are loaded by less than READ_BYTES; none of a stack, which is not transposed."""
    return "" if p.stack else "".join([side for side, width in widths_of(p).items() if width < READ_BYTES])


def is_short(p: Problem) -> bool:
    return p.k <= (DEEPEST_HALF if p.dtype.itemsize == 2 else DEEPEST_TF32) and p.m > 0 and p.n > 0


DEEPEST_HALF, DEEPEST_TF32 = DEEPEST[2], DEEPEST[4]


SHORT = Condition(is_short, f"is for a P that is not empty and a k of up to {DEEPEST[2]}, of tf32 {DEEPEST[4]}")


def geometry(problem: Problem, config: ShortConfig) -> Geometry:
    held, depth = config.held, config.held.steps * step_of(problem.dtype)
    across = across_of(problem.n, held.cols)
    return Geometry((32 * WARPS, 1), ROWS * WARPS // across, across * held.cols, depth, 0)


APART = 1.6  # factor of M's loads where M is column-major and a class's rows are not neighbours
IN_L2, BEYOND_L2 = 20e6, 60e6  # bytes of P that stay in L2 after the stores; of which hardly any do


def expected(row: Row, given: Row) -> float:
    """A launch, and the longest of: one warp's loads, products and stores one after the other; those of all warps of a
    multiprocessor; writing P. Limits that are equally near hinder each other."""
    m, n, deep, units, classes = int(given[0]), int(given[1]), int(given[2]), int(given[3]), int(given[4])
    cols, steps, resident, waves = int(row[0]), int(row[1]), int(row[2]), row[3]
    if deep > steps or (row[4] > 0.0 and given[8] == 0.0):
        return INFINITE
    across = WARPS if n > 2 * cols else 1
    strips = -(-(n + int(given[5]) - 1) // (across * cols)) * across
    rows = -(-m // classes)  # of each class
    groups = -(-rows // ROWS)
    wanted = waves * resident * WARPS * units / (strips * classes)
    each = min(groups, int(wanted) + 1)
    rounds = -(-groups // each)
    warps = strips * classes * -(-groups // rounds)
    of_m = 2 * steps * (1.0 if row[4] > 0.0 else given[6])
    of_n = cols // 8 * steps * (1.0 if row[4] > 0.0 else given[7])
    stores = cols / given[5]
    alone = row[7] * of_n + rounds * (row[9] + row[8] * of_m + row[10] * stores)
    busy = warps / units * row[11] * of_n
    busy += -(-strips * groups * classes // units) * (
        row[13] + row[12] * of_m + row[14] * (cols // 8) * deep + row[15] * stores
    )
    work = row[5] + sqrt(sqrt(alone**4 + busy**4 + given[9]))
    if warps > resident * WARPS * units // 2:
        work += row[6]
    return work + (row[16] + row[17] * given[8] if row[4] > 0.0 else 0.0)


@lru_cache(maxsize=8)
def _table(size: int) -> tuple[tuple[tuple[Held, float, bool], ...], Rows]:
    configs = tuple((held, waves, transposed) for transposed in (False, True) for held in HELD[size] for waves in WAVES)
    f = coefficients(f"short_k {size}")
    rows = [
        (
            *(held.cols, held.steps, held.resident, waves, float(transposed), f.start, f.late),
            *(f.column_load, f.row_load, f.rows, f.row_store, f.columns, f.loads, f.group, f.products, f.stores),
            *(f.turn, f.transposed),
        )
        for held, waves, transposed in configs
    ]
    return configs, Rows(rows)


class Figures(NamedTuple):
    """What times depend on besides sizes: a kind of elements on a card."""

    units: int  # multiprocessors
    bandwidth: float  # bytes a second
    size: int  # bytes of an element
    in_l2: float  # factors of the time that the bandwidth makes: of a P that stays in L2,
    beyond: float  # and of one that does not


def takes(p: Problem, f: Figures) -> bool:
    return is_short(p)


def given_of(p: Problem, f: Figures) -> Row:
    size, width_m, width_n, classes = f.size, width_of_m(p, f.size), width_of_n(p, f.size), classes_of(p)
    out = min(1.0, max(0.0, (p.m * p.n * size - IN_L2) / (BEYOND_L2 - IN_L2)))
    writing = p.least_bytes / f.bandwidth * (f.in_l2 * (1 - out) + f.beyond * out)
    lines = 0 if p.axes else (p.m if width_m < READ_BYTES else 0) + (p.n if width_n < READ_BYTES else 0)
    apart = APART if size == 2 and p.layout_m.col != 1 and classes > 2 else 1.0
    return (
        p.m, p.n, -(-p.k // (32 // size)), f.units, classes, SECTOR // size, READ_BYTES // width_m * apart,
        READ_BYTES // width_n, lines * p.k * size, writing**4,
    )  # fmt: skip


EXPECTED = Formula(expected, given_of, takes)


def searched(problem: Problem, machine: Machine) -> list[Searched]:
    """Configurations that hold all of k, with operands unchanged, or with slowly read ones transposed."""
    size = problem.dtype.itemsize
    f, (every, rows) = coefficients(f"short_k {size}"), _table(size)

    def config(number: int, p: Problem) -> ShortConfig:
        held, waves, transposed = every[number]
        return ShortConfig(held, waves, slow_sides(p) if transposed else "")

    return [Searched(EXPECTED, rows, Figures(machine.units, machine.bandwidth, size, f.in_l2, f.beyond), config)]
