"""The card alone: works captured in CUDA graphs and replayed in turn, so that the host has no part in their time."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from typing import Any

AIM_SECONDS = 4e-4  # of one replay: several runs of a short work


def replayed(torch: Any, works: Mapping[str, Callable[[], Any]], rounds: int = 5) -> dict[str, float]:
    """Median seconds of one run of each work, over rounds in which all of them have their turn."""
    graphs = {name: _captured(torch, work) for name, work in works.items()}
    laps: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds):
        names = list(graphs)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            graph, runs = graphs[name]
            laps[name].append(_seconds(torch, graph.replay) / runs)
    return {name: statistics.median(values) for name, values in laps.items()}


def _captured(torch: Any, work: Callable[[], Any]) -> tuple[Any, int]:
    """A graph of as many runs as a replay should have."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        work()  # compiles and loads
        work()
    torch.cuda.synchronize()
    runs = max(1, min(20, int(AIM_SECONDS / max(_seconds(torch, work), 1e-7))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(runs):
            work()
    graph.replay()
    torch.cuda.synchronize()
    return graph, runs


def _seconds(torch: Any, work: Callable[[], Any]) -> float:
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    stop.record()
    stop.synchronize()
    return float(start.elapsed_time(stop)) / 1e3
