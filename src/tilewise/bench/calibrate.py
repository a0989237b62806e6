"""The measurements of `tilewise tune --calibrate` on a card: the plan of every family, for random products.

The sample has as many products that are planned for one family as for any other, so that rarely chosen kernels are
calibrated too.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tilewise.backends.cuda.builders import build, workers_for
from tilewise.bench.drawn_problems import random_problem
from tilewise.bench.timing import Work, event_seconds, replayed
from tilewise.bench.torch_products import torch_for
from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Layout, Problem
from tilewise.errors import TilewiseError
from tilewise.kernels.choosing import ranked_plans
from tilewise.kernels.recipes import recipe_of
from tilewise.planning.launchers import launcher_of

BATCH = 64  # products whose kernels are compiled together
ROUNDS = 5
SLOW = 20.0  # plans slower than the fastest by this factor are timed once
AHEAD = 3  # products by which a family may exceed the mean of all families
MOST_LAUNCHES = 40  # plans with more launches are not timed
MOST_BYTES = 4e9

Measured = list[tuple[Plan, float]]  # plans of one product, the chosen one first, with their seconds on the card


def problem_of(seed: int | str, number: int) -> Problem:
    """A random problem as it is planned: members that share N are folded into one product."""
    made = random_problem(random.Random(f"{seed} {number}"))
    return made.folded if made.stack and not made.groups else made


def measured(seconds: float, seed: int | str, machine: Machine) -> Iterator[tuple[int, Measured]]:
    """For `seconds`: the number of a random problem, and every family's plan of it with its measured time."""
    torch, end = torch_for("tilewise tune --calibrate"), time.monotonic() + seconds
    drawn = _drawn(seed, machine)
    while time.monotonic() < end:
        batch = [next(drawn) for _ in range(BATCH)]
        texts = {text for _, plans in batch for plan in plans for text in recipe_of(plan).sources}
        build(sorted(texts), machine.arch, workers_for(len(texts)), lambda *_: None)
        for number, plans in batch:
            if time.monotonic() < end:
                yield number, _timed(torch, plans)


def _drawn(seed: int | str, machine: Machine) -> Iterator[tuple[int, list[Plan]]]:
    """Problems with their plans; a problem is skipped if its family has been drawn AHEAD times too often."""
    chosen, number = Counter[str](), 0
    while True:
        number += 1
        try:
            plans = [x for x in ranked_plans(problem_of(seed, number), machine) if not x.real]
        except TilewiseError:  # the semiring does not support the dtype
            continue
        timeable = [x for x in plans if len(recipe_of(x).steps) <= MOST_LAUNCHES]
        if not timeable or timeable[0] is not plans[0] or plans[0].problem.least_bytes > MOST_BYTES:
            continue
        if chosen[plans[0].family] <= chosen.total() / max(1, len(chosen)) + AHEAD:
            chosen[plans[0].family] += 1
            yield number, timeable


def _timed(torch: Any, plans: list[Plan]) -> Measured:
    """Measured seconds of each plan, interleaved, on the same random operands."""
    operands = Operands(torch, plans[0].problem)
    works, once = dict[str, Work](), dict[str, float]()
    for plan in plans:
        work = works[plan.family] = operands.work(plan)
        work()  # compiles and loads
        once[plan.family] = event_seconds(torch, work)
    least = max(min(once.values()), 1e-4)
    with torch.no_grad():
        seconds = once | replayed(torch, {x: work for x, work in works.items() if once[x] <= SLOW * least}, ROUNDS)
    return [(plan, seconds[plan.family]) for plan in plans]


class Operands:
    """The operands of a problem on a card."""

    def __init__(self, torch: Any, problem: Problem) -> None:
        p, self._torch = problem, torch
        self._held = {
            "M": _memory(torch, p.m, p.k, p.layout_m, p.stack, torch_name(p.dtype_m)),
            "N": _memory(torch, p.k, p.n, p.layout_n, p.stack_n, torch_name(p.dtype_n)),
            "P": _memory(torch, p.m, p.n, p.layout_p, p.stack, torch_name(p.result)),
        }
        if p.groups:
            length = p.m if p.groups.along == "rows" else p.k
            ends = torch.randint(0, length + 1, (p.groups.count,), device="cuda").sort().values
            ends[-1] = length
            self._held["offsets"] = ends.to(torch.int64 if p.groups.wide else torch.int32)
        if p.epilogue.bias:
            self._held["bias"] = torch.randn(p.n, device="cuda").to(getattr(torch, p.epilogue.bias.name))

    def work(self, plan: Plan) -> Work:
        """A launch of the plan."""
        torch, launcher = self._torch, launcher_of(plan, "cuda:0")
        scratch = torch.empty(max(1, launcher.scratch_bytes), dtype=torch.uint8, device="cuda")
        addresses = {name: tensor.data_ptr() for name, tensor in self._held.items()}

        def launch() -> None:
            launcher(torch.cuda.current_stream().cuda_stream, scratch=scratch.data_ptr(), **addresses)

        return launch


def _memory(torch: Any, rows: int, cols: int, layout: Layout, stack: tuple[int, ...], name: str) -> Any:
    """A tensor of random numbers with this layout."""
    number = getattr(torch, name)
    steps = (*layout.stack, layout.row, layout.col)
    extents = (*stack, rows, cols)
    cells = 1 + sum((extent - 1) * step for extent, step in zip(extents, steps, strict=True))
    first = layout.misalignment // number.itemsize
    if number.is_floating_point:
        wide = torch.float32 if number.itemsize == 1 else number
        flat = torch.randn(cells + first, device="cuda", dtype=wide).to(number)
    else:
        low, high = (0, 2) if name == "bool" else (0 if name == "uint8" else -99, 100)
        flat = torch.randint(low, high, (cells + first,), device="cuda").to(number)
    return flat.as_strided(extents, steps, first)


def torch_name(dtype: Any) -> str:
    return "bool" if dtype.name.startswith("bool") else str(dtype.name)
