"""Small products of any algebra, layout and dtype, and stacks of thousands of them in one launch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import ClassVar

from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.capabilities import Capabilities
from tilewise.kernels.cells import model
from tilewise.kernels.cells.recipe import launches
from tilewise.kernels.cells.text import render_cells
from tilewise.kernels.family import Family, Offer, own_tiles
from tilewise.kernels.shared.halves import onto
from tilewise.kernels.shared.placed import Operands


class Cells(Family):
    name = "cells"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    can = Capabilities(
        one_dtype=True, most_k=model.LONGEST, problem=(model.SMALL,), stores_anywhere=True,
        precisions=("ieee", "high"),  # float32 is added up one after the other, k being small
    )  # fmt: skip

    def offered(self, problem: Problem, machine: Machine) -> bool:
        return problem.m * problem.k * problem.n <= model.LARGEST

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        limits = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        seconds = model.seconds(problem, machine)
        geometry = model.geometry(problem)
        plan = own_tiles(
            self, problem, machine, model.KERNEL, tile, geometry, seconds, limits, (), packs=(), config=None
        )
        asked = "the kernel was asked for" if kernel else f"{model.KERNEL} has the least expected time"
        return plan.but(why=f"{asked}; {model.threads(problem):,} threads of {model.cut(problem).width} cells each")

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        return model.least_seconds(problem, machine)

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        floor, _ = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        return Offer(problem, machine, model.KERNEL, max(model.seconds(problem, machine), floor), floor)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        for cut, accumulate in product(model.CUTS, onto(problem, machine)):
            yield render_cells.named(problem.algebra, cut, accumulate)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)
