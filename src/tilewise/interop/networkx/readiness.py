"""Whether the kernels for a size of graph are compiled.

If not, and if NetworkX is expected to finish before they would be, the call stays with NetworkX, and a thread compiles
them afterwards, by a call on a random graph of as many nodes and edges. Otherwise the call compiles them itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress

BUILDING = 1.5  # seconds of LLVM for the kernels of a kind of closure
PATIENCE, LEAST = 4.0, 1.0  # the thread waits this multiple of the call's expected time, and at least these seconds
WORTH = 0.02  # seconds of NetworkX in calls of a kind before its thread is started (which takes 0.1 to 1 ms)

Kind = tuple[str, bool, int, int]  # group of functions, weighted, binary logarithms of nodes and edges


class Readiness:
    """The kinds of graphs whose kernels are compiled or being compiled."""

    def __init__(self) -> None:
        self._ready: set[Kind] = set()
        self._building: dict[Kind, threading.Timer] = {}
        self._spent: dict[Kind, float] = {}  # by NetworkX, in calls of kinds whose build has not started
        self._lock = threading.Lock()

    def forget_threads(self) -> None:
        """After a fork: the child has no threads, and its copy of the lock may be held."""
        self._building, self._lock = {}, threading.Lock()

    def is_ready(self, kind: Kind) -> bool:
        return kind in self._ready

    def mark_ready(self, kind: Kind) -> None:
        """Record that the kernels of a kind have been used."""
        with self._lock:
            self._ready.add(kind)

    def build_in_background(self, kind: Kind, work: Callable[[], None], seconds: float) -> None:
        """Run `work` once in another thread, after a wait, if NetworkX has spent WORTH seconds on its kind."""
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
        """Wait until nothing is being compiled."""
        while self._building:
            for timer in list(self._building.values()):
                timer.join()


READINESS = Readiness()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=READINESS.forget_threads)
