"""Products too small for a pipeline: tiles read straight, in one launch, for any algebra, layout and stack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, ClassVar

from tilewise.kernels.direct import model
from tilewise.kernels.direct.recipe import launches
from tilewise.kernels.direct.text import render_direct
from tilewise.kernels.family import Family, Offer, own_tiles
from tilewise.kernels.shared.placed import Operands
from tilewise.machine import Machine
from tilewise.plans import Plan
from tilewise.problem import Problem
from tilewise.recipe import Scratch, Step


class Direct(Family):
    name = "direct"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    stores_anywhere = True
    precisions = ("ieee",)

    def refusal(self, problem: Problem, machine: Machine, kernel: str | None = None) -> str | None:
        return model.refusal(problem)

    def takes(self, problem: Problem, machine: Machine) -> bool:
        return problem.m * problem.k * problem.n <= model.LARGEST  # the kind says the rest

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        return self._planned(problem, machine, *model.best_way(problem, machine), kernel, tile)

    def _planned(
        self,
        problem: Problem,
        machine: Machine,
        way: model.DirectWay,
        seconds: float,
        kernel: str | None,
        tile: int | None,
    ) -> Plan:
        limits = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        geometry = model.geometry(problem, way)
        notes = [f"k is cut over the {way.cluster} blocks of a cluster, which add up in order"] * (way.cluster > 1)
        plan = own_tiles(
            self, problem, machine, model.KERNEL, tile, geometry, seconds, limits, notes, packs=(), way=way
        )
        asked = "the kernel was asked for" if kernel else f"{model.KERNEL} has the least expected time"
        down, across = model.tiles_of(problem, way.tile)
        return plan.but(why=f"{asked}; {down}x{across} tiles of {way.tile.rows}x{way.tile.cols}")

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        every = model.every_way(problem.algebra.partial.itemsize, model.clusters_of(machine))
        for way, accumulate in product(every, (False, True)):
            yield render_direct(problem.algebra, way, accumulate)

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        return model.least_seconds(problem, machine)

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        _, seconds = model.best_way(problem, machine)
        floor, _ = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        return Offer(problem, machine, model.KERNEL, max(seconds, floor), floor)

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        return model.ways(problem, machine)

    def seconds(self, way: Any, problem: Problem, machine: Machine) -> float:
        return model.seconds(way, problem, machine)

    def pinned(self, problem: Problem, machine: Machine, way: Any) -> Plan:
        return self._planned(problem, machine, way, model.seconds(way, problem, machine), None, None)
