"""Halves whose lines start anywhere: tensor cores in one launch, with no pass that realigns them first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import ClassVar

from tilewise.kernels.direct_half import model
from tilewise.kernels.direct_half.recipe import launches
from tilewise.kernels.direct_half.text import render_direct_half
from tilewise.kernels.family import Family, Offer, fused_notes, own_tiles, tensor_reason
from tilewise.kernels.shared.groups import render_walk
from tilewise.kernels.shared.placed import Operands
from tilewise.machine import Machine
from tilewise.plans import Plan
from tilewise.problem import Problem
from tilewise.recipe import Scratch, Step


class DirectHalf(Family):
    name = "direct_half"
    kernels: ClassVar = model.IDEAS
    fuses = True
    groups = True

    def _kernel(self, problem: Problem) -> str:
        return model.kernel_of(problem.dtype)

    def refusal(self, problem: Problem, machine: Machine, kernel: str | None = None) -> str | None:
        return model.refusal(problem, machine)

    def takes(self, problem: Problem, machine: Machine) -> bool:
        return (problem.members > 1 or problem.groups is not None) and super().takes(problem, machine)

    def offered(self, problem: Problem, machine: Machine) -> bool:
        """Single products: its model has not been held against any. Groups that the copy engine takes as they are go to
        wgmma_half."""
        if problem.groups is None:
            return problem.members > 1
        return any(layout.row * 2 % 16 and layout.col * 2 % 16 for layout in (problem.layout_m, problem.layout_n))

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        return self._plan(problem, machine, kernel, tile, *model.best_tile(problem, machine))

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        _, seconds = model.best_tile(problem, machine)
        floor, _ = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        return Offer(problem, machine, self._kernel(problem), max(seconds, floor), floor)

    def pinned(self, problem: Problem, machine: Machine, way: model.HalfTile) -> Plan:
        return self._plan(problem, machine, self._kernel(problem), None, way, model.seconds(way, problem, machine))

    def _plan(
        self,
        problem: Problem,
        machine: Machine,
        kernel: str | None,
        tile: int | None,
        way: model.HalfTile,
        predicted: float,
    ) -> Plan:
        limits = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        plan = own_tiles(
            self, problem, machine, self._kernel(problem), tile, way.geometry, predicted, limits, fused_notes(problem),
            packs=(), way=way,
        )  # fmt: skip
        return tensor_reason(plan, kernel, f"{way.rows}x{way.cols}, {way.resident} a multiprocessor")

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        if problem.groups:
            yield render_walk(problem.groups.wide)
        for tile, m_along_k, n_along_k in product(model.TILES, (True, False), (True, False)):
            yield render_direct_half(problem.dtype, tile, (m_along_k, n_along_k), by_rows=problem.groups is not None)

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[model.HalfTile]:
        return model.TILES

    def seconds(self, way: model.HalfTile, problem: Problem, machine: Machine) -> float:
        return model.seconds(way, problem, machine)
