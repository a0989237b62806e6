"""Stacks of products with a few rows each, of any algebra that adds up in four bytes: N is read once, as it lies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.by_configs import ByConfigs
from tilewise.kernels.capabilities import Capabilities, Condition
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.swept import model
from tilewise.kernels.swept.recipe import launches
from tilewise.kernels.swept.text import render_swept


class Swept(ByConfigs):
    name = "swept"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    can = Capabilities(
        one_dtype=True, partial_bytes=(4, 4), stores_anywhere=True,
        problem=(
            Condition(lambda p: p.m <= model.HELD[-1], f"is for up to {model.HELD[-1]} rows"),
            Condition(lambda p: p.n <= 1 or abs(p.layout_n.row) >= abs(p.layout_n.col), "reads rows of N"),
        ),
        precisions=("ieee", "high"),  # float32 is added up in several parts of k
    )  # fmt: skip

    def best(self, problem: Problem, machine: Machine) -> tuple[float, model.SweptConfig]:
        return model.best_config(problem, machine)

    def geometry(self, problem: Problem, config: model.SweptConfig) -> Geometry:
        return model.geometry(config)

    def tiles(self, problem: Problem, config: model.SweptConfig) -> str:
        return f"strips of {config.across} columns"

    def offered(self, problem: Problem, machine: Machine) -> bool:
        return problem.members > 1 and problem.k <= model.LONGEST  # one product alone has kernels of its own

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        """One block, or the bytes."""
        f = model.FIGURES
        return f.start + max(f.block, f.reading * problem.least_bytes / machine.bandwidth)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        return (render_swept.named(problem.algebra, few, False) for few in model.HELD)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        return tuple(model.configs(problem))

    def seconds(self, config: Any, problem: Problem, machine: Machine) -> float:
        return model.seconds(config, problem, machine)
