"""The best way to take a product, with few of them looked at closely.

A quick bound, nearly the model itself, ranks tiles, routes and parts of k; the model is asked for those that can win.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

from tilewise.kernels.shared.layouts import BY_CLASSES, PACKED, REALIGNED
from tilewise.kernels.wgmma_half.model import THIN, expected, tuning_class, ways
from tilewise.kernels.wgmma_half.seconds import (
    CLUSTER_SECONDS,
    COPY_SECONDS,
    GATHER_BANDWIDTH,
    GATHER_SECONDS,
    GROUP_SECONDS,
    LINE_SECONDS,
    MEMORY_SHARE,
    SHARPNESS,
    START_SECONDS,
    TENSOR_SHARE,
    TILE_SECONDS,
    UNIT_BANDWIDTH,
    lines_touched,
)
from tilewise.kernels.wgmma_half.tiles import CARRIED_WAVES, DEPTH, TILES, TensorTile, TensorWay, takes_boxes
from tilewise.machine import Machine
from tilewise.problem import Problem
from tilewise.tuning import CLOSE, preferred

EACH = 16  # numbers of a tile's ways


@lru_cache(maxsize=64)
def best_way(problem: Problem, machine: Machine) -> tuple[TensorWay, float]:
    """The way with the least expected seconds, as if all of them had been reckoned."""
    key, table = tuning_class(problem), machine.tuned
    margin = CLOSE if table is not None and key in table.entries else 1.0  # a table may prefer one that is close
    timed: list[tuple[float, int, TensorWay]] = []
    soonest = math.inf
    for least, number in sorted(_bounds(problem, machine)):
        if least > margin * soonest:
            break
        tile = TILES[number]
        for at, way in enumerate(ways(problem, machine, (tile,))):
            seconds = expected(way, problem, machine)
            timed.append((seconds, EACH * number + at, way))
            soonest = min(soonest, seconds)
    last = EACH * len(TILES)
    timed += [(expected(way, problem, machine), last + at, way) for at, way in enumerate(ways(problem, machine, ()))]
    seconds, best, tuned = preferred(timed, key, table)
    return replace(best, tuned=True) if tuned else best, seconds


def _bounds(problem: Problem, machine: Machine) -> list[tuple[float, int]]:
    """(seconds that no way with a tile goes below, the tile's number)."""
    if problem.members != 1 or problem.groups:
        return [(0.0, number) for number in range(len(TILES))]
    m, k, n, units = problem.m, problem.k, problem.n, machine.units
    phases, down, across = -(-k // DEPTH), max(1, m - THIN), max(1, n - THIN)
    memory = machine.bandwidth * MEMORY_SHARE
    passing = problem.least_bytes / memory
    boxed = takes_boxes(problem.layout_p, m, n) or takes_boxes(problem.layout_p, m, n, THIN)
    found = [math.inf] * len(TILES)
    for of_m, of_n in dict.fromkeys(way.routes for way in ways(problem, machine, TILES[:1])):
        moved = sum(4 * size for how, size in ((of_m, m * k), (of_n, k * n)) if how in (REALIGNED, PACKED))
        before = START_SECONDS + GROUP_SECONDS + (COPY_SECONDS + moved / memory if moved else 0.0)
        lines = lines_touched(of_m, problem.layout_m, m, k), lines_touched(of_n, problem.layout_n, k, n)
        phase_of = _phases(problem.dtype.name, machine, *lines)
        by_boxes = boxed and of_m != BY_CLASSES
        for number, (rows, cols, cluster) in enumerate(SIDES):
            phase, groups = phase_of[number], units // cluster
            tiles = -(-down // rows) * -(-across // cols)
            waves = -(-tiles // groups)
            store = BOXES if by_boxes else ROWS if waves < CARRIED_WAVES else CARRIED
            work = max(waves * (phases * phase + store), passing)
            parts = min(units // (tiles * cluster), phases // 4)
            if parts > 1 and of_m != BY_CLASSES:
                cut = max(-(-tiles * parts // groups) * (-(-phases // parts) * phase + PARTIAL), passing)
                work = min(work, cut + GATHER_SECONDS + 8 * parts * down * across / GATHER_BANDWIDTH)
            work += before + (CLUSTER_SECONDS if cluster > 1 else 0.0)
            if work < found[number]:
                found[number] = work
    return [(0.999 * seconds, number) for number, seconds in enumerate(found)]  # sums in another order round otherwise


BOXES, ROWS, CARRIED, PARTIAL = (TILE_SECONDS[store] for store in ("boxes", "rows", "carried", "partial"))
SIDES = tuple((tile.rows * tile.cluster, tile.cols, tile.cluster) for tile in TILES)


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
