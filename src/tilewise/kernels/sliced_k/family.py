"""Small and thin products of floats: a warp a tile, k in slices; one launch, any layout, any stack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from tilewise.kernels.family import Family, Offer, own_tiles
from tilewise.kernels.mma_sync.model import worthwhile
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.sliced_k import model
from tilewise.kernels.sliced_k.recipe import launches
from tilewise.kernels.sliced_k.text import render_sliced
from tilewise.machine import Machine, arch_number
from tilewise.plans import Plan
from tilewise.problem import Problem
from tilewise.recipe import Scratch, Step


class SlicedK(Family):
    name = "sliced_k"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    stores_anywhere = True
    precisions = ("ieee",)

    def refusal(self, problem: Problem, machine: Machine, kernel: str | None = None) -> str | None:
        return model.refusal(problem, machine)

    def offered(self, problem: Problem, machine: Machine) -> bool:
        return problem.members == 1 and (problem.dtype.itemsize == 4 or worthwhile(problem, machine))

    def takes(self, problem: Problem, machine: Machine) -> bool:
        return model.reaches(problem)  # the kind says the rest

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        return model.least_seconds(problem, machine)

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        seconds, way = model.best_way(problem, machine)
        return self._planned(problem, machine, way, seconds, kernel, tile)

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        seconds, _ = model.best_way(problem, machine)
        floor, _ = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        return Offer(problem, machine, model.KERNEL, max(seconds, floor), floor)

    def _planned(
        self,
        problem: Problem,
        machine: Machine,
        way: model.SlicedWay,
        seconds: float,
        kernel: str | None,
        tile: int | None,
    ) -> Plan:
        limits = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        geometry = model.geometry(problem, way)
        sharing = [f"{way.slices} warps of a block"] * (way.slices > 1)
        sharing += [f"{way.cluster} blocks of a cluster"] * (way.cluster > 1)
        notes = [f"k is cut over the {' and the '.join(sharing)}, which add up in order"] * bool(sharing)
        plan = own_tiles(
            self, problem, machine, model.KERNEL, tile, geometry, seconds, limits, notes, packs=(), way=way
        )
        asked = "the kernel was asked for" if kernel else f"{model.KERNEL} has the least expected time"
        down, across = model.tiles_of(problem, way)
        return plan.but(why=f"{asked}; {down * across} tiles of {geometry.rows}x{geometry.cols}")

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        arch = min(90, arch_number(machine.arch))
        return (render_sliced(problem.dtype, tile, arch) for tile in model.TILES[problem.dtype.itemsize])

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        return tuple(model.ways(problem, machine))

    def seconds(self, way: Any, problem: Problem, machine: Machine) -> float:
        return model.seconds(way, problem, machine)

    def pinned(self, problem: Problem, machine: Machine, way: Any) -> Plan:
        return self._planned(problem, machine, way, model.seconds(way, problem, machine), None, None)
