"""The tiles of `half_dots`, and the ways a product takes through it: geometry alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewise.core.plan import Geometry

WARPS, LINES, STEP = 8, 16, 32  # of a block; of the long operand, that a warp has; of k
SLICES = (1, 2, 4, 8)  # of k, by warps
CLUSTERS = (1, 2, 3, 4, 6, 8)  # blocks
STAGE_BYTES = 72 * 1024  # of the few lines


@dataclass(frozen=True)
class DotsTile:
    """A block has up to `width` few lines, and warps that load `ahead` steps of the long operand before they are used;
    `resident` blocks share a multiprocessor."""

    width: int
    ahead: int = 4
    resident: int = 2


TILES = (DotsTile(8), DotsTile(16), DotsTile(32))  # none spills; 64 lines were the fastest way in 4 of 24 products
MOST_FEW = TILES[-1].width


@dataclass(frozen=True)
class DotsConfig:
    """`swapped`: P has few columns, and M is the long operand. Every `classes` of its lines one starts equally far
    behind a 16-byte boundary. Warps take `slices` of k, blocks of a cluster parts of it."""

    tile: DotsTile
    swapped: bool
    classes: int
    slices: int
    cluster: int = 1

    def spec(self) -> str:
        return f"{self.tile.width}x{self.height} k/{self.slices} c{self.cluster}{' swapped' * self.swapped}"

    @property
    def height(self) -> int:
        """Lines of the long operand that a block has."""
        return LINES * (WARPS // self.slices)

    def stage(self, k: int) -> int:
        """Steps whose few lines are held at a time: whole turns of the warps."""
        each, steps = self.tile.ahead * self.slices, math.ceil(steps_of(k) / self.cluster)
        room = (STAGE_BYTES // (2 * self.tile.width) - 64) // (STEP * each)
        return each * max(1, min(room, math.ceil(steps / each)))

    def shared_bytes(self, k: int) -> int:
        """Of the few lines, or the sums."""
        width, height = self.tile.width, self.height
        few = 2 * width * (math.ceil(self.stage(k) * STEP / 64) * 64 + 32)
        return max(few, 4 * self.slices * (height * (width + 4) if self.swapped else width * (height + 4)))

    def blocks(self, length: int) -> int:
        return math.ceil(math.ceil(length / self.classes) / self.height) * self.classes * self.cluster

    @property
    def geometry(self) -> Geometry:
        sides = (self.height, self.tile.width) if self.swapped else (self.tile.width, self.height)
        return Geometry((32 * WARPS, 1), *sides, STEP, self.shared_bytes(STEP))


def steps_of(k: int) -> int:
    """At most, wherever a line starts."""
    return math.ceil((k + 7) / STEP)
