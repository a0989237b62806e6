"""Products whose k is so short that writing P takes the time: one launch, operands of any strides, any stack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from tilewise.kernels.family import Family, Offer, own_tiles
from tilewise.kernels.mma_sync.model import worthwhile
from tilewise.kernels.shallow import model
from tilewise.kernels.shallow.recipe import launches
from tilewise.kernels.shallow.text import render_shallow
from tilewise.kernels.shared.placed import Operands
from tilewise.machine import Machine, arch_number
from tilewise.plans import Plan
from tilewise.problem import Problem
from tilewise.recipe import Scratch, Step


class Shallow(Family):
    name = "shallow"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    precisions = ("ieee", "tf32")

    def refusal(self, problem: Problem, machine: Machine, kernel: str | None = None) -> str | None:
        return model.refusal(problem, machine)

    def takes(self, problem: Problem, machine: Machine) -> bool:
        return problem.k <= model.DEEPEST and super().takes(problem, machine)

    def offered(self, problem: Problem, machine: Machine) -> bool:
        return not model.on_tensor_cores(problem) or worthwhile(problem, machine)

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        figures = model.figures_of(problem)
        return max(figures.start + figures.rows, problem.least_bytes / (model.MEMORY_SHARE * machine.bandwidth))

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        return self._planned(problem, machine, *model.best_way(problem, machine), kernel, tile)

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        seconds, _ = model.best_way(problem, machine)
        floor, _ = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        return Offer(problem, machine, model.KERNEL, max(seconds, floor), floor)

    def _planned(
        self,
        problem: Problem,
        machine: Machine,
        seconds: float,
        way: model.ShallowWay,
        kernel: str | None,
        tile: int | None,
    ) -> Plan:
        limits = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        geometry = model.geometry(problem, way)
        plan = own_tiles(self, problem, machine, model.KERNEL, tile, geometry, seconds, limits, (), packs=(), way=way)
        asked = "the kernel was asked for" if kernel else "k is short, and shallow has the least expected time"
        strips = model.strips_of(problem, way.cols)
        return replace(plan, why=f"{asked}; {strips} strips of {way.cols} columns, {way.blocks} blocks to a strip")

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        arch, tensor = min(90, arch_number(machine.arch)), model.on_tensor_cores(problem)
        return (render_shallow(problem.dtype, tensor, cols, arch) for cols in model.COLUMNS[problem.dtype.itemsize])

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        return tuple(model.ways(problem, machine))

    def seconds(self, way: Any, problem: Problem, machine: Machine) -> float:
        return model.seconds(way, problem, machine)

    def pinned(self, problem: Problem, machine: Machine, way: Any) -> Plan:
        return self._planned(problem, machine, model.seconds(way, problem, machine), way, None, None)
