"""Stacks of products with a short k, as the planner sees them: columns of a thread, rows of a block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry
from tilewise.core.problem import Problem
from tilewise.kernels.plain.configs import step_slots

KERNEL = "rank_k"
IDEA = "a short k: a thread keeps columns of N in registers and makes row after row of P"
DEPTHS = (4, 8, 16, 32, 64)  # of k
MOST_HELD = 64  # elements of N that a thread has in registers
COLUMNS = (1, 2, 4)
ROWS = (32, 64, 128, 256)  # of a block
THREADS = 256
UNIT_SHARED = 227 * 1024
SIZE = 4  # bytes of a partial sum


class Figures(NamedTuple):
    """Seconds, but for shares: fitted to 534 ways of 161 random stacks on an H200 (rms 16 % near the best; the choice
    3 % above the best of them in the mean)."""

    start: float  # of a launch
    block: float  # until a block has its operands
    pass_: float  # from a thread's row to the next, where nothing hides that
    share: float  # of the instructions that a multiprocessor could issue
    load: float  # instructions for an element of M or N
    cell: float  # and for a cell, beside its steps
    reading: float  # over the bandwidth's own time


FIGURES = Figures(0.073e-6, 2.03e-6, 81e-9, 0.581, 36.4, 16.8, 1.75)


@dataclass(frozen=True)
class RankKWay:
    """A thread makes so many columns, a block so many rows."""

    deep: int
    columns: int
    rows: int

    def words(self) -> str:
        return f"k{self.deep} {self.columns} columns {self.rows} rows"

    def spec(self) -> str:
        return self.words()


def across(problem: Problem, config: RankKWay) -> tuple[int, int]:
    """(strips of columns, threads side by side in one of them)."""
    strips = math.ceil(problem.n / (THREADS * config.columns))
    wide = math.ceil(math.ceil(problem.n / strips) / config.columns)
    return strips, wide if wide < 128 else min(THREADS, math.ceil(wide / 32) * 32)


def threads(problem: Problem, config: RankKWay) -> int:
    """Of a block: whole rows of its strip, whole warps."""
    wide = across(problem, config)[1]
    return math.ceil(THREADS // wide * wide / 32) * 32


def shared_bytes(config: RankKWay) -> int:
    return config.rows * (config.deep + 4) * SIZE


def configs(problem: Problem) -> Iterator[RankKWay]:
    deep = next(d for d in DEPTHS if problem.k <= d)
    highest = next((rows for rows in ROWS if rows >= problem.m), ROWS[-1])
    for columns in COLUMNS:
        if deep * columns <= MOST_HELD and (columns == 1 or problem.n >= 32 * columns):
            yield from (RankKWay(deep, columns, rows) for rows in ROWS if rows <= highest)


def seconds(config: RankKWay, problem: Problem, machine: Machine) -> float:
    """Blocks one after the other, each as long as one alone takes or as all of a multiprocessor's take to issue what
    they do; or the bytes; and what a launch takes anyway."""
    p, f, many = problem, FIGURES, threads(problem, config)
    strips, wide = across(p, config)
    height, at_once = min(config.rows, p.m), max(1, many // wide)
    blocks = p.members * strips * math.ceil(p.m / config.rows)
    registers = 65536 // (many * (32 + config.deep * config.columns))
    held = max(1, min(machine.resident_threads // many, registers, UNIT_SHARED // (shared_bytes(config) + 1024)))
    passes = math.ceil(height / at_once)
    slots = max(1.0, step_slots(p.algebra, machine) / 2)
    each = passes * (config.columns * (config.deep * slots + f.cell) + config.deep / 4 + 4)
    each += f.load * (config.deep * config.columns / 2 + height * p.k / many)
    issue = machine.step_rate("float32") / machine.units * f.share  # of threads, a second
    busiest = math.ceil(blocks / machine.units)
    alone = math.ceil(blocks / (machine.units * held)) * (f.block + f.pass_ * passes)
    return f.start + max(alone, busiest * many * each / issue + f.block, f.reading * p.least_bytes / machine.bandwidth)


@lru_cache(maxsize=64)
def best_config(problem: Problem, machine: Machine) -> tuple[float, RankKWay]:
    timed = ((seconds(config, problem, machine), config) for config in configs(problem))
    return min(timed, key=itemgetter(0))


def geometry(problem: Problem, config: RankKWay) -> Geometry:
    cols = across(problem, config)[1] * config.columns
    return Geometry((threads(problem, config), 1), config.rows, min(problem.n, cols), config.deep, shared_bytes(config))
