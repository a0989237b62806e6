"""The sums of the tile at work, saved now and then, so that a kill costs at most a minute however long k is.

Two files in turn: while one is written the other is whole, and the journal's line, written after the file is synced,
says which. What saving takes decides how often it is done: about a fiftieth of the time.
"""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.errors import FileError
from tilewise.scale.journal import Journal
from tilewise.scale.targets import disk
from tilewise.system.files import fill, here, put

Array = np.ndarray[Any, np.dtype[Any]]

LEAST, MOST = 10.0, 55.0  # seconds between two
SHARE = 50  # of the time, one part in so many goes into saving


@dataclass(frozen=True)
class Begun:
    """A tile whose first phases are in saved sums."""

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
            raise FileError(f"{self.path} is not what the journal says: pass --restart to begin anew")

    def whole(self, nbytes: int) -> bool:
        """Whether the file is there and right; else the tile is made from its beginning."""
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

    def begun(self, records: list[dict[str, Any]], done: frozenset[int]) -> Begun | None:
        """What the last line about sums says, if its tile is not finished."""
        for record in reversed(records):
            words = [record.get(name) for name in ("tile", "phases", "slot", "seal")]
            if "slot" in record and all(isinstance(word, int) for word in words):
                tile, phases, slot, seal = words
                if tile in done or phases <= 0:
                    return None
                self._slot = 1 - slot % 2
                return Begun(tile, phases, self._path(slot), seal)
        return None

    def offer(self, tile: int, phases: int, sums: Array) -> None:
        """The sums after so many phases of a tile; saved if that is due."""
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
