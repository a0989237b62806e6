"""Stacks of products with a few rows each, as the planner sees them: how many columns a block sweeps over."""

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

KERNEL = "swept"
IDEA = "few rows: a block sweeps once over lines of N as they lie, however short, and keeps all rows' sums"
HELD = (2, 4, 8)  # rows
ACROSS = (32, 64, 128, 256)  # columns of a block where there are more
THREADS = 256
STAGE = 512  # of k
AT_ONCE = 8
LONGEST = 4096  # k that it is offered for: a thread adds up all of it in sequence where lines are long
SIZE = 4  # bytes of a partial sum


class Figures(NamedTuple):
    """Seconds, but for shares: fitted to 205 ways of 85 random stacks on an H200 (rms 16 % near the best; the choice
    3 % above the best of them in the mean)."""

    start: float  # of a launch
    block: float  # of a block, beside its loads
    stage: float  # until 512 of k of M are there
    trip: float  # of eight loads of a thread
    share: float  # of the instructions that a multiprocessor could issue
    load: float  # instructions for a load, beside its steps
    reading: float  # over the bandwidth's own time


FIGURES = Figures(0.063e-6, 2.3e-6, 0.051e-6, 0.841e-6, 0.324, 11.8, 1.34)


@dataclass(frozen=True)
class SweptConfig:
    """Rows that registers hold, and columns of a block."""

    few: int
    across: int

    def words(self) -> str:
        return f"{self.few} rows {self.across} columns"

    def spec(self) -> str:
        return self.words()


def configs(problem: Problem) -> Iterator[SweptConfig]:
    few, last = next(h for h in HELD if problem.m <= h), 0
    for across in ACROSS:
        wide = min(across, problem.n)
        if wide > last:
            last = wide
            yield SweptConfig(few, wide)


def threads(config: SweptConfig) -> int:
    """Of a block: whole lines of its strip, whole warps."""
    return math.ceil(THREADS // config.across * config.across / 32) * 32


def seconds(config: SweptConfig, problem: Problem, machine: Machine) -> float:
    """Blocks one after the other, each as long as one alone takes or as all of a multiprocessor's take to issue what
    they do; or the bytes; and what a launch takes anyway."""
    p, f, many = problem, FIGURES, threads(config)
    strips, at_once = math.ceil(p.n / config.across), max(1, many // config.across)
    blocks, resident = p.members * strips, machine.resident_threads // many
    loads = math.ceil(p.k / at_once)
    alone = f.block + f.stage * math.ceil(p.k / STAGE) + f.trip * math.ceil(loads / AT_ONCE)
    slots = max(1.0, step_slots(p.algebra, machine) / 2)
    each = loads * (config.few * slots + f.load) + p.k / many * config.few * f.load
    issue = machine.step_rate("float32") / machine.units * f.share  # of threads, a second
    work = math.ceil(blocks / machine.units) * many * each / issue + f.block
    memory = f.reading * p.least_bytes / machine.bandwidth
    waves = math.ceil(blocks / (machine.units * resident))
    return f.start + max(waves * alone, work, memory)


@lru_cache(maxsize=64)
def best_config(problem: Problem, machine: Machine) -> tuple[float, SweptConfig]:
    timed = ((seconds(config, problem, machine), config) for config in configs(problem))
    return min(timed, key=itemgetter(0))


def geometry(config: SweptConfig) -> Geometry:
    return Geometry((threads(config), 1), config.few, config.across, STAGE, STAGE * config.few * SIZE)
