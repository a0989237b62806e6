"""The plain kernels' tiles of P, by the registers of an accumulator."""

from __future__ import annotations

from dataclasses import dataclass

from tilewise.core.plan import Geometry
from tilewise.kernels.simt_gemm.tiled.configs import Config


@dataclass(frozen=True)
class PlainTile:
    """Warps of 32 lanes, 4 × 8 over a warp's tile; a thread keeps `tm` × `tn` sums. `share` is the part of the step
    limit that it reaches inside a large product (measured on an H200, `tilewise bench semirings`)."""

    warps_m: int
    warps_n: int
    tm: int
    tn: int
    depth: int
    stages: int
    resident: int  # blocks a multiprocessor holds at once
    share: float
    lanes_m: int = 4
    lanes_n: int = 8
    unroll: int = 4
    zigzag: bool = False  # every second row of sums is updated right to left
    registers: int = 0  # limit of a thread's registers, where a lower one gives a better loop

    @property
    def rows(self) -> int:
        return self.warps_m * self.lanes_m * self.tm

    @property
    def cols(self) -> int:
        return self.warps_n * self.lanes_n * self.tn

    @property
    def threads(self) -> int:
        return 32 * self.warps_m * self.warps_n

    def shared_bytes(self, word_bytes: int) -> int:
        """As the kernel's STAGE has it, both operands transposed."""
        return self.stages * self.depth * ((self.rows + self.cols) * word_bytes + 32)

    def geometry(self, config: Config) -> Geometry:
        shared = self.shared_bytes(config.word_bytes)
        return Geometry((self.threads, 1), self.rows, self.cols, self.depth * config.per_word, shared)


# by 4-byte registers of one sum (1, 2 or 4), the widest first; none of them spills
TILES: dict[int, tuple[PlainTile, ...]] = {
    1: (
        PlainTile(4, 2, 8, 16, 16, 3, 1, 0.80),
        PlainTile(2, 2, 8, 8, 16, 3, 3, 0.78),
        PlainTile(2, 2, 8, 4, 16, 3, 4, 0.60),
        PlainTile(2, 1, 8, 4, 16, 3, 8, 0.50),
    ),
    2: (
        PlainTile(2, 2, 8, 4, 8, 3, 3, 0.80),
        PlainTile(2, 2, 4, 4, 8, 3, 5, 0.75),
    ),
    4: (
        PlainTile(2, 2, 4, 4, 8, 2, 3, 0.80),
        PlainTile(2, 2, 4, 2, 8, 2, 4, 0.70),
    ),
}
# up to 16 rows: few wide tiles with deep prefetch, bound by memory
FEW_ROWS_TILE = PlainTile(1, 4, 16, 4, 16, 3, 2, 0.55, lanes_m=1, lanes_n=32, unroll=2)
SMALL_TILES = (*TILES[1][2:], FEW_ROWS_TILE)
GUARD_TILE = SMALL_TILES[0]  # of the fallbacks of stacks
# one multiply-add a step: bound by issue slots; unrolled by 2, so that sums stay in their registers
FMA_TILES = (
    PlainTile(4, 2, 8, 16, 32, 3, 1, 0.78, unroll=2, zigzag=True),
    PlainTile(2, 2, 8, 8, 16, 3, 3, 0.73, unroll=2, zigzag=True),
    *SMALL_TILES,
)
# an addition and a minimum a step: bound by issue slots
TWO_SLOT_TILES = (
    PlainTile(4, 2, 16, 8, 32, 3, 1, 0.84, unroll=2, registers=216),
    PlainTile(4, 2, 8, 8, 16, 3, 2, 0.80, unroll=2),
    PlainTile(2, 2, 8, 8, 16, 3, 3, 0.75),
    *SMALL_TILES,
)
THREE_TILES = (PlainTile(4, 2, 16, 8, 32, 3, 1, 0.74, unroll=2), PlainTile(2, 2, 8, 8, 32, 2, 3, 0.72), *SMALL_TILES)
# two shorts a step keep twice the registers busy
SHORT_TILES = (
    PlainTile(4, 2, 8, 4, 16, 3, 2, 0.88),
    PlainTile(2, 2, 8, 4, 16, 3, 4, 0.85),
    PlainTile(2, 1, 8, 4, 16, 3, 8, 0.65),
)


def tiles_of(config: Config) -> tuple[PlainTile, ...]:
    """The tiles for an algorithm, the fastest for large products as measured on an H200."""
    special = {"shorts": SHORT_TILES, "three": THREE_TILES}.get(config.name)
    if special:
        return special
    if config.name == "online" and config.sum_words == 4:
        return TILES[4][1:]  # exp in float64 wants registers of its own
    if config.name == "each" and config.converts:
        return TILES[1][1:]  # small integers wrap at every step, which takes registers too
    if config.name == "each" and config.sum_words == config.word_bytes // 4 == 1 and config.slots <= 2:
        return FMA_TILES if config.slots <= 1 else TWO_SLOT_TILES
    return TILES[1 << (max(config.sum_words, config.word_bytes // 4) - 1).bit_length()]
