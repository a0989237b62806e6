"""Every semiring and dtype on plain cores: warps of register tiles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.kernels.by_configs import Tabled
from tilewise.kernels.capabilities import Capabilities
from tilewise.kernels.family import Searched, of_other_dtypes
from tilewise.kernels.shared.triangle import symmetric_note
from tilewise.kernels.simt_gemm.skinny import halves_on_hopper
from tilewise.kernels.simt_gemm.tiled import model
from tilewise.kernels.simt_gemm.tiled.model import Choice
from tilewise.kernels.simt_gemm.tiled.recipe import launches
from tilewise.kernels.simt_gemm.tiled.texts import texts as every_plain


class Plain(Tabled):
    name = model.KERNEL
    kernels: ClassVar = {name: model.IDEA}
    launches = staticmethod(launches)
    can = Capabilities(tracks_arg=True, precisions=("ieee",), ordered=True)

    def suits(self, problem: Problem, machine: Machine) -> bool:
        """Halves only where Hopper's tensor cores do not take them: 34 of 59,556 random products were expected to be
        faster here, and take 0.66 of the time elsewhere (27 of them less)."""
        return problem.return_arg or problem.ordered or not halves_on_hopper(problem, machine)

    def best(self, problem: Problem, machine: Machine, kernel: str | None = None) -> tuple[float, Choice]:
        chosen = model.choose(problem, machine)
        return chosen.predicted, chosen

    def searched(self, problem: Problem, machine: Machine) -> list[Searched]:
        return model.searched(problem, machine)

    def configurations(self, problem: Problem, machine: Machine) -> tuple[Choice, ...]:
        return ()

    def packs(self, problem: Problem, config: Choice) -> tuple[str, ...]:
        return of_other_dtypes(problem)

    def notes(self, problem: Problem, config: Choice) -> list[str]:
        converted = self.packs(problem, config)
        notes = [f"{' and '.join(converted)} converted to {problem.dtype} first"] if converted else []
        tile = config.tile
        return [*notes, symmetric_note(problem.m, tile.rows, tile.cols)] if config.symmetric else notes

    def passes(self, problem: Problem, machine: Machine, config: Choice) -> int:
        edges = (config.rows < problem.m) + (config.cols < problem.n)
        return len(config.packs) + (config.pieces > 1) + (config.tail is not None) + edges

    def tiles(self, problem: Problem, machine: Machine, config: Choice) -> str:
        return f"steps: {config.config.idea}" + ", where no element is found below 0" * (config.otherwise is not None)

    def reason(self, plan: Plan, kernel: str | None, tiles: str) -> Plan:
        pieces = f", k in {plan.config.pieces} pieces" if plan.config.pieces > 1 else ""
        return super().reason(plan, kernel, f"{tiles}; {plan.grid[0]}x{plan.grid[1]} tiles{pieces}")

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        return every_plain(problem.algebra, machine) if self.suits(problem, machine) else ()
