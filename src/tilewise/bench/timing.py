"""Medians of interleaved rounds: all contestants run in every round, so clocks, heat and neighbours hit all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

Work = Callable[[], Any]


def interleaved(
    works: Mapping[str, Work], rounds: int, repeats: int, stream: Any = None, after: Callable[[], None] | None = None
) -> dict[str, float]:
    """Median seconds of each work. With a stream, by the card's events; without, by the host's clock."""
    for work in works.values():
        work()  # compiles, loads and warms
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds):
        names = list(works)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:  # nobody always follows the same neighbour
            times[name] += _times(works[name], repeats, stream)
        if after:
            after()
    return {name: statistics.median(values) for name, values in times.items()}


def _times(work: Work, repeats: int, stream: Any) -> list[float]:
    if stream is not None:
        from tilewise.engines.cuda.timing import time_each

        return time_each(work, stream, repeats)
    values = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        values.append(time.perf_counter() - start)
    return values
