"""Halves whose lines start anywhere: tensor cores in one launch, with no pass that realigns them first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import ClassVar

from tilewise.kernels.direct_half import alone, model
from tilewise.kernels.direct_half.recipe import launches
from tilewise.kernels.direct_half.text import render_direct_half
from tilewise.kernels.family import Family, Offer, fused_notes, own_tiles, tensor_reason
from tilewise.kernels.shared.groups import render_walk
from tilewise.kernels.shared.placed import Operands
from tilewise.machine import Machine, arch_number
from tilewise.plans import Plan
from tilewise.problem import Problem
from tilewise.recipe import Scratch, Step


class DirectHalf(Family):
    name = "direct_half"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    fuses = True
    groups = True

    def refusal(self, problem: Problem, machine: Machine, kernel: str | None = None) -> str | None:
        return model.refusal(problem, machine)

    def offered(self, problem: Problem, machine: Machine) -> bool:
        """Single products and groups that the copy engine takes as they are go to wgmma_half."""
        p = problem
        if p.groups is None and p.members > 1:
            return True
        if p.groups is None and arch_number(machine.arch) < 90:
            return False  # nobody has timed those
        m, n = p.layout_m, p.layout_n
        return bool(m.row % 8 and m.col % 8) or bool(n.row % 8 and n.col % 8)

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        return self._plan(problem, machine, kernel, tile, *self._best(problem, machine))

    def _best(self, problem: Problem, machine: Machine) -> tuple[model.HalfTile, float]:
        if not _is_single(problem):
            return model.best_tile(problem, machine)
        way, seconds = alone.least(problem, machine)
        return way, alone.ONE_LAUNCH * seconds

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        return alone.least_seconds(problem, machine) if _is_single(problem) else 0.0

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        _, seconds = self._best(problem, machine)
        floor, _ = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        return Offer(problem, machine, model.KERNEL, max(seconds, floor), floor)

    def pinned(self, problem: Problem, machine: Machine, way: model.HalfTile) -> Plan:
        return self._plan(problem, machine, model.KERNEL, None, way, self.seconds(way, problem, machine))

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
        notes = fused_notes(problem)
        if way.cluster > 1:
            notes.append(f"k is cut over the {way.cluster} blocks of a cluster, which add up in order")
        plan = own_tiles(
            self, problem, machine, model.KERNEL, tile, way.geometry, predicted, limits, notes, packs=(), way=way
        )
        return tensor_reason(plan, kernel, f"{way.rows}x{way.cols}, {way.resident} a multiprocessor")

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        if problem.groups:
            yield render_walk(problem.groups.wide)
        for tile, m_along_k, n_along_k in product(model.TILES, (True, False), (True, False)):
            yield render_direct_half(problem.dtype, tile, (m_along_k, n_along_k), by_rows=problem.groups is not None)

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[model.HalfTile]:
        return alone.every(problem, machine) if _is_single(problem) else model.TILES

    def seconds(self, way: model.HalfTile, problem: Problem, machine: Machine) -> float:
        return (alone.seconds if _is_single(problem) else model.seconds)(way, problem, machine)


def _is_single(problem: Problem) -> bool:
    return problem.groups is None and problem.members == 1
