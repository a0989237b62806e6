"""Groups of rows whose sizes are data on the card: the launch that lists their tiles, and memory for the list."""

from __future__ import annotations

import ctypes
import math
from math import expm1

from tilewise.core.problem import Groups, Problem
from tilewise.core.recipe import Address, Launch, Scratch
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.shared.text import assembled

OFFSETS = Address("offsets")
PIECE_BYTES = 16  # of one tile's group, first row and end
MOST_THREADS = 1024


def in_text(groups: Groups | None) -> Groups | None:
    """Groups as far as a text depends on them: their number, and the type of ends of rows, are arguments."""
    return None if groups is None else Groups(1, groups.along, groups.wide and groups.along == "k")


@KeyedRenderer
def render_walk(wide: bool) -> str:
    """`wide`: offsets are 64-bit integers."""
    return assembled(offset_type(wide), "shared/dependent_launch.cuh shared/walk_groups.cu")


def offset_type(wide: bool) -> str:
    return f"typedef {'long long' if wide else 'int'} Offset;"


def most_tiles(problem: Problem, tall: int) -> int:
    """The most row tiles: the last one of each group, and of the rows behind all groups, may be partial."""
    assert problem.groups is not None
    return math.ceil(problem.m / tall) + problem.groups.count + 1


def expected_tiles(p: Problem, tall: int) -> float:
    """The expected number of row tiles for random sizes: the last tile of each group that is not empty is half full."""
    busy = p.group_count * -expm1(-p.m / p.group_count) if p.group_count else 0.0  # groups that are not empty
    return max(1.0, p.m / tall + busy / 2, busy)


def walk_launch(problem: Problem, tall: int, scratch: Scratch) -> tuple[Launch, Address]:
    """The launch, and the address of the list of tiles."""
    groups = problem.groups
    assert groups is not None
    walk = scratch.take(PIECE_BYTES * (1 + most_tiles(problem, tall)))
    threads = min(MOST_THREADS, max(64, 1 << groups.count.bit_length()))
    arguments = (OFFSETS, walk, *(ctypes.c_int(x) for x in (groups.count, problem.m, tall)))
    return Launch.of(render_walk.key(groups.wide), "walk_groups", (1,), (threads,), arguments), walk
