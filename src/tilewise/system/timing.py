"""Measured times."""

from __future__ import annotations

import time
from collections.abc import Callable

CLOCK = 4.0  # a process that waits or shares its core may take this many times its CPU limit by the clock


def least_seconds(work: Callable[[], object], runs: int = 5) -> float:
    """The least time of a few runs."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


class Elapsed:
    """What a process has used of a time limit since this was made: CPU seconds, so that a limit does not depend on what
    else the machine does, or 1 / CLOCK of the time by the clock where that is more."""

    def __init__(self, process: int | None = None) -> None:
        self._clock = None if process is None else (~process << 3) | 2  # clock_getcpuclockid(3) on Linux
        self._cpu, self._wall = self._used(), time.monotonic()

    def seconds(self) -> float:
        wall = time.monotonic() - self._wall
        cpu = self._used()
        return wall if cpu is None or self._cpu is None else max(cpu - self._cpu, wall / CLOCK)

    def _used(self) -> float | None:
        """CPU seconds of the process; None where another process has no such clock, or has ended."""
        if self._clock is None:
            return time.process_time()
        try:
            return time.clock_gettime(self._clock)
        except (AttributeError, OSError):
            return None
