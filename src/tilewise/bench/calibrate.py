"""`tilewise tune --calibrate`: the plan of every kernel family timed on random products, to correct the cost models."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from typing import Any

from tilewise.bench.random_shapes import RandomProduct, draw, draw_stack
from tilewise.bench.timing import captured, event_seconds
from tilewise.bench.torch_products import Case, operands, torch_for
from tilewise.bench.tune import compile_all
from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.kernels.detours import recipe_of
from tilewise.kernels.registry import FAMILIES
from tilewise.planning.launchers import launcher_of

BATCH = 12  # shapes whose kernels are compiled together
REPLAYS = 5
STACKS = 0.4  # share of what is drawn
MOST_LAUNCHES = 40  # plans of more are not timed


def measured(
    seconds: float, seed: int, dtypes: tuple[str, ...], machine: Machine
) -> Iterator[tuple[RandomProduct, list[tuple[Plan, float]]]]:
    """Until the time is over: a product, and (plan, seconds on the card) of every family that takes it."""
    rng, end = random.Random(seed), time.monotonic() + seconds
    torch = torch_for("tilewise tune --calibrate")
    while time.monotonic() < end:
        batch = []
        for _ in range(BATCH):
            product = draw_stack(rng, dtypes) if rng.random() < STACKS else draw(rng, dtypes)
            stack = (product.members,) if product.members > 1 else ()
            M, N = operands(torch, Case(product.shape, product.layouts), getattr(torch, product.dtype), stack)
            batch.append((product, M, N, _plans(M, N, product.precision, machine)))
        compile_all([plan for *_, plans in batch for plan in plans], machine.arch)
        for product, M, N, plans in batch:
            P = torch.empty(*M.shape[:-1], product.n, dtype=M.dtype, device="cuda")
            yield product, [(plan, _graphed(torch, plan, (M, N, P))) for plan in plans]


def _plans(M: Any, N: Any, precision: str, machine: Machine) -> list[Plan]:
    """The best of each family by its own model, uncorrected."""
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
    runs = max(1, min(20, int(2e10 / plan.problem.steps)) + 1)

    def work() -> None:
        launcher(torch.cuda.current_stream().cuda_stream, M=M, N=N, P=P, scratch=scratch.data_ptr())

    graph = captured(torch, work, runs)
    return statistics.median(event_seconds(torch, graph.replay) / runs for _ in range(REPLAYS))
