"""Measured times."""

from __future__ import annotations

import time
from collections.abc import Callable


def least_seconds(work: Callable[[], object], runs: int = 5) -> float:
    """The least of a few times that something takes."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
