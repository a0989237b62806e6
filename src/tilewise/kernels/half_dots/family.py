"""Few rows or columns of halves along lines that start anywhere: one launch, the long operand read once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from tilewise.kernels.family import Family, Offer, fused_notes, own_tiles, tensor_reason
from tilewise.kernels.half_dots import model
from tilewise.kernels.half_dots.recipe import launches
from tilewise.kernels.half_dots.text import render_half_dots
from tilewise.kernels.shared.layouts import line_alignment
from tilewise.kernels.shared.placed import Operands
from tilewise.machine import Machine
from tilewise.plans import Plan
from tilewise.problem import Problem
from tilewise.recipe import Scratch, Step


class HalfDots(Family):
    name = "half_dots"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    fuses = True
    stores_anywhere = True

    def refusal(self, problem: Problem, machine: Machine, kernel: str | None = None) -> str | None:
        return model.refusal(problem, machine)

    def takes(self, problem: Problem, machine: Machine) -> bool:
        return min(problem.m, problem.n) <= model.TILES[-1].rows and super().takes(problem, machine)

    def offered(self, problem: Problem, machine: Machine) -> bool:
        """Lines that start on 16 bytes go to the copy engine."""
        p, size = problem, problem.dtype.itemsize
        return line_alignment(p.layout_m, p.m, p.k, size) < 16 or line_alignment(p.layout_n, p.k, p.n, size) < 16

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        return self._plan(problem, machine, kernel, tile, *model.best_way(problem, machine))

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        return model.least_seconds(problem, machine)

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        _, seconds = model.best_way(problem, machine)
        floor, _ = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        return Offer(problem, machine, model.KERNEL, max(seconds, floor), floor)

    def pinned(self, problem: Problem, machine: Machine, way: model.DotsWay) -> Plan:
        return self._plan(problem, machine, model.KERNEL, None, way, model.seconds(way, problem, machine))

    def _plan(
        self,
        problem: Problem,
        machine: Machine,
        kernel: str | None,
        tile: int | None,
        way: model.DotsWay,
        predicted: float,
    ) -> Plan:
        limits = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        notes = fused_notes(problem)
        if way.cluster > 1:
            notes.append(f"k is cut over the {way.cluster} blocks of a cluster, which add up in order")
        plan = own_tiles(
            self, problem, machine, model.KERNEL, tile, way.geometry, predicted, limits, notes, packs=(), way=way
        )
        return tensor_reason(plan, kernel, f"{plan.geometry.rows}x{plan.geometry.cols}")

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        for tile in model.TILES:
            yield render_half_dots(problem.dtype, tile)

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[model.DotsWay]:
        return model.ways(problem, machine)

    def seconds(self, way: model.DotsWay, problem: Problem, machine: Machine) -> float:
        return model.seconds(way, problem, machine)
