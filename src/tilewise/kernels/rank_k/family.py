"""Stacks of products with a short k, of any algebra that adds up in four bytes: rows of P from registers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.by_configs import ByConfigs
from tilewise.kernels.capabilities import Capabilities, Condition
from tilewise.kernels.rank_k import model
from tilewise.kernels.rank_k.recipe import launches
from tilewise.kernels.rank_k.text import render_rank_k
from tilewise.kernels.shared.placed import Operands


class RankK(ByConfigs):
    name = "rank_k"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    can = Capabilities(
        one_dtype=True, partial_bytes=(4, 4), least_k=1, most_k=model.DEPTHS[-1], stores_anywhere=True,
        problem=(Condition(lambda p: p.m <= 1 or abs(p.layout_p.row) >= abs(p.layout_p.col), "stores rows of P"),),
        precisions=("ieee", "high"),  # float32 is added up one after the other, k being short
    )  # fmt: skip

    def best(self, problem: Problem, machine: Machine) -> tuple[float, model.RankKWay]:
        return model.best_config(problem, machine)

    def geometry(self, problem: Problem, config: model.RankKWay) -> Geometry:
        return model.geometry(problem, config)

    def tiles(self, problem: Problem, config: model.RankKWay) -> str:
        return f"blocks of {config.rows} rows, {config.columns} columns a thread"

    def offered(self, problem: Problem, machine: Machine) -> bool:
        return problem.members > 1  # one product alone has kernels of its own for every size

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        """One block, or the bytes."""
        f = model.FIGURES
        return f.start + max(f.block, f.reading * problem.least_bytes / machine.bandwidth)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        for deep in model.DEPTHS:
            for columns in model.COLUMNS:
                if deep * columns <= model.MOST_HELD:
                    yield render_rank_k.named(problem.algebra, deep, columns, False)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        return tuple(model.configs(problem))

    def seconds(self, config: Any, problem: Problem, machine: Machine) -> float:
        return model.seconds(config, problem, machine)
