"""Kernels without tiles of both operands in shared memory.

`cells`: a thread computes a few cells. `rank_k`: a short k, columns of N stay in registers.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import ClassVar, NamedTuple

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Launch, Scratch
from tilewise.kernels.by_configs import Tabled
from tilewise.kernels.capabilities import Capabilities, Condition
from tilewise.kernels.coefficients import Numbers, coefficients
from tilewise.kernels.family import Searched, numbered
from tilewise.kernels.shared.placed import Operands, Placed
from tilewise.kernels.shared.residency import UNIT_SHARED, rounded_up
from tilewise.kernels.shared.stack_launches import along_k, stack_launches, strides
from tilewise.kernels.shared.stacked import Runs
from tilewise.kernels.shared.steps import relative_slots
from tilewise.kernels.simt_gemm.text import render_cells, render_rank_k
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

THREADS = 256  # of a block
SIZE = 4  # bytes of a partial sum, of rank_k


class Cut(NamedTuple):
    """A thread's cells: so many, down a column or along a row."""

    width: int
    down: bool


MANY_CELLS, MOST_WIDE = 2**17, 4  # a thread makes several where there are so many
CUTS = (Cut(1, False), *(Cut(width, down) for width in (2, MOST_WIDE) for down in (False, True)))
LONGEST = 256  # k: beyond it sums one after the other are less exact than a tile's, and slower
LARGEST = 2**22  # steps of one member beyond which tiles always win,
SHALLOW, LARGEST_SHALLOW = 16, 2**26  # and in stacks with a k so small that storing P takes most of the time
# With few columns each thread of a warp reads a row of M of its own, and each row is a separate L1 access:
FEW_COLUMNS, LONG_LINE = 4, 100  # so few, along rows of M of so many bytes and more
MOST_BLOCKS = 2**31 - 1


def width_of(p: Problem) -> int:
    """Cells of a thread: more cells mean fewer loads, and fewer threads."""
    longest = p.m if goes_down(p) else p.n
    if p.members * p.m * p.n < MANY_CELLS or longest < 2:
        return 1
    return MOST_WIDE if longest >= MOST_WIDE else 2


def goes_down(p: Problem) -> bool:
    """Whether they lie in a column, where there are several."""
    return p.m >= MOST_WIDE or p.m >= p.n


def cut(problem: Problem) -> Cut:
    width = width_of(problem)
    return Cut(width, width > 1 and goes_down(problem))


