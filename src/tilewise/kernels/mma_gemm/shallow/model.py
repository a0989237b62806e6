"""Products of a short k as the planner sees them: how many columns a warp makes, how many blocks share a strip of P."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from tilewise.algebra.dtypes import DType
from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry
from tilewise.core.problem import Problem
from tilewise.kernels.capabilities import Condition

KERNEL = "shallow"
IDEA = "a short k: columns of N stay in shared memory, each warp makes rows of P on its own; lines start anywhere"
DEEPEST = 128  # k
ROWS = 16  # of P, that a warp makes at a time: those of a fragment
MOST_WARPS = 8
RESIDENT = 2  # blocks of MOST_WARPS that share a multiprocessor,
UNIT_SHARED = 227 * 1024  # bytes of shared memory that it has,
OWN_SHARED = 1024  # and of them that each block has beside its own
MOST_SHARED = 113 * 1024  # of each of two
PAD_BYTES = {2: 16, 4: 16, 8: 32}  # behind a line, so that fragments lie in different banks
ROUNDED = "unsigned word = __float_as_uint(x); round_word(word); return __uint_as_float(word);"
COLUMNS = {2: (128, 64, 32), 4: (128, 64, 32), 8: (64, 32)}
WAVES = (1, 2, 4)  # of blocks: more of them balance better, and load the columns of N more often

MEMORY_SHARE = 0.8  # of the bandwidth


class Figures(NamedTuple):
    """Seconds, for 128 columns and 32 of k: fitted on an H200 to 1,220 ways of random products and stacks (half of them
    10 % off or less; the choice takes 2 to 4 % longer than the best way in the mean)."""

    start: float  # of a launch, its first loads and its last stores
    panel: float  # until a block has its columns of N
    rows: float  # from a warp's rows of M to its rows of P, where nothing hides that
    loads: float  # of a multiprocessor, for those rows of M,
    products: float  # for their products,
    cells: float  # and for their cells


FIGURES = {
    "half": Figures(2.05e-6, 2.51e-6, 0.953e-6, 0.064e-6, 0.0, 0.241e-6),
    "tf32": Figures(1.51e-6, 5.85e-6, 1.3e-6, 0.061e-6, 0.117e-6, 0.197e-6),
    "float32": Figures(1.25e-6, 6.78e-6, 0.702e-6, 0.094e-6, 0.323e-6, 0.164e-6),
    "float64": Figures(0.945e-6, 2.56e-6, 2.49e-6, 0.031e-6, 0.405e-6, 0.119e-6),
}


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


def configs(problem: Problem, machine: Machine) -> Iterator[ShallowConfig]:
    """Of the columns that fit, with as many warps as share them, for one wave of blocks or more."""
    p, groups = problem, max(1, math.ceil(problem.m / ROWS))
    for cols in COLUMNS[p.dtype.itemsize]:
        warps = next((w for w in (MOST_WARPS, MOST_WARPS // 2) if shared_bytes(p, cols, w) <= MOST_SHARED), 0)
        if not warps:
            continue
        warps, strips = min(warps, groups), max(1, strips_of(p, cols) * p.members)
        most, made = math.ceil(groups / warps), set()
        for waves in WAVES:
            blocks = max(1, min(most, waves * RESIDENT * machine.units // strips))
            blocks = math.ceil(most / math.ceil(most / blocks))  # no fewer rows for some than for others
            if blocks not in made:
                made.add(blocks)
                yield ShallowConfig(cols, warps, blocks)


def _fits(p: Problem) -> bool:
    return any(shared_bytes(p, cols, MOST_WARPS // 2) <= MOST_SHARED for cols in COLUMNS[p.dtype.itemsize])


def _is_near(p: Problem) -> bool:
    return all(abs(stride) * DEEPEST < 2**31 for x in (p.layout_m, p.layout_n) for stride in (x.row, x.col))


FITS = Condition(_fits, "keeps all of k in shared memory")
NEAR = Condition(_is_near, f"takes rows and columns less than {2**31 // DEEPEST:,} elements apart")


def held(problem: Problem, config: ShallowConfig) -> int:
    """Blocks that share a multiprocessor: as many as its registers and its shared memory have room for."""
    shared = shared_bytes(problem, config.cols, config.warps) + OWN_SHARED
    return max(1, min(RESIDENT * MOST_WARPS // config.warps, UNIT_SHARED // shared))


def figures_of(problem: Problem) -> Figures:
    if problem.dtype.itemsize == 2:
        return FIGURES["half"]
    return FIGURES["tf32" if problem.precision == "tf32" and problem.dtype.name == "float32" else problem.dtype.name]


def seconds(config: ShallowConfig, problem: Problem, machine: Machine) -> float:
    """A warp's rows one after the other, and the work of all warps of a multiprocessor; or the bytes."""
    p, figures, groups = problem, figures_of(problem), math.ceil(problem.m / ROWS)
    strips = strips_of(p, config.cols) * max(1, p.members)
    rounds = math.ceil(groups / (config.blocks * config.warps))
    waves = math.ceil(strips * config.blocks / (held(p, config) * machine.units))
    deep, wide = steps_of(p) * step_of(p.dtype) / 32, config.cols / 128
    alone = waves * (figures.panel * deep * wide + figures.rows * rounds)
    each = figures.loads * deep + figures.products * deep * wide + figures.cells * wide
    work = math.ceil(strips * groups / machine.units) * each
    return max(figures.start + alone + work, p.least_bytes / (MEMORY_SHARE * machine.bandwidth))


@lru_cache(maxsize=64)
def best_config(problem: Problem, machine: Machine) -> tuple[float, ShallowConfig]:
    timed = ((seconds(config, problem, machine), config) for config in configs(problem, machine))
    return min(timed, key=itemgetter(0))


def geometry(problem: Problem, config: ShallowConfig) -> Geometry:
    shared = shared_bytes(problem, config.cols, config.warps)
    return Geometry((32 * config.warps, 1), ROWS * config.warps, config.cols, pitch(problem), shared)


def least_seconds(problem: Problem, machine: Machine) -> float:
    """A launch with a warp's first rows, or the bytes."""
    figures = figures_of(problem)
    return max(figures.start + figures.rows, problem.least_bytes / (MEMORY_SHARE * machine.bandwidth))
