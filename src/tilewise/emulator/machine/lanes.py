"""Grid, block and lanes: the threads of a batch, and which of them are active."""

from __future__ import annotations

from typing import Any

import numpy as np

Name = tuple[int, ...]  # a thread in its block or a block in its grid: (x, y), with z where there is a third dimension


def name_of(number: int, sides: tuple[int, int, int]) -> Name:
    """The coordinates of a linear number, x fastest."""
    plane, rest = divmod(number, sides[0] * sides[1])
    y, x = divmod(rest, sides[0])
    return (x, y, plane) if sides[2] > 1 else (x, y)


class Geometry:
    """Grid and block of a launch; lanes are numbered block by block, x fastest."""

    def __init__(self, grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
        self.grid = grid
        self.block = block
        self.threads = block[0] * block[1] * block[2]
        self.blocks = grid[0] * grid[1] * grid[2]

    def thread_name(self, thread: int) -> Name:
        return name_of(thread, self.block)

    def block_name(self, block: int) -> Name:
        return name_of(block, self.grid)


class Lanes:
    """The threads of some blocks, one lane each. `lanes` restricts them to some of these blocks' lanes (for schedules
    that run a few threads at a time); `mask` has the active lanes (None: all)."""

    def __init__(self, geometry: Geometry, blocks: np.ndarray, lanes: np.ndarray | None) -> None:
        self.geometry = geometry
        threads = geometry.threads
        every_lane = np.arange(len(blocks) * threads, dtype=np.int64)
        chosen = every_lane if lanes is None else lanes
        self.n = len(chosen)
        self.block_count = len(blocks)
        self.slot = chosen // threads  # which block of the batch
        self.thread = (chosen % threads).astype(np.int32)
        self.block = blocks[self.slot].astype(np.int32)  # linear number in the grid
        self.uniform_block = self.block_count == 1
        self.whole = lanes is None  # all lanes of the blocks are here
        self.lane_numbers = np.arange(self.n)
        self.mask: Any = None
        self.steps = 0
        self.phase = 0
        self.symbols: list[Any] = []  # the values of the leading dimensions

    def active(self) -> int:
        mask = self.mask
        return self.n if mask is None else int(np.count_nonzero(mask))

    def active_lanes(self) -> np.ndarray:
        return self.lane_numbers if self.mask is None else np.flatnonzero(self.mask)
