"""Launches of kernels a block of which makes a tile of P, from rows or columns that start anywhere."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Address, Argument, Launch, Scratch, structure
from tilewise.kernels.shared.groups import most_tiles, walk_launch
from tilewise.kernels.shared.placed import Operands, Placed
from tilewise.kernels.shared.stacked import Runs
from tilewise.kernels.transforms.realign import lines_of
from tilewise.kernels.transforms.split_k import epilogue_argument

MOST_BLOCKS = 2**31 - 1


class Reach(ctypes.Structure):
    """The kernels' `Reach`."""

    _fields_ = (("low", ctypes.c_longlong), ("high", ctypes.c_longlong))


@runtime_checkable
class Tile(Protocol):
    """What a block makes, as its launch needs it."""

    @property
    def rows(self) -> int: ...
    @property
    def cols(self) -> int: ...
    @property
    def threads(self) -> int: ...
    @property
    def shared_bytes(self) -> int: ...
    @property
    def cluster(self) -> int: ...


def tiles_of(problem: Problem, tile: Tile) -> tuple[int, int]:
    return max(1, math.ceil(problem.m / tile.rows)), max(1, math.ceil(problem.n / tile.cols))


def launches_of(plan: Plan, given: Operands, scratch: Scratch, kernel: str, source: str) -> list[Launch]:
    """All launches of a plan whose configuration is a tile."""
    p, tile, made = plan.problem, plan.config, list[Launch]()
    assert isinstance(tile, Tile)
    M, N, P = given.M, given.N, given.P
    down, across = tiles_of(p, tile)
    if p.groups is not None:
        walk, found = walk_launch(p, tile.rows, scratch)
        steps = (0, N.layout.stack[0], 0)
        reach = [reach_of(M, 0, 1), reach_of(N, steps[1], p.groups.count)]
        arguments = _arguments(plan, given, [x.pointer for x in (M, N, P)], reach, steps, (across, found))
        grid = (most_tiles(p, tile.rows) * across,)
        return [walk, Launch.of(source, kernel, grid, (tile.threads,), arguments, tile.shared_bytes)]
    runs = Runs(p.stack, [x.layout.stack for x in (M, N, P)], MOST_BLOCKS // (down * across * tile.cluster))
    for first, count in runs.starts():
        reach = [reach_of(x, step, count) for x, step in zip((M, N), runs.steps, strict=False)]
        places = [x.member(first) for x in (M, N, P)]
        arguments = _arguments(plan, given, places, reach, runs.steps, (across, None))
        grid = (down * across * count * tile.cluster,)
        launch = Launch.of(source, kernel, grid, (tile.threads,), arguments, tile.shared_bytes, cluster=tile.cluster)
        made.append(launch)
    return made


def _arguments(
    plan: Plan,
    given: Operands,
    places: Sequence[Address],
    reach: Sequence[Argument],
    steps: Sequence[int],
    tiles: tuple[int, Address | None],
) -> tuple[Any, ...]:
    """`tiles`: how many there are across P, and where those of groups stand."""
    p, (across, walk), down = plan.problem, tiles, tiles_of(plan.problem, plan.config)[0]
    return (
        *places,
        epilogue_argument(p.epilogue, "float32", given.bias),
        *(ctypes.c_int(extent) for extent in (p.m, p.k, p.n)),
        *(ctypes.c_longlong(x) for x in (lines_of(given.M)[2], lines_of(given.N)[2], given.P.lead)),
        *reach,
        *(ctypes.c_int(x) for x in (down * across, across)),
        *(ctypes.c_longlong(step) for step in steps),
        walk,
    )


def reach_of(x: Placed, step: int, members: int) -> Argument:
    lines, length, lead = lines_of(x)
    last = (members - 1) * step
    return structure(Reach, min(0, last), max(0, last) + (lines - 1) * lead + length)