def threads_of_a_member(p: Problem) -> int:
    width = width_of(p)
    return -(-p.m // width) * p.n if width > 1 and goes_down(p) else p.m * -(-p.n // width)


def is_small(p: Problem) -> bool:
    return p.m * p.k * p.n <= (LARGEST_SHALLOW if p.k <= SHALLOW and p.members > 1 else LARGEST)


SMALL = Condition(is_small, f"is for up to {LARGEST:,} steps, and {LARGEST_SHALLOW:,} in stacks with a short k")


class CellsFigures(NamedTuple):
    """What times depend on besides sizes: a kind of elements on a card."""

    threads: int  # that a card holds at once
    size: int  # bytes of an element
    rate: float  # steps a second, and of one semiring's
    own_rate: float
    bandwidth: float  # bytes a second that are reached
    start: float  # seconds: of a launch,
    start_stack: float  # of a stack's,
    step: float  # of a step of k
    row_steps: float  # of a load of M where each thread of a warp reads another row, in steps


def takes_small(p: Problem, f: CellsFigures) -> bool:
    return is_small(p)


def given_of_cells(p: Problem, f: CellsFigures) -> Row:
    """Seconds: of a launch; of its latency, steps, bytes, and uncoalesced loads of M, where they are the bottleneck."""
    waves = rounded_up(max(1.0, p.members * threads_of_a_member(p) / f.threads))
    latency, scattered = p.k * f.step * max(1.0, f.size / 4) * waves, 0.0
    if p.n <= FEW_COLUMNS < p.m and abs(p.layout_m.col) == 1 and p.k * f.size >= LONG_LINE:
        scattered = p.members * p.m * p.k * f.row_steps / f.rate
    start = f.start_stack if p.members > 1 else f.start
    return start, latency, p.steps / f.own_rate, p.least_bytes / f.bandwidth, scattered


def cells_seconds(row: Row, given: Row) -> float:
    return given[0] + max(given[1], given[2], given[3], given[4])


CELLS, ONE_ROW = Formula(cells_seconds, given_of_cells, takes_small), Rows([(0.0,)])


class Cells(Tabled):
    name = "cells"
    kernels: ClassVar = {
        name: "a thread computes a few cells of P from the caches: small products, and stacks of thousands of them"
    }
    can = Capabilities(
        one_dtype=True, most_k=LONGEST, problem=(SMALL,), stores_anywhere=True,
        precisions=("ieee", "high"),  # float32 is added up one after the other, k being small
    )  # fmt: skip

    def searched(self, problem: Problem, machine: Machine) -> list[Searched]:
        p, f, rate = problem, coefficients("cells"), machine.step_rate("float32")
        own, row_steps = (
            rate * f.rate / relative_slots(p.algebra, machine),
            f.row_steps[2 if p.dtype.itemsize <= 2 else 1],
        )
        figures = CellsFigures(
            machine.units * machine.resident_threads, p.dtype.itemsize, rate, own, f.reading * machine.bandwidth,
            f.start, f.start_stack, f.step, row_steps,
        )  # fmt: skip
        return [Searched(CELLS, ONE_ROW, figures, numbered((None,)))]

    def configurations(self, problem: Problem, machine: Machine) -> tuple[None, ...]:
        return ()

    def geometry(self, problem: Problem, machine: Machine, config: None) -> Geometry:
        """A block as neighbouring cells of P."""
        cells = THREADS * cut(problem).width
        cols = min(problem.n, cells)
        return Geometry((THREADS, 1), max(1, cells // max(1, cols)), max(1, cols), 1, 0)

    def tiles(self, problem: Problem, machine: Machine, config: None) -> str:
        threads = problem.members * threads_of_a_member(problem)
        return f"{threads:,} threads of {cut(problem).width} cells each"

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        return (render_cells.key(problem.algebra, *one) for one in CUTS)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
        """M, N and P have any strides; the threads of consecutive members are numbered through."""
        p, matrices, made = plan.problem, (given.M, given.N, given.P), []
        source, each = render_cells.key(p.algebra, *cut(p)), threads_of_a_member(p)
        runs = Runs(p.stack, [x.layout.stack for x in matrices], MOST_BLOCKS)
        by_columns = p.m > 1 and abs(p.layout_p.row) < abs(p.layout_p.col)  # neighbouring threads go down columns of P
        for at, count in runs.starts():
            arguments = (
                *map(Placed.on, matrices, at), *(ctypes.c_int(extent) for extent in (p.m, p.k, p.n)),
                *strides(given), *map(ctypes.c_longlong, (*runs.steps, count * each)), ctypes.c_int(by_columns),
                ctypes.c_int(p.accumulate),
            )  # fmt: skip
            grid = (math.ceil(count * each / THREADS),)
            made.append(Launch.of(source, self.name, grid, (THREADS,), arguments))
        return made


FIGURES: Numbers = coefficients("rank_k")
DEPTHS = (4, 8, 16, 32, 64)  # of k
MOST_HELD = 64  # elements of N that a thread has in registers
COLUMNS = (1, 2, 4)
ROWS = (32, 64, 128, 256)  # of a block


def strips_of(n: int, columns: int) -> int:
    """Of columns, each a block's."""
    return -(-n // (THREADS * columns))


def wide_of(n: int, columns: int) -> int:
    """Threads side by side in a strip."""
    strip = -(-n // strips_of(n, columns))
    wide = -(-strip // columns)
    return wide if wide < 128 else min(THREADS, -(-wide // 32) * 32)


def threads_of(wide: int) -> int:
    """Of a block: whole rows of its strip, whole warps."""
    return -(-(THREADS // wide * wide) // 32) * 32


@dataclass(frozen=True)
class RankKConfig:
    """A thread makes so many columns, a block so many rows."""

    deep: int
    columns: int
    rows: int

    def spec(self) -> str:
        return f"k{self.deep} {self.columns} columns {self.rows} rows"

    @property
    def shared_bytes(self) -> int:
        return self.rows * (self.deep + 4) * SIZE


def expected(row: Row, given: Row) -> float:
    """Blocks one after the other, each as long as one alone takes or as all of a multiprocessor's take to issue what
    they do; or the bytes; and what a launch takes anyway."""
    m, k, n, members, units = int(given[0]), int(given[1]), int(given[2]), int(given[3]), int(given[4])
    deep, columns, rows = int(row[0]), int(row[1]), int(row[2])
    if not row[3] < k <= deep or rows > given[5] or (columns > 1 and n < 32 * columns):
        return INFINITE
    wide = wide_of(n, columns)
    many = threads_of(wide)
    height = min(rows, m)
    passes = -(-height // max(1, many // wide))
    blocks = members * strips_of(n, columns) * -(-m // rows)
    held = min(int(given[6]) // many, 65536 // (many * (32 + deep * columns)))
    held = max(1, min(held, UNIT_SHARED // (rows * (deep + 4) * SIZE + 1024)))
    each = passes * (columns * (deep * given[7] + FIGURES.cell) + deep / 4 + 4)
    each += FIGURES.load * (deep * columns / 2 + height * k / many)
    alone = -(-blocks // (units * held)) * (FIGURES.block + FIGURES.next_row * passes)
    return FIGURES.start + max(alone, max(-(-blocks // units) * many * each / given[8] + FIGURES.block, given[9]))


@lru_cache(maxsize=1)
def _table() -> tuple[tuple[RankKConfig, ...], Rows]:
    """The configurations, and of each the k that is too short for it."""
    cuts = [
        (deep, columns, rows, shorter)
        for shorter, deep in zip((0, *DEPTHS), DEPTHS, strict=False)
        for columns in COLUMNS
        if deep * columns <= MOST_HELD
        for rows in ROWS
    ]
    return tuple(RankKConfig(*cut[:3]) for cut in cuts), Rows(cuts)


class Figures(NamedTuple):
    """What times depend on besides sizes: a kind of elements on a card."""

    units: int  # multiprocessors,
    threads: int  # that each of them holds
    slots: float  # of a step, in those of an addition and a minimum
    issue: float  # steps of a multiprocessor, a second
    bandwidth: float  # bytes a second
    reading: float  # factor of the time that the bandwidth makes


def given_of(p: Problem, f: Figures) -> Row:
    highest = 32 if p.m <= 32 else 64 if p.m <= 64 else 128 if p.m <= 128 else 256
    passing = f.reading * p.least_bytes / f.bandwidth
    return p.m, p.k, p.n, p.members, f.units, highest, f.threads, f.slots, f.issue, passing


def has_rows(p: Problem) -> bool:
    return min(p.m, p.n) > 0 and (p.m == 1 or abs(p.layout_p.row) >= abs(p.layout_p.col))


def takes(p: Problem, f: Figures) -> bool:
    return has_rows(p)


EXPECTED = Formula(expected, given_of, takes)
ROWS_OF_P = Condition(has_rows, "stores rows of a P that is not empty")


class RankK(Tabled):
    """Fitted to 534 configurations of 161 random stacks (rms 16 % near the best; the choice 3 % above it)."""

    name = "rank_k"
    kernels: ClassVar = {name: "a short k: a thread keeps columns of N in registers and computes row after row of P"}
    can = Capabilities(
        one_dtype=True, partial_bytes=(SIZE, SIZE), least_k=1, most_k=DEPTHS[-1], stores_anywhere=True,
        problem=(ROWS_OF_P,), precisions=("ieee", "high"),  # float32 is added up one after the other, k being short
    )  # fmt: skip

    def searched(self, problem: Problem, machine: Machine) -> list[Searched]:
        every, rows = _table()
        issue = machine.step_rate("float32") / machine.units * FIGURES.share  # of threads, a second
        slots = relative_slots(problem.algebra, machine)
        figures = Figures(machine.units, machine.resident_threads, slots, issue, machine.bandwidth, FIGURES.reading)
        return [Searched(EXPECTED, rows, figures, numbered(every))]

    def geometry(self, problem: Problem, machine: Machine, config: RankKConfig) -> Geometry:
        wide = wide_of(problem.n, config.columns)
        block, cols = (threads_of(wide), 1), min(problem.n, wide * config.columns)
        return Geometry(block, config.rows, cols, config.deep, config.shared_bytes)

    def tiles(self, problem: Problem, machine: Machine, config: RankKConfig) -> str:
        return f"blocks of {config.rows} rows, {config.columns} columns a thread"

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        for deep, columns in product(DEPTHS, COLUMNS):
            if deep * columns <= MOST_HELD:
                yield render_rank_k.key(problem.algebra, deep, columns)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> list[Launch]:
        """M and N have any strides, P too as long as its columns are closer than its rows."""
        p, config = plan.problem, plan.config
        source = render_rank_k.key(p.algebra, config.deep, config.columns)
        strips, wide = strips_of(p.n, config.columns), wide_of(p.n, config.columns)
        own = (
            *strides(given), *(ctypes.c_int(x) for x in (config.rows, wide, strips)),
            ctypes.c_uint(-(-(2**32) // p.k) % 2**32), ctypes.c_int(along_k(given)[0]), ctypes.c_int(p.accumulate),
        )  # fmt: skip
        blocks = math.ceil(p.m / config.rows) * strips
        return stack_launches(
            p, (given.M, given.N, given.P), source, self.name, blocks, threads_of(wide), own, config.shared_bytes
        )
