"""How long the tensor-core kernel is expected to take over groups: figures of stacks, sizes known on the card alone."""

from __future__ import annotations

import math

from tilewise.core.machine import Machine
from tilewise.core.problem import Problem
from tilewise.kernels.coefficients import Numbers, coefficients
from tilewise.kernels.shared.groups import expected_tiles
from tilewise.kernels.shared.layouts import PACKED, REALIGNED, along_columns
from tilewise.kernels.wgmma_gemm.wgmma_half import alignment_classes, batched
from tilewise.kernels.wgmma_gemm.wgmma_half.routes import lines_touched, moved_bytes
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import DEPTH, TensorConfig, store_of, takes_boxes

# Fitted beside those of stacks.
FIGURES: Numbers = coefficients("wgmma_half groups")
NARROW = 128  # along k, tiles of more columns store as long as they multiply


def expected(config: TensorConfig, problem: Problem, machine: Machine) -> float:
    """Tiles of a multiprocessor one after the other, beside the bytes; then what comes before and after."""
    tile, (m, k, n), memory = config.tile, (problem.m, problem.k, problem.n), machine.bandwidth * batched.FIGURES.memory
    assert problem.groups is not None
    rows, cols = busy_rows(config, problem), tile.cols / tile.cluster
    touched = 2 if config.n_by_classes else lines_touched(config.routes[1], problem.layout_n, k, n)
    lines = rows * lines_touched(config.routes[0], problem.layout_m, m, k) + cols * touched
    rate = machine.tensor_rate(problem.dtype.name) / machine.units
    phases, waves = phases_of(config, problem), waves_of(config, problem, machine.units)
    each = phases * batched.phase_seconds(rows, tile.cols, cols, lines, rate)
    if config.n_by_classes:
        each += (alignment_classes.classes_of(problem.layout_n.row) - 1) * batched.FIGURES.moved_column * tile.cols
    boxed = takes_boxes(problem.layout_p, m, n)
    store, cells = store_of(config.n_by_classes, boxed, tile.wide, waves, phases), tile.rows * tile.cols
    each = batched.tile_seconds(each, store, waves, cells)
    rounds: float = waves
    if problem.groups.along == "rows":
        rounds = dynamic_rounds(config, problem, machine.units) * (FIGURES.three_slow if tile.groups > 2 else 1.0)
    elif tile.cols > NARROW:
        rounds *= FIGURES.wide_slow
    power = FIGURES.uneven
    work = ((rounds * each) ** power + (problem.least_bytes / memory) ** power) ** (1 / power)
    work = work * (1 + FIGURES.idle_slow * (tile.groups - rows / 64)) + batched.FIGURES.other_launch  # tiles are listed
    work = batched.whole_seconds(work, cells, waves, tile.groups, tile.cluster)
    sides = ((problem.layout_m, m, k), (problem.layout_n, k, n))
    moved = sum(
        moved_bytes(*side, problem)
        for how, side in zip(config.routes, sides, strict=True)
        if how in (REALIGNED, PACKED)
    )
    return work + batched.moving_seconds(
        alignment_classes.moved_bytes(problem) if config.n_by_classes else moved, memory
    )


def waves_of(config: TensorConfig, problem: Problem, units: int) -> int:
    """Whole waves of tiles; of groups, as many as sizes that nobody knows are likely to make."""
    if problem.groups and problem.groups.along == "rows":
        return math.ceil(expected_tiles(problem, config.tile.rows) * math.ceil(problem.n / config.cols) / units)
    return config.waves(problem.m, problem.n, units, problem.members)


def across(config: TensorConfig, problem: Problem) -> float:
    """Tiles side by side of groups of rows: half of the last one, where its left half has all columns that are left."""
    narrowed = not along_columns(problem.layout_n, problem.k, problem.n) and config.narrowed(problem.n)
    return math.ceil(problem.n / config.cols) - (FIGURES.narrower if narrowed else 0.0)


def busy_rows(config: TensorConfig, problem: Problem) -> float:
    """Rows of a tile that are multiplied: of groups, those of the consumers that have any."""
    if not problem.groups or problem.groups.along != "rows":
        return config.tile.rows
    return min(config.tile.rows, 64 * expected_tiles(problem, 64) / expected_tiles(problem, config.tile.rows))


def dynamic_rounds(config: TensorConfig, problem: Problem, units: int) -> float:
    """Tiles of a multiprocessor, one after the other, where each draws the next when it is done: whole rounds, where
    there are one or two, a little more of them if sizes that nobody knows make a few tiles more than one fills."""
    wide = max(1, math.ceil(problem.n / config.cols))
    down = expected_tiles(problem, config.tile.rows)
    rounds = down * wide / units
    if rounds > 2 or problem.groups is None:
        return down * across(config, problem) / units + 0.5
    unsure = FIGURES.unsure * wide * math.sqrt(problem.groups.count) / units
    return 1 + sum(0.5 + 0.5 * math.erf((rounds - whole) / unsure) for whole in (1, 2, 3))


def phases_of(config: TensorConfig, problem: Problem) -> int:
    """Of one tile; along groups of k, of a group as large as the others."""
    along_k = problem.groups is not None and problem.groups.along == "k"
    depth = problem.k / problem.groups.count if problem.groups and along_k else problem.k
    if config.n_by_classes:
        depth = alignment_classes.depth_of(problem)
    return max(1, math.ceil(math.ceil(depth / DEPTH) / config.own_blocks))
