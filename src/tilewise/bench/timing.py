"""Medians over interleaved rounds: every candidate runs in every round, so that clock rates, heat and other processes
affect all of them alike. `medians` is the one loop; the other functions differ in how one candidate is timed.

    interleaved   runs back to back, by the host's clock or by events on a stream
    bursts        on a CPU, runs timed one by one, after a pause that lets other libraries' threads stop spinning
    on_card       by CUDA events, the host ahead of the card, L2 flushed first where operands would fit into it
    replayed      by CUDA events around a graph of several runs: the host has no part in it
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

Work = Callable[[], Any]
Name = TypeVar("Name")

PAUSE = 0.25  # seconds before a burst, with more than one thread
BURST = 0.06  # target seconds of a burst
LONG = 20.0  # seconds; a longer run is not repeated, because its warm-up is negligible
GAP_SECONDS = 0.01  # idle time before each timing, so that the card cools
HOLD_CYCLES = 600_000  # about 0.3 ms that the card waits while the host queues
FLUSH_FLOATS = 64 * 2**20  # 256 MB: reading them evicts everything else from L2
GRAPH_SECONDS = 4e-4  # target duration of a graph's replay


def medians(names: Iterable[Name], rounds: int, timed: Callable[[Name], Iterable[float]]) -> dict[Name, float]:
    """The median of all the seconds that `timed` gives for a name, over rounds in which every name is timed."""
    order = list(names)
    times: dict[Name, list[float]] = {name: [] for name in order}
    for _ in range(rounds):
        for name in order:
            times[name] += timed(name)
        order = order[1:] + order[:1]  # none follows the same one in every round
    return {name: statistics.median(values) for name, values in times.items()}


def interleaved(
    works: Mapping[str, Work], rounds: int, repeats: int, stream: Any = None, gap: float = 0.0
) -> dict[str, float]:
    """Rounds of `repeats` runs back to back. With a stream, by events: launches are queued, so that the host's time for
    one hides behind the one before. With a `gap`, that many idle seconds and one more run come first."""
    for work in works.values():
        work()  # compiles, loads and warms up

    def timed(name: str) -> list[float]:
        if gap:
            if stream is not None:
                stream.sync()
            time.sleep(gap)
            works[name]()
        return [host_seconds(works[name], repeats) if stream is None else _stream_seconds(works[name], repeats, stream)]

    return medians(works, rounds, timed)


def bursts(works: Mapping[str, Work], rounds: int, threads: int, pause: float = PAUSE) -> dict[str, float]:
    """Bursts of runs on a CPU, each run timed alone. With several threads a pause comes first: threads of some
    libraries keep spinning after their work, on a core that the next candidate needs."""
    once, runs = {}, {}
    for name, work in works.items():
        first = host_seconds(work)  # compiles, loads and warms up
        if first > LONG:
            once[name] = first
        else:
            runs[name] = max(1, min(50, int(BURST / max(host_seconds(work), 1e-6))))

    def timed(name: str) -> list[float]:
        if threads > 1:
            time.sleep(pause)
            works[name]()
        return [host_seconds(works[name]) for _ in range(runs[name])]

    found = medians(runs, rounds, timed) | once
    return {name: found[name] for name in works}


def on_card(
    torch: Any, works: Mapping[str, Work], rounds: int, *, cold: bool = False, hold: int = HOLD_CYCLES,
    gap: float = GAP_SECONDS, calls: int = 1,
) -> dict[str, float]:  # fmt: skip
    """Calls by CUDA events; the card waits `hold` cycles while the host queues them. `cold` flushes L2 before each."""
    other = torch.ones(FLUSH_FLOATS, device="cuda") if cold else None

    def timed(name: str) -> Iterable[float]:
        torch.cuda.synchronize()
        time.sleep(gap)
        works[name]()
        for _ in range(3 if cold else 1):
            if other is not None:
                other.sum()
            yield event_seconds(torch, works[name], calls, hold)

    return medians(works, rounds, timed)


def replayed(torch: Any, works: Mapping[str, Work], rounds: int = 5) -> dict[str, float]:
    """Seconds of a run inside CUDA graphs that take about GRAPH_SECONDS each."""
    graphs = {}
    for name, work in works.items():
        work()  # compiles and loads
        work()
        torch.cuda.synchronize()
        runs = max(1, min(20, int(GRAPH_SECONDS / max(event_seconds(torch, work), 1e-7))))
        graphs[name] = captured(torch, work, runs), runs
    return medians(works, rounds, lambda name: [event_seconds(torch, graphs[name][0].replay) / graphs[name][1]])


def captured(torch: Any, work: Work, runs: int) -> Any:
    """A CUDA graph of `runs` runs, replayed once."""
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        work()
        work()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(runs):
            work()
    graph.replay()
    torch.cuda.synchronize()
    return graph


def event_seconds(torch: Any, work: Work, calls: int = 1, hold: int = 0) -> float:
    """Seconds of one of `calls` calls by the card's clock, which starts after `hold` cycles."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    if hold:
        torch.cuda._sleep(hold)
    start.record()
    for _ in range(calls):
        work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / calls


def host_seconds(work: Work, calls: int = 1) -> float:
    """Seconds of one of `calls` calls by the host's clock."""
    start = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - start) / calls


def _stream_seconds(work: Work, calls: int, stream: Any) -> float:
    from tilewise.backends.cuda.timing import Stopwatch

    watch = Stopwatch(stream)
    for _ in range(calls):
        work()
    watch.mark()
    return watch.laps()[0] / calls
