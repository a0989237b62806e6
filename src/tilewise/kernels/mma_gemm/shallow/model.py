"""Products of a short k as the planner sees them: how many columns a warp makes, how many blocks share a strip of P."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tilewise.algebra.dtypes import DType
from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry
from tilewise.core.problem import Problem
from tilewise.kernels.bounds import Bound
from tilewise.kernels.by_configs import Table
from tilewise.kernels.capabilities import Condition
from tilewise.kernels.coefficients import coefficients
from tilewise.kernels.shared.residency import UNIT_SHARED
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

KERNEL = "shallow"
IDEA = "a short k: columns of N stay in shared memory, each warp makes rows of P on its own; lines start anywhere"
DEEPEST = 128  # k
ROWS = 16  # of P, that a warp makes at a time: those of a fragment
MOST_WARPS = 8
RESIDENT = 2  # blocks of MOST_WARPS that share a multiprocessor,
OWN_SHARED = 1024  # bytes of shared memory that each block has beside its own
MOST_SHARED = 113 * 1024  # of each of two
PAD_BYTES = {2: 16, 4: 16, 8: 32}  # behind a line, so that fragments lie in different banks
ROUNDED = "unsigned word = __float_as_uint(x); round_word(word); return __uint_as_float(word);"
COLUMNS = {2: (128, 64, 32), 4: (128, 64, 32), 8: (64, 32)}
WAVES = (1, 2, 4)  # of blocks: more of them balance better, and load the columns of N more often

MEMORY_SHARE = 0.8  # of the bandwidth


@dataclass(frozen=True)
class ShallowConfig:
    """Warps make `cols` of P; `blocks` of `warps` share a strip of so many columns."""

    cols: int
    warps: int
    blocks: int

    def words(self) -> str:
        return f"16x{self.cols} w{self.warps} b{self.blocks}"


def step_of(dtype: DType) -> int:
    """k of a product of fragments: eight words."""
    return 16 if dtype.itemsize == 2 else 8


def on_tensor_cores(problem: Problem) -> bool:
    """Plain cores multiply what tensor cores would round."""
    return problem.dtype.name != "float32" or problem.precision == "tf32"


def pitch(problem: Problem) -> int:
    """Elements from line to line in shared memory."""
    size, step = problem.dtype.itemsize, step_of(problem.dtype)
    return steps_of(problem) * step + PAD_BYTES[size] // size


def steps_of(problem: Problem) -> int:
    return max(1, math.ceil(problem.k / step_of(problem.dtype)))


def shared_bytes(problem: Problem, cols: int, warps: int) -> int:
    staged = 8 * (cols + 8) if on_tensor_cores(problem) else 0
    return ((cols + warps * ROWS) * pitch(problem) + warps * staged) * problem.dtype.itemsize


def strips_of(problem: Problem, cols: int) -> int:
    return math.ceil(problem.n / cols)


def warps_of(groups: int, four: float, eight: float) -> int:
    """Warps of a block: as many as their shared memory (of four, of eight of them) allows, and as have rows; 0 where it
    does not."""
    warps = 8 if eight <= MOST_SHARED else 4 if four <= MOST_SHARED else 0
    return min(warps, max(1, groups))


def blocks_of(most: int, waves: int, units: int, strips: int) -> int:
    """Blocks of a strip: no fewer rows for some than for others."""
    blocks = max(1, min(most, waves * RESIDENT * units // max(1, strips)))
    return -(-most // -(-most // blocks))


def held_of(warps: int, shared: int) -> int:
    """Blocks that share a multiprocessor: as many as its registers and its shared memory have room for."""
    return max(1, min(RESIDENT * MOST_WARPS // warps, UNIT_SHARED // (shared + OWN_SHARED)))


@Formula
def expected(row: Row, given: Row) -> float:
    """A warp's rows one after the other, and the work of all warps of a multiprocessor; or the bytes."""
    m, n, members, units = int(given[0]), int(given[1]), int(given[2]), int(given[3])
    cols, pitched, deep = int(row[0]), given[4], given[5]
    staged = given[6] * (cols + 8)
    groups, strips = -(-m // ROWS), -(-n // cols) * members
    four = (cols + 4 * ROWS) * pitched + 4 * staged
    warps = warps_of(groups, four, (cols + 8 * ROWS) * pitched + 8 * staged)
    if warps == 0:
        return INFINITE
    blocks = blocks_of(-(-max(1, groups) // warps), int(row[1]), units, strips)
    held = held_of(warps, int((cols + warps * ROWS) * pitched + warps * staged))
    strips = -(-n // cols) * max(1, members)
    rounds, waves = -(-groups // (blocks * warps)), -(-strips * blocks // (held * units))
    wide = cols / 128
    alone = waves * (given[9] * deep * wide + given[10] * rounds)
    each = given[11] * deep + given[12] * deep * wide + given[13] * wide
    work = -(-strips * groups // units) * each
    return max(given[8] + alone + work, given[7])


@lru_cache(maxsize=8)
def _table(size: int) -> Rows:
    """Columns of a strip, and waves of blocks."""
    return Rows([(cols, waves) for cols in COLUMNS[size] for waves in WAVES])


def _given(p: Problem, machine: Machine) -> Row:
    size, tensor = p.dtype.itemsize, on_tensor_cores(p)
    return (
        p.m, p.n, p.members, machine.units, pitch(p) * size, steps_of(p) * step_of(p.dtype) / 32,
        8 * size if tensor else 0, p.least_bytes / (MEMORY_SHARE * machine.bandwidth),
        *(getattr(figures_of(p), name) for name in FIELDS),
    )  # fmt: skip


def _config(row: Row, p: Problem, machine: Machine) -> ShallowConfig:
    """What a row stands for."""
    cols, waves, groups = int(row[0]), int(row[1]), math.ceil(p.m / ROWS)
    warps = warps_of(groups, shared_bytes(p, cols, 4), shared_bytes(p, cols, 8))
    most = -(-max(1, groups) // warps)
    return ShallowConfig(cols, warps, blocks_of(most, waves, machine.units, strips_of(p, cols) * p.members))


def _fits(p: Problem) -> bool:
    return any(shared_bytes(p, cols, MOST_WARPS // 2) <= MOST_SHARED for cols in COLUMNS[p.dtype.itemsize])


def _is_near(p: Problem) -> bool:
    return all(abs(stride) * DEEPEST < 2**31 for x in (p.layout_m, p.layout_n) for stride in (x.row, x.col))


FITS = Condition(_fits, "keeps all of k in shared memory")
NEAR = Condition(_is_near, f"takes rows and columns less than {2**31 // DEEPEST:,} elements apart")


FIELDS = "start", "panel", "rows", "loads", "products", "cells"  # for 128 columns and 32 of k


def figures_of(problem: Problem) -> Any:
    rounded = problem.precision == "tf32" and problem.dtype.name == "float32"
    kind = "half" if problem.dtype.itemsize == 2 else "tf32" if rounded else problem.dtype.name
    return coefficients(f"shallow {kind}")


def tables(problem: Problem, machine: Machine) -> list[Table]:
    """Columns that fit, with as many warps as share them, for one wave of blocks or more."""
    rows = _table(problem.dtype.itemsize)
    return [
        Table(expected, rows, _given(problem, machine), lambda number: _config(rows.rows[number], problem, machine))
    ]


def geometry(problem: Problem, config: ShallowConfig) -> Geometry:
    shared = shared_bytes(problem, config.cols, config.warps)
    return Geometry((32 * config.warps, 1), ROWS * config.warps, config.cols, pitch(problem), shared)


def bounds(some: Problem, machine: Machine) -> tuple[Bound, ...]:
    """A launch with a warp's first rows, or the bytes."""
    figures = figures_of(some)
    return (Bound(block=figures.start + figures.rows, byte=1 / (MEMORY_SHARE * machine.bandwidth)),)
