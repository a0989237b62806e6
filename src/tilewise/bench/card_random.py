"""Suite `random`: random products on a card beside both of the vendor's libraries, by three clocks.

`graph`: the card alone, by replays of a CUDA graph. `queued`: back-to-back calls, as in a model; the slower of host and
card sets the time. `first`: the first call of a shape until it returns: binding, planning and, if a kernel is not in
the cache, compiling.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from tilewise.api import matmul, plan
from tilewise.bench.random_shapes import RandomProduct, drawn, kinds_given
from tilewise.bench.suites import Piece, Request, Row, speed_row
from tilewise.bench.timing import Work, captured, event_seconds, host_seconds, medians
from tilewise.bench.torch_products import CUBLAS, CUBLASLT, OURS, SAMPLE, ProductCase, operands, relative, torch_for
from tilewise.system.quantities import seconds

HOLD_CYCLES = 200_000  # about 0.1 ms that the card waits while the first calls are queued
QUEUE_SECONDS, MOST_CALLS = 4e-3, 200  # of one queue of calls
GRAPH_CALLS = 20  # at most
SHAPE_SECONDS, LEAST_ROUNDS = 0.25, 3  # for all rounds of a shape; a hundred shapes take half a minute
LOOSEST = {  # largest relative errors
    "bfloat16": 1e-2, "float16": 2e-3, "float32": 1e-5, "tf32": 2e-3, "float64": 1e-12, "complex64": 1e-5,
    "complex128": 1e-12,
}  # fmt: skip


def pieces(request: Request) -> Iterator[Piece]:
    for product in drawn(request.count, request.seed, kinds_given(request.dtypes)):
        yield partial(three_clocks, product, request.seed, request.rounds(3, 7))


def three_clocks(product: RandomProduct, seed: int, rounds: int) -> list[Row]:
    """One row: our time and those of the vendor's two libraries by each clock, and the plan."""
    torch = torch_for("bench random")
    number, precision = getattr(torch, product.dtype), product.precision
    torch.manual_seed(seed)
    M, N = operands(torch, ProductCase(product.shape, product.layouts), number)
    P, theirs = (torch.full((product.m, product.n), float("nan"), device="cuda", dtype=number) for _ in range(2))
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.cuda.synchronize()
    first = host_seconds(lambda: matmul(M, N, out=P, precision=precision))

    def vendor() -> Any:
        return torch.mm(M, N, out=theirs)

    works: dict[str, Work] = {OURS: lambda: matmul(M, N, out=P, precision=precision), CUBLAS: vendor, CUBLASLT: vendor}
    vendor()
    sample = torch.randperm(product.m, device="cuda")[:SAMPLE]
    wide = torch.complex128 if number.is_complex else torch.float64
    exact = M[sample].to(wide) @ N.to(wide)
    errors = relative(P[sample], exact), relative(theirs[sample], exact)
    if not errors[0] < LOOSEST[product.kind]:
        raise AssertionError(f"tilewise is wrong at {product.name}: relative error {errors[0]:.2e}")
    with torch.no_grad():
        calls, rounds = repetitions(max(_once(torch, work) for work in works.values()), rounds)
        queued = _queued(torch, works, calls, rounds)
        graph = _graphed(torch, works, min(calls, GRAPH_CALLS), rounds)
    return [row(product, graph, queued, first, errors, plan(M, N, precision=precision))]


def repetitions(slowest: float, rounds: int) -> tuple[int, int]:
    """(calls of a queue, rounds) so that both clocks of all three candidates take SHAPE_SECONDS, but at least
    LEAST_ROUNDS; `slowest`: seconds of the slowest candidate's call."""
    calls = int(max(2, min(MOST_CALLS, QUEUE_SECONDS / slowest)))
    each = 3 * slowest * (calls + 1 + min(calls, GRAPH_CALLS))
    return calls, max(min(rounds, LEAST_ROUNDS), min(rounds, int(SHAPE_SECONDS / each)))


def _once(torch: Any, work: Work) -> float:
    """Seconds of a call until the card has finished, host time included."""
    work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def row(
    product: RandomProduct, graph: dict[str, float], queued: dict[str, float], first: float,
    errors: tuple[float, float], plan: Any,
) -> Row:  # fmt: skip
    """The row of one shape; ratios above 1: ours is faster than the better of the two libraries."""
    best = {name: min(times[CUBLAS], times[CUBLASLT]) for name, times in (("graph", graph), ("queued", queued))}
    made = speed_row(plan.kernel, product.shape, product.kind, graph[OURS])
    return {name: made[name] for name in ("kernel", "tile", "shape", "dtype", "seconds", "tflops")} | {
        "case": product.name,
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


def _select_blas(torch: Any, name: str) -> None:
    """Select the library that torch.mm calls, outside of the timing."""
    if name != OURS:
        torch.backends.cuda.preferred_blas_library(name)


def _queued(torch: Any, works: dict[str, Work], calls: int, rounds: int) -> dict[str, float]:
    def timed(name: str) -> list[float]:
        _select_blas(torch, name)
        works[name]()
        return [event_seconds(torch, works[name], calls, HOLD_CYCLES)]

    return medians(works, rounds, timed)


def _graphed(torch: Any, works: dict[str, Work], calls: int, rounds: int) -> dict[str, float]:
    graphs = {}
    for name, work in works.items():
        _select_blas(torch, name)
        graphs[name] = captured(torch, work, calls)
    return medians(works, rounds, lambda name: [event_seconds(torch, graphs[name].replay) / calls])
