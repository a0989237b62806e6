"""The rungs of the ladder as the planner sees them: block, tile of P, depth of a phase, shared memory.

A rung has the name of its kernel file in `kernels/ladder/`, and the text there is written for exactly this geometry.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewise.algebra.semiring import Algebra
from tilewise.core.plan import Geometry
from tilewise.core.problem import Problem
from tilewise.errors import ShapeError, UsageError

COARSE = 4  # columns a thread of `coarsened` computes
REGISTERS = 8  # rows and columns a thread of `register_tiled` computes
MAX_TILE = 32  # a block has at most 1024 threads


@dataclass(frozen=True)
class Rung:
    """One kernel of the ladder. What the planner's model starts from is measured on an H200 (`tilewise bench ladder`):
    `share` is the part of the float32 peak it reaches at 4096³ and its widest tile, `saturation` the threads a
    multiprocessor must hold before more of them bring nothing."""

    name: str
    idea: str
    share: float
    saturation: int
    max_tile: int = MAX_TILE
    whole_tiles_only: bool = False

    def geometry(self, tile: int, algebra: Algebra) -> Geometry:
        size = algebra.partial.itemsize
        if self.name == "naive":
            return Geometry((tile, tile), tile, tile, 1, 0)
        if self.name == "coarsened":
            return Geometry((tile, tile), tile, tile * COARSE, tile, (1 + COARSE) * tile * tile * size)
        if self.name == "register_tiled":
            side, depth = REGISTERS * tile, register_depth(size)
            return Geometry((tile, tile), side, side, depth, 2 * depth * (side + 4) * size)
        return Geometry((tile, tile), tile, tile, tile, 2 * tile * tile * size)


def register_depth(itemsize: int) -> int:
    """How many k a phase of `register_tiled` holds: two strips must fit 48 KB for every dtype."""
    return {8: 8, 16: 4}.get(itemsize, 16)


LADDER: dict[str, Rung] = {
    rung.name: rung
    for rung in (
        Rung("naive", "one thread, one element of P, everything from global memory", 0.09, 1024),
        Rung("tiled", "a block loads a tile of M and of N together", 0.135, 1024, whole_tiles_only=True),
        Rung("tiled_edges", "the same for any size: boundary checks, and a fill where there is no element", 0.13, 1024),
        Rung("coarsened", f"a thread computes {COARSE} elements, so each M it reads serves {COARSE} times", 0.19, 768),
        Rung("register_tiled", f"a thread keeps {REGISTERS}×{REGISTERS} sums in registers", 0.51, 384, max_tile=16),
    )
}


def find_rung(kernel: str) -> Rung:
    if kernel not in LADDER:
        raise UsageError(f"kernel={kernel!r} is not known; known are {', '.join(LADDER)}")
    return LADDER[kernel]


def check_tile(tile: object, rung: Rung | None = None) -> int:
    """TILE_WIDTH as an int from 1 to 32 (16 for register_tiled), or one clear sentence."""
    limit = rung.max_tile if rung else MAX_TILE
    if isinstance(tile, bool) or not hasattr(tile, "__index__"):
        raise UsageError(f"tile={tile!r} must be a whole number from 1 to {limit} (TILE_WIDTH)")
    width = int(tile.__index__())
    if not 1 <= width <= limit:
        why = "a block has at most 1024 threads" if limit == MAX_TILE else "its sums would not fit the registers"
        name = f" for {rung.name}" if rung and limit != MAX_TILE else ""
        raise UsageError(f"tile={width} must be from 1 to {limit}{name}: {why}")
    return width


def check_whole_tiles(problem: Problem, kernel: str, tile: int) -> None:
    if problem.m % tile or problem.k % tile or problem.n % tile:
        raise ShapeError(
            f"kernel={kernel!r} takes multiples of TILE_WIDTH only, and {problem.shape} is not made of whole tiles "
            f"of {tile}: use kernel='tiled_edges', which has the boundary checks"
        )
