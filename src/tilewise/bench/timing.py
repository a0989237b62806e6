"""Medians of interleaved rounds: all contestants run in every round, so clocks, heat and neighbours hit all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

Work = Callable[[], Any]


def interleaved(
    works: Mapping[str, Work], rounds: int, repeats: int, stream: Any = None, gap: float = 0.0
) -> dict[str, float]:
    """Median seconds of each work, over rounds of `repeats` runs. With a stream, by the card's events; the runs of a
    round are queued back to back between two of them, so that the host's share of a launch hides behind the one before.
    With a `gap`, that many idle seconds and one more run come before each: nobody starts on a card another has heated.
    """
    for work in works.values():
        work()  # compiles, loads and warms
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds):
        names = list(works)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:  # nobody always follows the same neighbour
            if gap:
                if stream is not None:
                    stream.sync()
                time.sleep(gap)
                works[name]()
            times[name].append(_round(works[name], repeats, stream))
    return {name: statistics.median(values) for name, values in times.items()}


def _round(work: Work, repeats: int, stream: Any) -> float:
    """Seconds of one run, from a round of them."""
    if stream is not None:
        from tilewise.backends.cuda.timing import Stopwatch

        watch = Stopwatch(stream)
        for _ in range(repeats):
            work()
        watch.mark()
        return watch.laps()[0] / repeats
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - start) / repeats
