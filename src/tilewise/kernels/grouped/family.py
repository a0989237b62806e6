"""Groups of rows whose sizes only the card knows, over any algebra, layout and dtype, in one launch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import ClassVar

from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.capabilities import Capabilities
from tilewise.kernels.family import Family, own_tiles
from tilewise.kernels.grouped import model
from tilewise.kernels.grouped.recipe import launches
from tilewise.kernels.grouped.text import grouped_text
from tilewise.kernels.shared.groups import render_walk
from tilewise.kernels.shared.placed import Operands


class Grouped(Family):
    name = "grouped"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    can = Capabilities(
        groups=("rows", "k"), only_groups=True, unrounded=False, problem=(model.MEMBERS,),
        precisions=("ieee", "high"),  # float32 is added up one after the other
    )  # fmt: skip

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        limits = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        dtypes = ("M", problem.dtype_m), ("N", problem.dtype_n)
        packs = tuple(name for name, dtype in dtypes if dtype != problem.dtype)
        plan = own_tiles(
            self, problem, machine, model.KERNEL, tile, model.geometry(problem), model.seconds(problem, machine),
            limits, (), packs=packs, config=None,
        )  # fmt: skip
        asked = "the kernel was asked for" if kernel else f"{model.KERNEL} has the least expected time"
        return replace(plan, why=f"{asked}; {problem.groups.count if problem.groups else 0:,} groups")

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        assert problem.groups is not None
        yield render_walk.named(problem.groups.wide)
        either = (False, True)
        for k_along_m, k_along_n, accumulate in product(either, either, either):
            yield grouped_text(problem.algebra, problem.groups, (k_along_m, k_along_n), accumulate)
