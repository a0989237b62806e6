"""Small products of floats: one launch, any layout, any stack; float64 and tf32 on tensor cores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from tilewise.kernels.family import Family, Offer, own_tiles
from tilewise.kernels.mma_small import model
from tilewise.kernels.mma_small.recipe import launches
from tilewise.kernels.mma_small.text import render_small
from tilewise.kernels.mma_sync.model import worthwhile
from tilewise.kernels.shared.placed import Operands
from tilewise.machine import Machine, arch_number
from tilewise.plans import Plan
from tilewise.problem import Problem
from tilewise.recipe import Scratch, Step


class MmaSmall(Family):
    name = "mma_small"
    kernels: ClassVar = model.IDEAS
    stores_anywhere = True
    precisions = ("ieee", "tf32")

    def refusal(self, problem: Problem, machine: Machine, kernel: str | None = None) -> str | None:
        return model.refusal(problem, machine, kernel)

    def takes(self, problem: Problem, machine: Machine) -> bool:
        return problem.m * problem.k * problem.n <= model.LARGEST  # the kind says the rest

    def offered(self, problem: Problem, machine: Machine) -> bool:
        return model.kernel_for(problem) == model.FMA or worthwhile(problem, machine)

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        return model.least_seconds(problem, machine)

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        seconds, way = model.best_way(problem, machine)
        return self._planned(problem, machine, way, seconds, kernel, tile)

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        seconds, _ = model.best_way(problem, machine)
        floor, _ = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        return Offer(problem, machine, model.kernel_for(problem), max(seconds, floor), floor)

    def _planned(
        self,
        problem: Problem,
        machine: Machine,
        way: model.SmallWay,
        seconds: float,
        kernel: str | None,
        tile: int | None,
    ) -> Plan:
        limits = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        geometry = model.geometry(problem, way)
        notes = [f"k is cut over the {way.cluster} blocks of a cluster, which add up in order"] * (way.cluster > 1)
        name = model.kernel_for(problem)
        plan = own_tiles(self, problem, machine, name, tile, geometry, seconds, limits, notes, packs=(), way=way)
        asked = "the kernel was asked for" if kernel else f"{name} has the least expected time"
        down, across = model.tiles_of(problem, way.tile)
        return plan.but(why=f"{asked}; {down}x{across} tiles of {way.tile.rows}x{way.tile.cols}")

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        arch = min(90, arch_number(machine.arch))
        kernel = model.kernel_for(problem)
        return (render_small(problem.dtype, kernel, tile, arch) for tile in model.tiles_for(problem))

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        return tuple(model.ways(problem, machine))

    def seconds(self, way: Any, problem: Problem, machine: Machine) -> float:
        return model.seconds(way, problem, machine)

    def pinned(self, problem: Problem, machine: Machine, way: Any) -> Plan:
        return self._planned(problem, machine, way, model.seconds(way, problem, machine), None, None)
