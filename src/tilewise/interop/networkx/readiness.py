"""Whether kernels are there for a graph: a first call that NetworkX would end sooner than they are built is left to it.

They are built behind it, on a graph of as many nodes and edges, once NetworkX should be done; calls after that run
here. What takes NetworkX longer than building takes is run here at once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress

BUILDING = 1.5  # seconds that LLVM may take for the kernels of one kind of closure, where the disk has none
PATIENCE, LEAST = 4.0, 1.0  # NetworkX may take so many times as long as expected, and so many seconds, undisturbed
WORTH = 0.02  # seconds of NetworkX in calls of a kind before a thread is started for it (0.1 to 1 ms of its own)

Kind = tuple[str, bool, int, int]  # which functions, weighted, and the binary logarithms of nodes and edges


class Readiness:
    """Kinds of graphs whose kernels have been used, or are being built."""

    def __init__(self) -> None:
        self._ready: set[Kind] = set()
        self._building: dict[Kind, threading.Timer] = {}
        self._spent: dict[Kind, float] = {}  # by NetworkX, in calls of kinds that nobody builds yet
        self._lock = threading.Lock()

    def forget_threads(self) -> None:
        """In a forked child: nobody builds there what was being built, and the lock may have been held."""
        self._building, self._lock = {}, threading.Lock()

    def is_ready(self, kind: Kind) -> bool:
        return kind in self._ready

    def met(self, kind: Kind) -> None:
        """Its kernels have been used."""
        with self._lock:
            self._ready.add(kind)

    def build_behind(self, kind: Kind, work: Callable[[], None], seconds: float) -> None:
        """Do the work in another thread, once, after that many seconds, if calls of this kind are worth a thread."""
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
        with suppress(Exception):  # whatever it is, a call that is run here will say it to its caller
            work()
        with self._lock:
            self._ready.add(kind)
            self._building.pop(kind, None)

    def wait(self) -> None:
        """Until nothing is being built."""
        while self._building:
            for timer in list(self._building.values()):
                timer.join()


READINESS = Readiness()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=READINESS.forget_threads)
