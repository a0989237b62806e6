"""Every semiring and dtype on plain cores: warps of register tiles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.capabilities import Capabilities
from tilewise.kernels.family import Family, Offer, own_tiles
from tilewise.kernels.shared.halves import onto
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.simt_gemm.tiled import model
from tilewise.kernels.simt_gemm.tiled.recipe import launches
from tilewise.kernels.simt_gemm.tiled.texts import texts as every_plain


class Plain(Family):
    name = "plain"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    can = Capabilities(tracks_arg=True, precisions=("ieee",))

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        chosen = model.choose(problem, machine)
        converted = tuple(x for x, d in (("M", problem.dtype_m), ("N", problem.dtype_n)) if d != problem.dtype)
        notes = [f"{' and '.join(converted)} converted to {problem.dtype} first"] if converted else []
        limits = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        plan = own_tiles(
            self, problem, machine, model.KERNEL, tile, chosen.geometry, chosen.predicted, limits, notes,
            packs=converted, config=chosen, passes=_passes(chosen, problem),
        )  # fmt: skip
        requested = "the kernel was requested" if kernel else f"{model.KERNEL} has the least expected time"
        pieces = f", k in {chosen.pieces} pieces" if chosen.pieces > 1 else ""
        found = ", where no element is found below 0" if chosen.otherwise else ""
        why = f"{requested}; steps: {chosen.config.idea}{found}; {plan.grid[0]}x{plan.grid[1]} tiles{pieces}"
        return plan.but(why=why)

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        chosen = model.choose(problem, machine)
        floor, _ = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        return Offer(problem, machine, model.KERNEL, max(chosen.predicted, floor), floor, _passes(chosen, problem))

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        return every_plain(problem.algebra, machine, onto(problem, machine))

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)


def _passes(chosen: model.Choice, problem: Problem) -> int:
    edges = (chosen.rows < problem.m) + (chosen.cols < problem.n)
    return len(chosen.packs) + (chosen.pieces > 1) + (chosen.tail is not None) + edges
