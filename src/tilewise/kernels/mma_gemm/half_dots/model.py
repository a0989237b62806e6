"""Few rows or columns of halves whose long operand has lines along k that start anywhere, as the planner sees them."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from tilewise.core.machine import Machine
from tilewise.core.problem import Problem
from tilewise.kernels.bounds import Bound
from tilewise.kernels.mma_gemm.half_dots import seconds as figures
from tilewise.kernels.mma_gemm.half_dots.configs import (
    CLUSTERS,
    MOST_FEW,
    SLICES,
    TILES,
    DotsConfig,
    DotsTile,
    steps_of,
)
from tilewise.kernels.mma_gemm.half_dots.seconds import expected
from tilewise.kernels.shared.layouts import along_k, contiguous_lines
from tilewise.kernels.shared.residency import padded, rooms
from tilewise.system.machine_code import INFINITE, Row, Rows

KERNEL = "half_dots"
IDEA = "few rows or columns of halves on tensor cores: lines along k that start anywhere are read once, by whole words"
CLASSES = 8  # of lines that start equally far behind a 16-byte boundary


class Side(NamedTuple):
    """The few lines and the long operand of a product taken so."""

    swapped: bool
    few: int
    length: int
    classes: int
    beside: bool  # the few lines lie side by side


def sides(p: Problem) -> list[Side]:
    """The ways round that it can be taken."""
    of_n, of_m = (p.layout_n, p.k, p.n, "N"), (p.layout_m, p.m, p.k, "M")
    made = []
    for swapped, few, length, k_apart, (layout, rows, cols, name) in (
        (False, p.m, p.n, p.layout_m.col, of_n),
        (True, p.n, p.m, p.layout_n.row, of_m),
    ):
        lines = contiguous_lines(layout, rows, cols)
        if 0 < few <= MOST_FEW and length and p.k and lines and along_k(layout, rows, cols, name):
            made.append(Side(swapped, few, length, CLASSES // math.gcd(CLASSES, lines[2]), k_apart != 1))
    return made


@lru_cache(maxsize=64)
def _table(tile: DotsTile, classes: int, swapped: bool, units: int) -> tuple[tuple[DotsConfig, ...], Rows]:
    """The configs, and of each: the lines of the long operand that a block has, slices of k, blocks of a cluster;
    seconds of a step alone, and of the sums of a block; rooms."""
    configs, rows = [], []
    for slices, cluster in product(SLICES, CLUSTERS):
        config, room = DotsConfig(tile, swapped, classes, slices, cluster), rooms(units, cluster, tile.resident)
        cells = tile.width * config.height
        sums = figures.CELL_SECONDS * cells / cluster + (figures.SLICE_SECONDS * cells * slices if slices > 1 else 0.0)
        step = figures.STEP_SECONDS + figures.STEP_LINE_SECONDS * tile.width
        configs.append(config)
        rows.append((config.height, slices, cluster, step, sums, *padded(room)))
    return tuple(configs), Rows(rows)


def _configs(side: Side, machine: Machine) -> tuple[tuple[DotsConfig, ...], Rows]:
    tile = next(tile for tile in TILES if tile.width >= side.few)
    return _table(tile, side.classes, side.swapped, machine.units)


def _given(p: Problem, side: Side, machine: Machine) -> Row:
    """What all rows share."""
    brought = (figures.BESIDE_SECONDS if side.beside else figures.ALONG_SECONDS) * side.few * p.k
    passing = p.least_bytes / (machine.bandwidth * figures.MEMORY_SHARE)
    return side.length, p.k, steps_of(p.k), side.classes, brought, passing**4


def configs(p: Problem, machine: Machine) -> list[DotsConfig]:
    made = []
    for side in sides(p):
        given, (every, rows) = _given(p, side, machine), _configs(side, machine)
        made += [config for config, row in zip(every, rows.rows, strict=True) if expected(row, given) < INFINITE]
    return made


def seconds(config: DotsConfig, problem: Problem, machine: Machine) -> float:
    side = next(side for side in sides(problem) if side.swapped == config.swapped)
    every, rows = _configs(side, machine)
    return figures.ONE_LAUNCH * expected(rows.rows[every.index(config)], _given(problem, side, machine))


def bounds(some: Problem, machine: Machine) -> tuple[Bound, ...]:
    byte = 1 / (machine.bandwidth * figures.MEMORY_SHARE)
    return (Bound(figures.START_SECONDS, block=figures.TILE_SECONDS, byte=byte, share=0.999 * figures.ONE_LAUNCH),)


def best_config(problem: Problem, machine: Machine) -> tuple[float, DotsConfig]:
    found = []
    for side in sides(problem):
        every, rows = _configs(side, machine)
        number, soonest = expected.least(rows, _given(problem, side, machine), problem.largest)
        found.append((figures.ONE_LAUNCH * soonest, every[number]))
    return min(found, key=lambda one: one[0])
