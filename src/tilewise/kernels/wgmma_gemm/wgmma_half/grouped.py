"""How long the tensor-core kernel is expected to take over groups: figures of stacks, sizes known on the card alone."""

from __future__ import annotations

import math
from functools import lru_cache
from math import erf, sqrt
from typing import NamedTuple

from tilewise.core.machine import Machine
from tilewise.core.problem import Problem
from tilewise.kernels.coefficients import Numbers, coefficients
from tilewise.kernels.family import Searched
from tilewise.kernels.shared.groups import expected_tiles
from tilewise.kernels.shared.layouts import BY_CLASSES, DEINTERLEAVED, PACKS, REALIGNS, ROUTES, along_columns
from tilewise.kernels.shared.residency import rounded_up
from tilewise.kernels.wgmma_gemm.wgmma_half import alignment_classes
from tilewise.kernels.wgmma_gemm.wgmma_half.alignment_classes import classes_of, depth_of, sorted_bytes, takes_lines
from tilewise.kernels.wgmma_gemm.wgmma_half.batched import FIGURES as OF_STACKS
from tilewise.kernels.wgmma_gemm.wgmma_half.batched import moving_seconds, phase_seconds, tile_seconds, whole_seconds
from tilewise.kernels.wgmma_gemm.wgmma_half.routes import first_route, lines_touched, moved_bytes
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import (
    DEPTH,
    NARROWED,
    SHIFTED_COLUMNS,
    TILES,
    TensorConfig,
    TensorTile,
    boxes,
    store_of,
)
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

# Fitted beside those of stacks.
FIGURES: Numbers = coefficients("wgmma_half groups")
NARROW = 128  # along k, tiles of more columns store as long as they multiply
HEIGHTS = 128, 192, 64  # of tiles
# What is given of heights; and of operands as they are, or N by classes: phases (0: not so), lines of memory that a
# tile's rows of M and N lie in, seconds that a column's sums are moved between classes, and operands before, and
# whether these are.
DOWN_FROM, FORMS_FROM, EACH_FORM, MOVES = 9, 9 + len(HEIGHTS), 6, 5


