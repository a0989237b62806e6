"""One random shape on a card beside both of the vendor's libraries, by three clocks.

`graph`: the card alone, replays of a CUDA graph. `queued`: calls one behind the other, as a model makes them; whoever
is slower, host or card, sets the time. `first`: a shape never seen, from the call until it returns: understanding,
planning and, where a kernel is not there yet, compiling.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from tilewise.bench.card_shapes import CUBLAS, CUBLASLT, OURS, operand, torch_for
from tilewise.bench.random_shapes import Shape
from tilewise.system.quantities import seconds

HOLD_CYCLES = 200_000  # about 0.1 ms: the card waits while the first calls are queued
QUEUE_SECONDS, MOST_CALLS = 4e-3, 200  # of one queue
IN_A_GRAPH = 20  # calls, at most
SHAPE_SECONDS, LEAST_ROUNDS = 0.25, 3  # of all rounds of a shape, so that a hundred of them take half a minute
SAMPLE = 128  # rows of P that are held against float64
LOOSEST = {"bfloat16": 1e-2, "float16": 2e-3, "float32": 1e-5, "tf32": 2e-3, "float64": 1e-12}  # relative errors

Work = Callable[[], Any]


def contest(shape: Shape, seed: int, rounds: int) -> list[dict[str, Any]]:
    """One row: ours and the better of the vendor's two by each clock, and the plan."""
    torch = torch_for("bench random")
    from tilewise.api import matmul, plan

    number, precision = getattr(torch, shape.dtype), shape.precision
    torch.manual_seed(seed)
    M = operand(torch, shape.m, shape.k, shape.layouts[0], 0, number)
    N = operand(torch, shape.k, shape.n, shape.layouts[1], 0, number)
    P, theirs = (torch.full((shape.m, shape.n), float("nan"), device="cuda", dtype=number) for _ in range(2))
    torch.backends.cuda.matmul.allow_tf32 = shape.precision == "tf32"
    torch.cuda.synchronize()
    start = time.perf_counter()
    matmul(M, N, out=P, precision=precision)
    first = time.perf_counter() - start

    def vendor() -> Any:
        return torch.mm(M, N, out=theirs)

    works: dict[str, Work] = {OURS: lambda: matmul(M, N, out=P, precision=precision), CUBLAS: vendor, CUBLASLT: vendor}
    vendor()
    errors = _errors(torch, M, N, P, theirs)
    if not errors[0] < LOOSEST[shape.kind]:
        raise AssertionError(f"tilewise is wrong at {shape.name}: relative error {errors[0]:.2e}")
    with torch.no_grad():
        calls, rounds = repetitions(max(_once(torch, work) for work in works.values()), rounds)
        queued = _queued(torch, works, calls, rounds)
        graph = _graphed(torch, works, min(calls, IN_A_GRAPH), rounds)
    chosen = plan(M, N, precision=precision)
    return [row(shape, graph, queued, first, errors, chosen)]


def repetitions(slowest: float, rounds: int) -> tuple[int, int]:
    """(calls of a queue, rounds) by the seconds of the slowest contestant's call: both clocks of all three within
    SHAPE_SECONDS, where that leaves enough of them."""
    calls = int(max(2, min(MOST_CALLS, QUEUE_SECONDS / slowest)))
    each = 3 * slowest * (calls + 1 + min(calls, IN_A_GRAPH))
    return calls, max(min(rounds, LEAST_ROUNDS), min(rounds, int(SHAPE_SECONDS / each)))


def _once(torch: Any, work: Work) -> float:
    """Seconds of a call that is waited for, the host's share among them."""
    work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def row(
    shape: Shape,
    graph: dict[str, float],
    queued: dict[str, float],
    first: float,
    errors: tuple[float, float],
    plan: Any,
) -> dict[str, Any]:
    """What is kept of one shape; ratios above 1 say that ours is faster than the better of the two."""
    best = {name: min(times[CUBLAS], times[CUBLASLT]) for name, times in (("graph", graph), ("queued", queued))}
    steps = shape.m * shape.k * shape.n
    return {
        "kernel": plan.kernel,
        "tile": 0,
        "shape": [shape.m, shape.k, shape.n],
        "case": shape.name,
        "dtype": shape.kind,
        "seconds": graph[OURS],
        "tflops": 2 * steps / graph[OURS] / 1e12,
        "graph_seconds": graph,
        "queued_seconds": queued,
        "first_seconds": first,
        "graph_ratio": best["graph"] / graph[OURS],
        "queued_ratio": best["queued"] / queued[OURS],
        "relative_error": errors[0],
        "vendor_error": errors[1],
        "predicted_seconds": plan.predicted,
        "plan": f"{plan.cut}, {plan.grid[0]}x{plan.grid[1]} blocks, expected {seconds(plan.predicted)}; {plan.why}",
        "notes": list(plan.notes),
    }


def _errors(torch: Any, M: Any, N: Any, P: Any, theirs: Any) -> tuple[float, float]:
    """Relative errors of ours and theirs on a sample of rows, against float64."""
    some = torch.randperm(M.shape[0], device="cuda")[:SAMPLE]
    exact = M[some].double() @ N.double()
    norm = exact.norm()
    return tuple(float((x[some].double() - exact).norm() / norm) for x in (P, theirs))  # type: ignore[return-value]


def _choose(torch: Any, name: str) -> None:
    """Which library torch.mm goes to; not part of what is timed."""
    if name != OURS:
        torch.backends.cuda.preferred_blas_library(name)


def _rounds(torch: Any, works: dict[str, Work], rounds: int, timed: Callable[[Work], float]) -> dict[str, float]:
    """Medians of rounds in which everybody has a turn, the order rotating."""
    times: dict[str, list[float]] = {name: [] for name in works}
    names = list(works)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            _choose(torch, name)
            times[name].append(timed(works[name]))
    return {name: statistics.median(values) for name, values in times.items()}


def _by_events(torch: Any, work: Work, calls: int, hold: bool) -> float:
    """Seconds of one of `calls` calls of `work`, by the card's clock."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    if hold:
        torch.cuda._sleep(HOLD_CYCLES)
    start.record()
    for _ in range(calls):
        work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / calls


def _queued(torch: Any, works: dict[str, Work], calls: int, rounds: int) -> dict[str, float]:
    def timed(work: Work) -> float:
        work()
        return _by_events(torch, work, calls, hold=True)

    return _rounds(torch, works, rounds, timed)


def _graphed(torch: Any, works: dict[str, Work], calls: int, rounds: int) -> dict[str, float]:
    replays = {}
    for name, work in works.items():
        stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        _choose(torch, name)
        with torch.cuda.stream(stream):
            work()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            for _ in range(calls):
                work()
        graph.replay()
        replays[name] = graph.replay
    return _rounds(torch, replays, rounds, lambda replay: _by_events(torch, replay, 1, hold=False) / calls)
