"""How long the tensor-core kernel is expected to take over groups: figures of stacks, sizes known on the card alone."""

from __future__ import annotations

import math
from functools import lru_cache
from math import erf

from tilewise.core.machine import Machine
from tilewise.core.problem import Problem
from tilewise.kernels.by_configs import Table
from tilewise.kernels.coefficients import Numbers, coefficients
from tilewise.kernels.shared.groups import expected_tiles
from tilewise.kernels.shared.layouts import BY_CLASSES, DEINTERLEAVED, PACKED, REALIGNED, along_columns
from tilewise.kernels.shared.residency import rounded_up
from tilewise.kernels.wgmma_gemm.wgmma_half import alignment_classes
from tilewise.kernels.wgmma_gemm.wgmma_half.batched import FIGURES as OF_STACKS
from tilewise.kernels.wgmma_gemm.wgmma_half.batched import moving_seconds, phase_seconds, tile_seconds, whole_seconds
from tilewise.kernels.wgmma_gemm.wgmma_half.routes import lines_touched, moved_bytes, route
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import (
    DEPTH,
    NARROWED,
    SHIFTED_COLUMNS,
    TILES,
    TensorConfig,
    TensorTile,
    store_of,
    takes_boxes,
)
from tilewise.system.machine_code import INFINITE, Formula, Row, Rows

# Fitted beside those of stacks.
FIGURES: Numbers = coefficients("wgmma_half groups")
NARROW = 128  # along k, tiles of more columns store as long as they multiply
HEIGHTS = tuple(dict.fromkeys(tile.rows for tile in TILES))
# What is given of heights; and of operands as they are, or N by classes: phases (0: not so), lines of memory that a
# tile's rows of M and N lie in, seconds that a column's sums are moved between classes, and operands before.
DOWN_FROM, FORMS_FROM, EACH_FORM = 9, 9 + len(HEIGHTS), 5


@Formula
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


def tables(p: Problem, machine: Machine) -> list[Table]:
    tiles, rows = _table()
    routes, by_classes = _routes(p), (DEINTERLEAVED, BY_CLASSES)

    def config(number: int) -> TensorConfig:
        return TensorConfig(tiles[number], by_classes if rows.rows[number][3] else routes)

    return [Table(expected, rows, _given(p, machine, routes), config)]


def _routes(p: Problem) -> tuple[str, str]:
    """Groups begin at any row, which the copy engine can do across lines, not along them."""
    assert p.groups is not None
    for_m, for_n = route(p.layout_m, p.m, p.k, p.dtype_m, p.dtype), route(p.layout_n, p.k, p.n, p.dtype_n, p.dtype)
    return PACKED if p.groups.along == "rows" and along_columns(p.layout_m, p.m, p.k) else for_m, for_n


def _given(p: Problem, machine: Machine, routes: tuple[str, str]) -> Row:
    """What all rows share."""
    groups, memory, sides = (
        p.groups,
        machine.bandwidth * OF_STACKS.memory,
        ((p.layout_m, p.m, p.k), (p.layout_n, p.k, p.n)),
    )
    assert groups is not None
    by_rows = groups.along == "rows"
    touched = [lines_touched(how, *side) for how, side in zip(routes, sides, strict=True)]
    moved = sum(moved_bytes(*x, p) for how, x in zip(routes, sides, strict=True) if how in (REALIGNED, PACKED))
    phases = -(-(p.k if by_rows else math.ceil(p.k / groups.count)) // DEPTH)
    numbers: list[float] = [max(1, phases), *touched, 0.0, moving_seconds(moved, memory)]
    if alignment_classes.takes(p):
        classes, deep = alignment_classes.classes_of(p.layout_n.row), alignment_classes.depth_of(p)
        apart = (classes - 1) * OF_STACKS.moved_column
        numbers += [-(-deep // DEPTH), 1, 2, apart, moving_seconds(alignment_classes.moved_bytes(p), memory)]
    else:
        numbers += [0.0] * EACH_FORM
    down = [expected_tiles(p, tall) if by_rows else p.members * -(-p.m // tall) for tall in (64, *HEIGHTS)]
    return (
        p.n, machine.units, by_rows, down[0], machine.tensor_rate(p.dtype.name) / machine.units,
        takes_boxes(p.layout_p, p.m, p.n), not along_columns(p.layout_n, p.k, p.n), math.sqrt(groups.count),
        p.least_bytes / memory, *down[1:], *numbers,
    )  # fmt: skip


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
