"""Random shapes on a card: every family's own plan timed, so that a table can say how far each model is off."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tilewise.backends.cuda.compile import compile_source
from tilewise.bench.card_shapes import operand, torch_for
from tilewise.bench.random_shapes import Shape, draw, draw_stack
from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.kernels.detours import recipe_of
from tilewise.kernels.registry import FAMILIES
from tilewise.planning.launchers import launcher_of

BATCH = 12  # shapes whose kernels are compiled together
REPLAYS = 5
STACKS = 0.4  # share of what is drawn
MOST_LAUNCHES = 40  # of a plan that is worth timing


def measured(
    seconds: float, seed: int, dtypes: tuple[str, ...], machine: Machine
) -> Iterator[tuple[Shape, list[tuple[Plan, float]]]]:
    """Until the time is over: a shape, and (plan, seconds on the card) of every family that takes it."""
    rng, end = random.Random(seed), time.monotonic() + seconds
    torch = torch_for("tilewise tune --calibrate")
    while time.monotonic() < end:
        batch = []
        for _ in range(BATCH):
            shape = draw_stack(rng, dtypes) if rng.random() < STACKS else draw(rng, dtypes)
            number = getattr(torch, shape.dtype)
            M, N = _operands(torch, shape, number)
            batch.append((shape, M, N, _plans(M, N, shape.precision, machine)))
        texts = {text for *_, plans in batch for plan in plans for text in recipe_of(plan).sources}
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda text: compile_source(text, machine.arch), texts))
        for shape, M, N, plans in batch:
            P = torch.empty(*M.shape[:-1], shape.n, dtype=M.dtype, device="cuda")
            yield shape, [(plan, _graphed(torch, plan, (M, N, P))) for plan in plans]


def _operands(torch: Any, shape: Shape, dtype: Any) -> tuple[Any, Any]:
    made = []
    for rows, cols, layout in ((shape.m, shape.k, shape.layouts[0]), (shape.k, shape.n, shape.layouts[1])):
        if shape.members == 1:
            made.append(operand(torch, rows, cols, layout, 0, dtype))
        else:
            lines = (cols, rows) if layout == "T" else (rows, cols)
            whole = torch.randn(shape.members, *lines, device="cuda", dtype=torch.float32).to(dtype)
            made.append(whole.mT if layout == "T" else whole)
    return made[0], made[1]


def _plans(M: Any, N: Any, precision: str, machine: Machine) -> list[Plan]:
    """The best of each family by its own model, as the model made it."""
    from tilewise.core.options import Options
    from tilewise.dispatch.bind import understand

    problem = understand(M, N, Options(precision=precision)).problem
    found = []
    for family in FAMILIES:
        if not family.teaches and family.refusal(problem, machine) is None:
            plan = family.plan(problem, machine, None, None)
            if len(recipe_of(plan).steps) <= MOST_LAUNCHES:
                found.append(plan)
    return found


def _graphed(torch: Any, plan: Plan, tensors: tuple[Any, Any, Any]) -> float:
    """Seconds of one product inside a CUDA graph of several: the card alone."""
    launcher = launcher_of(plan, "cuda:0")
    scratch = torch.empty(max(1, launcher.scratch_bytes), dtype=torch.uint8, device="cuda")
    M, N, P = (x.data_ptr() for x in tensors)
    times = max(1, min(20, int(2e10 / plan.problem.steps)) + 1)
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()

    def work() -> None:
        launcher(stream.cuda_stream, M=M, N=N, P=P, scratch=scratch.data_ptr())

    torch.cuda.synchronize()
    work()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(times):
            work()
    graph.replay()
    laps = []
    for _ in range(REPLAYS):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        stop.record()
        stop.synchronize()
        laps.append(start.elapsed_time(stop) / 1e3 / times)
    return float(sorted(laps)[REPLAYS // 2])
