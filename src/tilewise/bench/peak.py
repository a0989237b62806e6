"""The maximum of a value that a thread samples, such as the resident memory of a process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path


class Peak:
    """`largest` of what `sample` returned while this was open."""

    def __init__(self, sample: Callable[[], int], every: float = 0.01) -> None:
        self.largest = 0
        self._sample, self._every, self._ended = sample, every, threading.Event()

    def __enter__(self) -> Peak:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self._every):
            self.largest = max(self.largest, self._sample())


def resident(pid: int) -> int:
    """Resident bytes of a process; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def most_resident(pid: int) -> int:
    """The largest resident size so far. (getrusage would include the memory of the parent it forked from.)"""
    try:
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return 0