def expected(row: Row, given: Row) -> float:
    """Tiles of a multiprocessor one after the other, beside the bytes; then what comes before and after."""
    n, units, by_rows = int(given[0]), given[1], given[2] > 0.0
    tall, wide, cols, by_classes, groups = int(row[0]), int(row[1]), int(row[2]), int(row[3]), row[4]
    at = FORMS_FROM + EACH_FORM * by_classes
    if given[at] == 0.0:
        return INFINITE
    down, across, phases, rows = given[DOWN_FROM + int(row[5])], -(-n // cols), int(given[at]), row[0]
    if by_rows:
        rows = min(rows, 64 * given[3] / down)
    waves, cells = rounded_up(down * across / units), tall * wide
    each = phases * phase_seconds(rows, wide, wide * 1.0, rows * given[at + 1] + wide * given[at + 2], given[4])
    store = store_of(by_classes, given[5], int(row[6]), waves, phases)
    each = tile_seconds(each + given[at + 3] * wide, store, waves, cells)
    rounds = waves * 1.0
    if by_rows:
        rounds = dynamic_rounds(down, across, half_tile(n, wide, cols, given[6]), units, given[7])
        rounds = rounds * (FIGURES.three_slow if groups > 2 else 1.0)
    elif wide > NARROW:
        rounds = rounds * FIGURES.wide_slow
    work = ((rounds * each) ** FIGURES.uneven + given[8] ** FIGURES.uneven) ** (1 / FIGURES.uneven)
    work = work * (1 + FIGURES.idle_slow * (groups - rows / 64)) + OF_STACKS.other_launch  # tiles are listed
    return whole_seconds(work, cells, waves, groups, 1) + given[at + 4]


def half_tile(n: int, wide: int, cols: int, narrowed: float) -> float:
    """What is saved of the last tile of a row where its left half has all columns that are left."""
    rest = n % cols
    if narrowed > 0.0 and wide >= NARROWED and 0 < rest <= wide // 2 - (wide - cols):
        return FIGURES.narrower
    return 0.0


def dynamic_rounds(down: float, across: int, saved: float, units: float, spread: float) -> float:
    """Tiles of a multiprocessor, one after the other, where each draws the next when it is done: whole rounds, where
    there are one or two, a little more of them if sizes that nobody knows make a few tiles more than one fills."""
    wide = max(1, across)
    rounds = down * wide / units
    if rounds > 2:
        return down * (across - saved) / units + 0.5
    unsure, made = FIGURES.unsure * wide * spread / units, 1.0
    for whole in range(1, 4):
        made += 0.5 + 0.5 * erf((rounds - whole) / unsure)
    return made


@lru_cache(maxsize=1)
def _table() -> tuple[tuple[TensorTile, ...], Rows]:
    """The tiles, and of each its rows and columns, the columns of P that it makes, whether N comes by classes, its
    warpgroups, the number of its height, and whether it is a wide one."""
    tiles = [(tile, False) for tile in TILES if tile.together == 1]
    tiles += [(tile, True) for tile in alignment_classes.N_BY_CLASSES]
    rows = [
        (t.rows, t.cols, t.cols - SHIFTED_COLUMNS * apart, apart, t.groups, HEIGHTS.index(t.rows), t.wide)
        for t, apart in tiles
    ]
    return tuple(tile for tile, _ in tiles), Rows(rows)


class Figures(NamedTuple):
    """What times depend on besides sizes: a kind of groups on a card."""

    units: int  # multiprocessors
    bandwidth: float  # bytes a second
    rate: float  # steps a second of a multiprocessor's tensor cores
    by_rows: bool  # groups along rows; else along k
    converted_m: bool  # the operand is of another dtype than the product
    converted_n: bool
    n_by_classes: bool  # lines of N may come by alignment classes


def figures_of(p: Problem, machine: Machine) -> Figures:
    by_rows, rate = p.groups is not None and p.groups.along == "rows", machine.tensor_rate(p.dtype.name) / machine.units
    converted = p.dtype_m != p.dtype, p.dtype_n != p.dtype
    return Figures(
        machine.units, machine.bandwidth, rate, by_rows, *converted, alignment_classes.takes_kind(p)
    )  # fmt: skip


def route_of_m(p: Problem, by_rows: bool, converted: bool) -> int:
    """Groups begin at any row, which the copy engine can do across lines, not along them."""
    if by_rows and along_columns(p.layout_m, p.m, p.k):
        return PACKS
    return first_route(p.layout_m, p.m, p.k, converted)


def can_take(p: Problem, by_rows: bool, converted_m: bool, converted_n: bool) -> bool:
    """Groups along k only of operands whose rows are contiguous."""
    if p.k == 0 or by_rows:
        return p.k > 0
    m, n = first_route(p.layout_m, p.m, p.k, converted_m), first_route(p.layout_n, p.k, p.n, converted_n)
    rows = along_columns(p.layout_m, p.m, p.k) and not along_columns(p.layout_n, p.k, p.n)
    return rows and m != PACKS and n != PACKS


def takes(p: Problem, f: Figures) -> bool:
    return can_take(p, f.by_rows, f.converted_m, f.converted_n)


def given_of(p: Problem, f: Figures) -> Row:
    """What all rows share."""
    memory, phases = f.bandwidth * OF_STACKS.memory, -(-p.k // DEPTH)
    if f.by_rows == 0:
        each = -(-p.k // p.group_count)
        phases = -(-each // DEPTH)
    m, n = route_of_m(p, f.by_rows, f.converted_m), first_route(p.layout_n, p.k, p.n, f.converted_n)
    moved = moved_bytes(m, p.layout_m, p.m, p.k, p.own_m) + moved_bytes(n, p.layout_n, p.k, p.n, p.own_n)
    return (
        p.n, f.units, f.by_rows, rows_of_tiles(p, f, 64), f.rate,
        boxes(p.layout_p, p.m, p.n, 0, p.layout_p.alignment), not along_columns(p.layout_n, p.k, p.n),
        sqrt(p.group_count), p.least_bytes / memory, rows_of_tiles(p, f, 128), rows_of_tiles(p, f, 192),
        rows_of_tiles(p, f, 64), max(1, phases), lines_touched(m, p.layout_m, p.m, p.k),
        lines_touched(n, p.layout_n, p.k, p.n), 0.0, moving_seconds(moved, memory), m >= REALIGNS or n >= REALIGNS,
        *by_classes(p, f, memory),
    )  # fmt: skip


def by_classes(p: Problem, f: Figures, memory: float) -> Row:
    """What is given of N by classes."""
    if not (f.n_by_classes and takes_lines(p)):
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    apart = (classes_of(p.layout_n.row) - 1) * OF_STACKS.moved_column
    return -(-depth_of(p) // DEPTH), 1, 2, apart, moving_seconds(sorted_bytes(p), memory), 1


def rows_of_tiles(p: Problem, f: Figures, tall: int) -> float:
    return expected_tiles(p, tall) if f.by_rows else float(p.members * -(-p.m // tall))


def passes(row: Row, given: Row) -> int:
    """One to move operands."""
    return int(given[FORMS_FROM + EACH_FORM * int(row[3]) + MOVES])


EXPECTED = Formula(expected, given_of, takes, passes)


def searched(p: Problem, machine: Machine) -> list[Searched]:
    (tiles, rows), figures = _table(), figures_of(p, machine)

    def config(number: int, problem: Problem) -> TensorConfig:
        m = route_of_m(problem, bool(figures.by_rows), figures.converted_m)
        n = first_route(problem.layout_n, problem.k, problem.n, figures.converted_n)
        routes = (DEINTERLEAVED, BY_CLASSES) if rows.rows[number][3] else (ROUTES[m], ROUTES[n])
        return TensorConfig(tiles[number], routes)

    return [Searched(EXPECTED, rows, figures, config)]


def waves_of(config: TensorConfig, problem: Problem, units: int) -> int:
    """Whole waves of tiles; of groups, as many as sizes that nobody knows are likely to make."""
    if problem.groups and problem.groups.along == "rows":
        return math.ceil(expected_tiles(problem, config.tile.rows) * math.ceil(problem.n / config.cols) / units)
    return config.waves(problem.m, problem.n, units, problem.members)


def phases_of(config: TensorConfig, problem: Problem) -> int:
    """Of one tile; along groups of k, of a group as large as the others."""
    along_k = problem.groups is not None and problem.groups.along == "k"
    depth = problem.k / problem.groups.count if problem.groups and along_k else problem.k
    if config.n_by_classes:
        depth = alignment_classes.depth_of(problem)
    return max(1, math.ceil(math.ceil(depth / DEPTH) / config.own_blocks))
