"""Grid, block and lanes: who the threads of a batch are, and which of them are running."""

from __future__ import annotations

from typing import Any

import numpy as np


class Geometry:
    """Grid and block of a launch; lanes are numbered block by block, threads x first."""

    def __init__(self, grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
        self.grid = grid
        self.block = block
        self.threads = block[0] * block[1] * block[2]
        self.blocks = grid[0] * grid[1] * grid[2]

    def thread_name(self, thread: int) -> tuple[int, ...]:
        """(ty, tx), with tz before them where blocks have depth."""
        x, y, _ = self.block
        tz, rest = divmod(thread, x * y)
        ty, tx = divmod(rest, x)
        return (tz, ty, tx) if self.block[2] > 1 else (ty, tx)

    def block_name(self, block: int) -> tuple[int, ...]:
        x, y, _ = self.grid
        bz, rest = divmod(block, x * y)
        by, bx = divmod(rest, x)
        return (bz, by, bx) if self.grid[2] > 1 else (by, bx)


class Lanes:
    """The threads of some blocks side by side, one lane each. `lanes` restricts them to some of these blocks' lanes
    (for schedules that run a few threads at a time); `mask` says who is running now (None: everyone)."""

    def __init__(self, geometry: Geometry, blocks: np.ndarray, lanes: np.ndarray | None) -> None:
        self.geometry = geometry
        threads = geometry.threads
        everyone = np.arange(len(blocks) * threads, dtype=np.int64)
        chosen = everyone if lanes is None else lanes
        self.n = len(chosen)
        self.block_count = len(blocks)
        self.slot = chosen // threads  # which block of the batch
        self.thread = (chosen % threads).astype(np.int32)
        self.block = blocks[self.slot].astype(np.int32)  # linear number in the grid
        self.uniform_block = self.block_count == 1
        self.whole = lanes is None
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
