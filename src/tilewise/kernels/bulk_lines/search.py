"""The ways of `bulk_lines` that are worth a thought, and the soonest of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from tilewise.kernels.bulk_lines.model import (
    TILES,
    BulkTile,
    BulkWay,
    Given,
    Memory,
    cut_over,
    figures_of,
    given_of,
    memory_of,
    room_of,
    share_of,
    stage_of,
    tiles_of,
    work_of,
)
from tilewise.kernels.bulk_lines.seconds import expected
from tilewise.kernels.shared.residency import UNITS, rooms
from tilewise.machine import Machine
from tilewise.problem import Problem

DEPTHS = (512, 256, 128, 64, 32)
MOST_WHOLE = 2048  # of k in one stage
CUTS = (2, 3, 4, 6, 8)  # blocks of a cluster that k may be cut over
MOST_CUTS = 2  # of them that are looked at: those that leave the fewest multiprocessors idle
LEAST_CUT = 64  # of k that a block has, at least


def ways(p: Problem) -> list[BulkWay]:
    return [way for way, _ in _fitting(given_of(p), len(CUTS))]


@lru_cache(maxsize=64)  # the planner asks for its time, and for the way when that is the soonest
def best_way(p: Problem, machine: Machine) -> tuple[float, BulkWay]:
    given, figures, best = given_of(p), figures_of(p), list[tuple[float, int, BulkWay]]()
    for number, (way, memory) in enumerate(_fitting(given, MOST_CUTS)):
        work = work_of(cut_over(given, way.cluster), way, memory, machine.units)
        best.append((expected(work, figures), number, way))
    return min(best)[::2]


def _fitting(g: Given, most_cuts: int) -> Iterator[tuple[BulkWay, Memory]]:
    """Of a tile and its blocks on a multiprocessor, the deepest stages of which two fit. (The soonest way of any depth
    took 0.1 % less in the mean of 252 stacks.)"""
    depths = _depths(g)
    for tile in TILES:
        if (tile.rows > 32 and g.m <= tile.rows // 4) or (tile.cols > 32 and g.n <= tile.cols // 4):
            continue
        down, across = tiles_of(g, tile)
        items, at = g.members * down * across, 0
        for resident in dict.fromkeys((1, -(-tile.resident // 2), tile.resident)):  # more leave each less memory
            if resident > 1 and items <= UNITS:
                break  # each has a multiprocessor for itself
            found = _deepest(g, depths, at, tile, resident, 1)
            if found is not None:
                at, way, memory = found
                yield way, memory
        for parts, resident in _cuts(g, tile, items)[-most_cuts:]:
            part = cut_over(g, parts)
            found = _deepest(part, _depths(part), 0, tile, resident, parts)
            if found is not None:
                yield found[1:]


def _depths(g: Given) -> list[int]:
    whole = -(-g.k // g.cores.step) * g.cores.step
    return [whole] * (whole <= MOST_WHOLE) + [depth for depth in DEPTHS if depth < whole]


def _deepest(
    g: Given, depths: Sequence[int], at: int, tile: BulkTile, resident: int, parts: int
) -> tuple[int, BulkWay, Memory] | None:
    """The first of the depths from `at` on with which the way fits, and its number."""
    _, room, _ = room_of(tile, resident, g.cores.size)
    lines = (tile.rows if g.m_along else min(g.m, tile.rows)) + (tile.cols if g.n_along else min(g.n, tile.cols))
    for number in range(at, len(depths)):
        depth = depths[number]
        if 2 * lines * min(depth, g.k) * g.cores.size > room:  # not even without what lies between lines
            continue
        way = BulkWay(tile, depth, resident, parts)
        memory = memory_of(g, way, stage_of(g, tile, depth))
        if memory is not None:
            return number, way, memory
    return None


def _cuts(g: Given, tile: BulkTile, items: int) -> list[tuple[int, int]]:
    """(blocks of a cluster, blocks of a multiprocessor) where tiles leave multiprocessors without work: one wave of
    blocks, as many to a multiprocessor as that takes."""
    made = []
    for parts in CUTS:
        if g.k < LEAST_CUT * parts or items > rooms(UNITS, parts, tile.resident)[-1]:
            break
        if share_of(g.k, parts) * (parts - 1) < g.k:
            room = rooms(UNITS, parts, tile.resident)
            made.append((parts, next(n for n, held in enumerate(room, 1) if items <= held)))
    return made
