"""Checkpoints of the current tile's sums, so that a kill loses at most a minute of work for any k.

Two files alternate: while one is written the other is complete. The journal's record, written after the file is synced,
names the last complete one. Saving takes about a fiftieth of the time.
"""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.errors import FileError
from tilewise.scale.journal import Journal
from tilewise.scale.targets import disk
from tilewise.system.files import fill, here, put

LEAST, MOST = 10.0, 55.0  # seconds between two checkpoints
SHARE = 50  # the time between checkpoints is this multiple of the time to save one


@dataclass(frozen=True)
class SavedTile:
    """A tile whose first phases are in a checkpoint."""

    tile: int
    phases: int
    path: Path
    seal: int

    def load(self, sums: Array) -> None:
        memory = sums.reshape(-1).view(np.uint8).data
        file = here().open(self.path)
        try:
            whole = fill(file, memory, 0) == len(memory) and zlib.crc32(memory) == self.seal
        finally:
            here().close(file)
        if not whole:
            raise FileError(f"{self.path} does not match the journal: pass --restart to start over")

    def whole(self, nbytes: int) -> bool:
        """Whether the file exists and its checksum matches; if not, the tile is computed from its first phase."""
        try:
            self.load(np.empty(nbytes, np.uint8))
        except OSError:
            return False
        return True


class Checkpoint:
    def __init__(self, folder: Path, journal: Journal) -> None:
        self.folder, self.journal = folder, journal
        self._slot = 0
        self._wait, self._last = LEAST, time.monotonic()

    def last(self, records: list[dict[str, Any]], done: frozenset[int]) -> SavedTile | None:
        """The last checkpoint in the journal, if its tile is not finished."""
        for record in reversed(records):
            values = [record.get(name) for name in ("tile", "phases", "slot", "seal")]
            if "slot" in record and all(isinstance(value, int) for value in values):
                tile, phases, slot, seal = values
                if tile in done or phases <= 0:
                    return None
                self._slot = 1 - slot % 2
                return SavedTile(tile, phases, self._path(slot), seal)
        return None

    def offer(self, tile: int, phases: int, sums: Array) -> None:
        """Save the sums after `phases` phases of a tile, if a checkpoint is due."""
        now = time.monotonic()
        if now - self._last < self._wait:
            return
        path, memory = self._path(self._slot), sums.reshape(-1).view(np.uint8).data
        with disk(path):
            here().remove(path)
            file = here().create(path)
            try:
                put(file, memory, 0)
                here().sync(file)
            finally:
                here().close(file)
            here().sync_folder(self.folder)
        self.journal.append({"tile": tile, "phases": phases, "slot": self._slot, "seal": zlib.crc32(memory)})
        self._slot = 1 - self._slot
        self._last = time.monotonic()
        self._wait = min(MOST, max(LEAST, SHARE * (self._last - now)))

    def _path(self, slot: int) -> Path:
        return self.folder / f"sums-{slot % 2}"
