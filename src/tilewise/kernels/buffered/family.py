"""Stacks of middling products: double-buffered strips, in one launch, for elements of four bytes and any algebra."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, ClassVar

from tilewise.kernels.buffered import model
from tilewise.kernels.buffered.recipe import launches
from tilewise.kernels.buffered.text import render_buffered
from tilewise.kernels.family import Family, Offer, own_tiles
from tilewise.kernels.shared.placed import Operands
from tilewise.machine import Machine
from tilewise.plans import Plan
from tilewise.problem import Problem
from tilewise.recipe import Scratch, Step


class Buffered(Family):
    name = "buffered"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    stores_anywhere = True
    precisions = ("ieee",)

    def refusal(self, problem: Problem, machine: Machine, kernel: str | None = None) -> str | None:
        return model.refusal(problem)

    def offered(self, problem: Problem, machine: Machine) -> bool:
        return problem.members > 1  # one product alone has kernels of its own for every size

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        return self._planned(problem, machine, *model.best_way(problem, machine), kernel, tile)

    def _planned(
        self,
        problem: Problem,
        machine: Machine,
        way: model.BufferedWay,
        seconds: float,
        kernel: str | None,
        tile: int | None,
    ) -> Plan:
        limits = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        geometry = model.geometry(way)
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
        ways = product(model.TILES, product((False, True), repeat=2))
        return (render_buffered(problem.algebra, tile, along, False) for tile, along in ways)

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
