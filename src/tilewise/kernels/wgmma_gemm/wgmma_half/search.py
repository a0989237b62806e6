"""The best way to take a product: of a single one by a formula over all of them, of a stack or of groups with few of
them looked at closely.

A quick bound, nearly the model itself, ranks tiles, routes and parts of k of a stack; the model is asked for those that
can win.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from itertools import product

from tilewise.core.machine import Machine
from tilewise.core.problem import Problem
from tilewise.core.tuning import CLOSE, preferred
from tilewise.kernels.bounds import Bound
from tilewise.kernels.shared.layouts import AS_IT_IS
from tilewise.kernels.wgmma_gemm.wgmma_half import alone, inside, lags, table
from tilewise.kernels.wgmma_gemm.wgmma_half.model import KERNEL, configs, expected, transposed_configs, tuning_class
from tilewise.kernels.wgmma_gemm.wgmma_half.routes import lines_touched, moved_bytes, options
from tilewise.kernels.wgmma_gemm.wgmma_half.seconds import (
    CLUSTER_SECONDS,
    COPY_SECONDS,
    GATHER_BANDWIDTH,
    GATHER_SECONDS,
    GROUP_SECONDS,
    LINE_SECONDS,
    LINES_OUT_SECONDS,
    MEMORY_SHARE,
    SHARPNESS,
    START_SECONDS,
    TENSOR_SHARE,
    TILE_SECONDS,
    UNIT_BANDWIDTH,
)
from tilewise.kernels.wgmma_gemm.wgmma_half.table import MOVED, THIN
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import (
    CARRIED_PHASES,
    CARRIED_WAVES,
    DEPTH,
    FEW_INSIDE,
    LEAST_PHASES,
    TILES,
    TensorConfig,
    TensorTile,
    takes_boxes,
    worthwhile,
)

EACH = 16  # numbers of a tile's ways


@lru_cache(maxsize=64)
def best_config(problem: Problem, machine: Machine) -> tuple[TensorConfig, float]:
    """The way with the least expected seconds, as if all of them had been reckoned."""
    tuned = machine.tuned
    sizes = problem.m, problem.k, problem.n
    tuned_here = tuned is not None and tuned.measured(f"{KERNEL} {problem.dtype.name}", sizes)
    key = tuning_class(problem) if tuned_here else ""
    known = tuned is not None and key in tuned.entries
    if problem.members == 1 and not problem.groups:
        if not known:
            return table.least(problem, machine)
        timed = [(seconds, at, config) for at, (config, seconds) in enumerate(table.every(problem, machine))]
    else:
        timed = _close(problem, machine, CLOSE if known else 1.0)  # a table may prefer one that is close
    seconds, best, by_table = preferred(timed, key, tuned)
    return replace(best, tuned=True) if by_table else best, seconds


def _close(problem: Problem, machine: Machine, margin: float) -> list[tuple[float, int, TensorConfig]]:
    """(seconds, its number, way) of those that could be the best, but for this margin; of groups of all."""
    if problem.groups:
        return [(expected(config, problem, machine), at, config) for at, config in enumerate(configs(problem, machine))]
    last = EACH * len(TILES)
    others = transposed_configs(problem) + lags.configs(problem)
    timed = [(expected(config, problem, machine), last + at, config) for at, config in enumerate(others)]
    soonest = min(timed)[0] if timed else math.inf
    for floor, moving, routes in _routes(problem, machine):
        if floor > margin * soonest:
            break
        for least, number in _bounds(problem, machine, routes, moving):
            if least > margin * soonest:
                break
            for at, config in enumerate(configs(problem, machine, TILES[number : number + 1])):
                if config.routes == routes:
                    seconds = expected(config, problem, machine)
                    timed.append((seconds, EACH * number + at, config))
                    soonest = min(soonest, seconds)
    return timed


def _routes(problem: Problem, machine: Machine) -> list[tuple[float, float, tuple[str, str]]]:
    """(seconds that no way goes below whose operands come so, seconds to move operands first, how they come), the least
    first."""
    work, memory = START_SECONDS + _work(problem, machine), machine.bandwidth * MEMORY_SHARE
    for_m, for_n = options(problem)
    moved_m = moved_bytes(problem.layout_m, problem.m, problem.k, problem) if for_m != [AS_IT_IS] else 0
    moved_n = moved_bytes(problem.layout_n, problem.k, problem.n, problem) if for_n != [AS_IT_IS] else 0
    made = []
    for routes in product(for_m, for_n):
        moved = (moved_m if routes[0] in MOVED else 0) + (moved_n if routes[1] in MOVED else 0)
        moving = COPY_SECONDS + moved / memory if moved else 0.0
        made.append((0.999 * (work + moving), moving, routes))
    return sorted(made) if len(made) > 1 else made


def _work(problem: Problem, machine: Machine) -> float:
    """Seconds that tensor cores or the memory are busy at least, over a stack; thin edges are made beside."""
    steps = problem.members * (problem.m - THIN) * problem.k * (problem.n - THIN)
    cores = steps / (machine.tensor_rate(problem.dtype.name) * TENSOR_SHARE)
    return max(problem.least_bytes / (machine.bandwidth * MEMORY_SHARE), cores)


def bounds(some: Problem, machine: Machine) -> tuple[Bound, ...]:
    """Tensor cores or the memory, thin edges being made beside; or one tile's phases: all of k, or the fewest of a
    part. Where k is cut inside the launch, as its formula has it."""
    rate = machine.tensor_rate(some.dtype.name)
    if some.members > 1:
        byte = 1 / (machine.bandwidth * MEMORY_SHARE)
        return (Bound(START_SECONDS + GROUP_SECONDS, inner=1 / (rate * TENSOR_SHARE), byte=byte),)
    byte, least = 1 / (machine.bandwidth * alone.MEMORY_SHARE), min(tile.rows * tile.cols for tile in TILES)
    phase = alone.PHASE_SECONDS + least * DEPTH * machine.units / (rate * alone.TENSOR_SHARE)
    tile, part = (
        min(alone.tile_seconds(store, min(tile.cols for tile in TILES)) for store in stores)
        for stores in (range(alone.PARTIAL), (alone.PARTIAL,))
    )
    lines = (phase / DEPTH, tile), (0.0, LEAST_PHASES * phase + part)
    start = alone.START_SECONDS + alone.GROUP_SECONDS
    whole = Bound(start, inner=1 / (rate * alone.TENSOR_SHARE), byte=byte, lines=lines)
    cluster = inside.TILE_SECONDS + inside.CLUSTER_SECONDS + 2 * inside.PART_SECONDS
    of_k = inside.PHASE_SECONDS / DEPTH
    lines = (of_k, inside.TILE_SECONDS), (of_k / inside.PARTS[-1], cluster)
    cut = Bound(inside.START_SECONDS, byte=byte, lines=lines)
    squares = inside.MOST_SQUARES * inside.SQUARE**2
    return whole, cut._replace(few=FEW_INSIDE[-1].cols), cut._replace(cells=squares)


def _bounds(problem: Problem, machine: Machine, routes: tuple[str, str], moving: float) -> list[tuple[float, int]]:
    """(seconds that no way of a stack with a tile goes below, the tile's number), the least first: the model itself but
    for the card's heat, which is taken at its best."""
    m, k, n, units, members = problem.m, problem.k, problem.n, machine.units, problem.members
    phases = -(-k // DEPTH) or 1
    passing = problem.least_bytes / (machine.bandwidth * MEMORY_SHARE)
    boxed, before = takes_boxes(problem.layout_p, m, n), START_SECONDS + moving
    lines = lines_touched(routes[0], problem.layout_m, m, k), lines_touched(routes[1], problem.layout_n, k, n)
    phase_of = _phases(problem.dtype.name, machine, *lines)
    found: list[tuple[float, int]] = []
    for number in worthwhile(m, n):
        rows, cols, cluster, area, groups_of, wide, cut_too = SIDES[number]
        phase, at_once = phase_of[number], units // cluster
        tiles = -(-m // rows) * -(-n // cols) * members
        waves = -(-tiles // at_once)
        each = phases * phase
        if boxed:
            each += BOXES
        elif wide and waves >= CARRIED_WAVES and phases >= CARRIED_PHASES:
            each = max(each + CARRIED, CARRIED_OUT * area)
        else:
            each += ROWS + (ROWS_OUT * area if waves > 1 else 0.0)
        work = max(waves * each, passing) + (groups_of if waves == 1 else 2) * GROUP_SECONDS
        parts = min(units // (tiles * cluster), phases // 4) if tiles else 0
        if parts > 1 and cut_too:
            turns = -(-tiles * parts // at_once)
            cut = max(turns * (-(-phases // parts) * phase + PARTIAL), passing) + GATHER_SECONDS
            cut += members * 8 * parts * m * n / GATHER_BANDWIDTH + (groups_of if turns == 1 else 2) * GROUP_SECONDS
            work = min(work, cut)
        work += before + (CLUSTER_SECONDS if cluster > 1 else 0.0)
        found.append((0.999 * work, number))  # sums in another order round otherwise
    return sorted(found)


BOXES, ROWS, CARRIED, PARTIAL = (TILE_SECONDS[store] for store in ("boxes", "rows", "carried", "partial"))
ROWS_OUT, CARRIED_OUT = LINES_OUT_SECONDS["rows"], LINES_OUT_SECONDS["carried"]
SIDES = tuple(
    (
        tile.rows * tile.cluster,
        tile.cols,
        tile.cluster,
        tile.rows * tile.cols,
        tile.groups,
        tile.wide,
        tile.takes_parts,
    )
    for tile in TILES
)


@lru_cache(maxsize=64)
def _phases(dtype: str, machine: Machine, lines_m: int, lines_n: int) -> tuple[float, ...]:
    """Seconds of a phase, by tile, where a tile's rows of M and N lie in so many lines of memory each."""
    return tuple(_phase(tile, dtype, machine, lines_m, lines_n) for tile in TILES)


def _phase(tile: TensorTile, dtype: str, machine: Machine, lines_m: int, lines_n: int) -> float:
    rows, cols = tile.rows, tile.cols / tile.cluster
    cores = tile.rows * tile.cols * DEPTH / (machine.tensor_rate(dtype) / machine.units * TENSOR_SHARE)
    lines = (rows * lines_m + cols * lines_n) * LINE_SECONDS
    limits = (cores, (rows + cols) * 2 * DEPTH / UNIT_BANDWIDTH, lines)
    seconds: float = math.hypot(*(limit**SHARPNESS for limit in limits)) ** (1 / SHARPNESS)
    return seconds
