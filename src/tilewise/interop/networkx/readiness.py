"""Whether the kernels for a size of graph are compiled. A call that NetworkX finishes before they are stays with it.

They are then compiled in a thread, by a call on a random graph of as many nodes and edges, once NetworkX should be
done; later calls run here. A call that takes NetworkX longer than compiling runs here at once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress

BUILDING = 1.5  # seconds LLVM may take for the kernels of one kind of closure that are not cached on disk
PATIENCE, LEAST = 4.0, 1.0  # the thread waits this factor of the expected time, and at least these seconds
WORTH = 0.02  # seconds of NetworkX in calls of a kind before a thread is started for it (0.1 to 1 ms of its own)

Kind = tuple[str, bool, int, int]  # which functions, weighted, and the binary logarithms of nodes and edges


class Readiness:
    """Kinds of graphs whose kernels have been used, or are being built."""

    def __init__(self) -> None:
        self._ready: set[Kind] = set()
        self._building: dict[Kind, threading.Timer] = {}
        self._spent: dict[Kind, float] = {}  # by NetworkX, in calls of kinds whose build has not started
        self._lock = threading.Lock()

    def forget_threads(self) -> None:
        """In a forked child: its threads do not exist, and the lock may have been held."""
        self._building, self._lock = {}, threading.Lock()

    def is_ready(self, kind: Kind) -> bool:
        return kind in self._ready

    def met(self, kind: Kind) -> None:
        """Its kernels have been used."""
        with self._lock:
            self._ready.add(kind)

    def build_behind(self, kind: Kind, work: Callable[[], None], seconds: float) -> None:
        """Start the work once in another thread, after a wait, if calls of this kind have cost enough to pay for it."""
        with self._lock:
            if kind in self._ready or kind in self._building:
                return
            spent = self._spent[kind] = self._spent.get(kind, 0.0) + seconds
            if spent < WORTH:
                return
            timer = threading.Timer(self._wait(seconds), self._build, (kind, work))
            timer.daemon = True
            self._building[kind] = timer
        timer.start()

    @staticmethod
    def _wait(seconds: float) -> float:
        return max(LEAST, PATIENCE * seconds)

    def _build(self, kind: Kind, work: Callable[[], None]) -> None:
        with suppress(Exception):  # a call that runs here raises it to its caller
            work()
        with self._lock:
            self._ready.add(kind)
            self._building.pop(kind, None)

    def wait(self) -> None:
        """Wait until nothing is being built."""
        while self._building:
            for timer in list(self._building.values()):
                timer.join()


READINESS = Readiness()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=READINESS.forget_threads)
