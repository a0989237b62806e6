"""Few rows or columns of float32 and a long k: one launch, operands and P of any strides, any stack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from tilewise.kernels.family import Family, Offer, own_tiles
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.thin import model
from tilewise.kernels.thin.recipe import launches
from tilewise.kernels.thin.text import render_thin
from tilewise.machine import Machine
from tilewise.plans import Plan
from tilewise.problem import Problem
from tilewise.recipe import Scratch, Step


class Thin(Family):
    name = "thin"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    stores_anywhere = True
    precisions = ("ieee",)

    def refusal(self, problem: Problem, machine: Machine, kernel: str | None = None) -> str | None:
        return model.refusal(problem, machine)

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        reading = problem.least_bytes / (model.MEMORY_SHARE * machine.bandwidth)
        steps = problem.steps / (machine.step_rate("float32") * model.RATE_SHARE)
        return model.START_SECONDS + model.BLOCK_SECONDS + max(steps, reading)

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
        way: model.ThinWay,
        kernel: str | None,
        tile: int | None,
    ) -> Plan:
        limits = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        geometry = model.geometry(problem, way)
        notes = [f"k is cut over the {way.cluster} blocks of a cluster, which add up in order"] * (way.cluster > 1)
        plan = own_tiles(
            self, problem, machine, model.KERNEL, tile, geometry, seconds, limits, notes, packs=(), way=way
        )  # fmt: skip
        asked = "the kernel was asked for" if kernel else "P is thin, and thin has the least expected time"
        return replace(plan, why=f"{asked}; {model.tiles_of(problem, way.warps)} tiles along P's long side")

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        return map(render_thin, model.CELLS)

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        return tuple(model.ways(problem, machine))

    def seconds(self, way: Any, problem: Problem, machine: Machine) -> float:
        return model.seconds(way, problem, machine)

    def pinned(self, problem: Problem, machine: Machine, way: Any) -> Plan:
        return self._planned(problem, machine, model.seconds(way, problem, machine), way, None, None)
