"""Cost model of `half_dots`: few rows or columns of halves, the long operand contiguous along k, of any alignment."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import gcd, sqrt
from typing import NamedTuple

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry
from tilewise.core.problem import Problem
from tilewise.kernels.capabilities import Condition
from tilewise.kernels.coefficients import Numbers, coefficients
from tilewise.kernels.family import Searched
from tilewise.kernels.shared.layouts import along_columns, has_lines, lead_of
from tilewise.kernels.shared.residency import in_waves, padded, rooms
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

KERNEL = "half_dots"
IDEA = "few rows or columns of halves on tensor cores: the long operand, contiguous along k, is read once by 16 bytes"
CLASSES = 8  # of lines with the same misalignment from 16 bytes
WARPS, LINES, STEP = 8, 16, 32  # warps of a block; lines of the long operand a warp; k of a step
SLICES = (1, 2, 4, 8)  # of k, by warps
CLUSTERS = (1, 2, 3, 4, 6, 8)  # blocks
STAGE_BYTES = 72 * 1024  # of the few lines


AHEAD, RESIDENT = 4, 2  # steps of the long operand that warps prefetch; blocks of a multiprocessor
WIDTHS = 8, 16, 32  # few lines of a block, at most; none spills; 64 were the fastest in 4 of 24 products
MOST_FEW = WIDTHS[-1]


@dataclass(frozen=True)
class DotsConfig:
    """Up to `width` few lines a block. `swapped`: P has few columns, and M is the long operand. Every `classes`-th of
    its lines has the same misalignment from 16 bytes. Split-K over `slices` of the warps and over the `cluster` blocks
    of a cluster."""

    width: int
    swapped: bool
    classes: int
    slices: int
    cluster: int = 1

    def spec(self) -> str:
        return f"{self.width}x{self.height} k/{self.slices} c{self.cluster}{' swapped' * self.swapped}"

    @property
    def height(self) -> int:
        """Lines of the long operand a block."""
        return LINES * (WARPS // self.slices)

    def stage(self, k: int) -> int:
        """Steps of the few lines in shared memory: a multiple of what the warps take in a round."""
        each, steps = AHEAD * self.slices, math.ceil(steps_of(k) / self.cluster)
        room = (STAGE_BYTES // (2 * self.width) - 64) // (STEP * each)
        return each * max(1, min(room, math.ceil(steps / each)))

    def shared_bytes(self, k: int) -> int:
        """Of the few lines, or the sums."""
        width, height = self.width, self.height
        few = 2 * width * (math.ceil(self.stage(k) * STEP / 64) * 64 + 32)
        return max(few, 4 * self.slices * (height * (width + 4) if self.swapped else width * (height + 4)))

    def blocks(self, length: int) -> int:
        return math.ceil(math.ceil(length / self.classes) / self.height) * self.classes * self.cluster

    @property
    def geometry(self) -> Geometry:
        sides = (self.height, self.width) if self.swapped else (self.width, self.height)
        return Geometry((32 * WARPS, 1), *sides, STEP, self.shared_bytes(STEP))


def steps_of(k: int) -> int:
    """At most, wherever a line starts."""
    return math.ceil((k + 7) / STEP)


# Fitted to 298 configurations of 54 random products with unaligned lines on an H200 (rms 11 %; the choice takes 1.7 %
# longer than the fastest in the mean).
FIGURES: Numbers = coefficients("half_dots")
WIDTH, FEWER, ROOMS = 5, 6, 7  # where a row has its few lines, those that are too few for it, and rooms


def expected(row: Row, given: Row) -> float:
    """Waves of blocks: each its steps one after the other, or a multiprocessor's words of the long operand, what is
    loaded before them and stored after; beside the bytes. `_table` makes the rows, `_given` what they share."""
    height, slices, cluster = int(row[0]), int(row[1]), int(row[2])
    length, k, steps, classes = int(given[0]), int(given[1]), int(given[2]), int(given[3])
    if slices * cluster > steps or not row[FEWER] < given[6] <= row[WIDTH]:
        return INFINITE
    lines, each = -(-length // classes), -(-steps // cluster)
    tiles = -(-lines // height) * classes
    alone, words = (-(-each // slices) * row[3]) ** 4, 2 * height * k / cluster / FIGURES.unit
    work = in_waves(tiles, row, ROOMS, 1.0, alone, words**4, FIGURES.block, given[4] / cluster + row[4])
    work = FIGURES.start + sqrt(sqrt(work**4 + given[5]))
    return FIGURES.one_launch * (work + (FIGURES.meet + FIGURES.met * cluster if cluster > 1 else 0.0))


class Figures(NamedTuple):
    """What times depend on besides sizes."""

    bandwidth: float  # bytes a second
    swapped: bool  # the few lines are columns of P, and M is the long operand


def is_long(swapped: bool, p: Problem) -> bool:
    """Whether an operand is long, contiguous along k, beside few lines of the other."""
    few, length = p.n if swapped else p.m, p.m if swapped else p.n
    lies = has_lines(p.layout_n, p.k, p.n) and along_columns(p.layout_n, p.k, p.n)
    if swapped:
        lies = has_lines(p.layout_m, p.m, p.k) and not along_columns(p.layout_m, p.m, p.k)
    return 0 < few <= MOST_FEW and length > 0 and p.k > 0 and lies


LONG = Condition(lambda p: is_long(False, p) or is_long(True, p), "reads an operand whose k is contiguous")


def takes(p: Problem, f: Figures) -> bool:
    return is_long(f.swapped, p)


def classes_of(p: Problem, swapped: bool) -> int:
    """Of lines of the long operand with the same misalignment."""
    lead = lead_of(p.layout_m, p.m, p.k) if swapped else lead_of(p.layout_n, p.k, p.n)
    return CLASSES // gcd(CLASSES, lead)


def given_of(p: Problem, f: Figures) -> Row:
    """What all rows share."""
    few, beside = p.m, p.layout_m.col != 1
    if f.swapped:
        few, beside = p.n, p.layout_n.row != 1
    loaded = (FIGURES.element_across if beside else FIGURES.element_along) * few * p.k
    passing = p.least_bytes / (f.bandwidth * FIGURES.memory)
    length, steps = p.m if f.swapped else p.n, -(-(p.k + 7) // STEP)
    return length, p.k, steps, classes_of(p, f.swapped), loaded, passing**4, few


EXPECTED = Formula(expected, given_of, takes)


@lru_cache(maxsize=64)
def _table(units: int) -> tuple[tuple[tuple[int, int, int], ...], Rows]:
    """(width, slices, cluster), and of each: the lines of the long operand that a block has, slices of k, blocks of a
    cluster; seconds of a step alone, and of the sums of a block; few lines, and those that are too few; rooms."""
    places, rows = [], []
    for (fewer, width), slices, cluster in product(zip((0, *WIDTHS), WIDTHS, strict=False), SLICES, CLUSTERS):
        config, room = DotsConfig(width, False, 1, slices, cluster), rooms(units, cluster, RESIDENT)
        cells = width * config.height
        sums = FIGURES.cell * cells / cluster + (FIGURES.cell_slice * cells * slices if slices > 1 else 0.0)
        step = FIGURES.step + FIGURES.step_row * width
        places.append((width, slices, cluster))
        rows.append((config.height, slices, cluster, step, sums, width, fewer, *padded(room)))
    return tuple(places), Rows(rows)


def searched(machine: Machine) -> list[Searched]:
    """N is long, and M is."""
    places, rows = _table(machine.units)

    def config_of(swapped: bool) -> Callable[[int, Problem], DotsConfig]:
        def config(number: int, p: Problem) -> DotsConfig:
            width, slices, cluster = places[number]
            return DotsConfig(width, swapped, classes_of(p, swapped), slices, cluster)

        return config

    return [Searched(EXPECTED, rows, Figures(machine.bandwidth, x), config_of(x)) for x in (False, True)]
