"""Timing on the CPU: in every round each contestant gets a pause, a run to wake up, and then a burst that is timed.

The pause matters with several threads: some libraries' threads keep spinning for a while after their work is done, and
whoever comes next would share a core with them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

Work = Callable[[], Any]

PAUSE = 0.25  # seconds, with more than one thread
BURST = 0.06  # seconds that a burst aims at
LONG = 20.0  # seconds from which a work is run once: beside that, warming up is nothing


def bursts(works: Mapping[str, Work], rounds: int, threads: int, pause: float = PAUSE) -> dict[str, float]:
    """Median seconds of each work over all its timed runs."""
    times: dict[str, list[float]] = {name: [] for name in works}
    runs = {}
    for name, work in works.items():
        first = _seconds(work)  # compiles, loads and warms
        if first > LONG:
            times[name], runs[name] = [first], 0
        else:
            runs[name] = max(1, min(50, int(BURST / max(_seconds(work), 1e-6))))
    for turn in range(rounds):
        names = list(works)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            if not runs[name]:
                continue
            if threads > 1:
                time.sleep(pause)
                works[name]()
            times[name] += [_seconds(works[name]) for _ in range(runs[name])]
    return {name: statistics.median(values) for name, values in times.items()}


def _seconds(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
