"""Stacks of products with a short k, of any algebra that adds up in four bytes: rows of P from registers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from tilewise.kernels.family import Family, own_tiles
from tilewise.kernels.rank_k import model
from tilewise.kernels.rank_k.recipe import launches
from tilewise.kernels.rank_k.text import render_rank_k
from tilewise.kernels.shared.placed import Operands
from tilewise.machine import Machine
from tilewise.plans import Plan
from tilewise.problem import Problem
from tilewise.recipe import Scratch, Step


class RankK(Family):
    name = "rank_k"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    stores_anywhere = True
    precisions = ("ieee", "high")  # float32 is added up one after the other, k being short

    def refusal(self, problem: Problem, machine: Machine, kernel: str | None = None) -> str | None:
        return model.refusal(problem)

    def offered(self, problem: Problem, machine: Machine) -> bool:
        return problem.members > 1  # one product alone has kernels of its own for every size

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        seconds, way = model.best_way(problem, machine)
        return self._planned(problem, machine, way, seconds, kernel, tile)

    def _planned(
        self,
        problem: Problem,
        machine: Machine,
        way: model.RankKWay,
        seconds: float,
        kernel: str | None,
        tile: int | None,
    ) -> Plan:
        limits, geometry = (
            machine.floor(problem.steps, problem.least_bytes, problem.dtype.name),
            model.geometry(problem, way),
        )
        plan = own_tiles(self, problem, machine, model.KERNEL, tile, geometry, seconds, limits, (), packs=(), way=way)
        asked = "the kernel was asked for" if kernel else f"{model.KERNEL} has the least expected time"
        return plan.but(why=f"{asked}; blocks of {way.rows} rows, {way.columns} columns a thread")

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        for deep in model.DEPTHS:
            for columns in model.COLUMNS:
                if deep * columns <= model.MOST_HELD:
                    yield render_rank_k(problem.algebra, deep, columns, False)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        return tuple(model.ways(problem))

    def seconds(self, way: Any, problem: Problem, machine: Machine) -> float:
        return model.seconds(way, problem, machine)

    def pinned(self, problem: Problem, machine: Machine, way: Any) -> Plan:
        return self._planned(problem, machine, way, model.seconds(way, problem, machine), None, None)
