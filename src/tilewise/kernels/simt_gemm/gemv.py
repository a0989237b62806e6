"""Matrix–vector products and few rows or columns: the long operand is read once, at the memory's bandwidth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.errors import DtypeError
from tilewise.kernels.by_configs import ByConfigs
from tilewise.kernels.capabilities import Capabilities
from tilewise.kernels.family import Searched
from tilewise.kernels.simt_gemm import skinny as model
from tilewise.kernels.simt_gemm.skinny import SkinnyTile
from tilewise.kernels.simt_gemm.skinny_recipe import launches
from tilewise.kernels.simt_gemm.text import every_skinny
from tilewise.kernels.transforms.sums import combine_text


class Gemv(ByConfigs):
    name = "gemv"
    kernels: ClassVar = model.IDEAS
    launches = staticmethod(launches)
    can = Capabilities(one_dtype=True, few=model.FEW, tracks_arg=True, precisions=("ieee",))

    def refusal(self, problem: Problem, machine: Machine, kernel: str | None = None) -> str | None:
        why = super().refusal(problem, machine, kernel)
        if why is not None or model.skinny_choices(problem, machine, kernel):
            return why
        return f"kernel={kernel!r} reads contiguous rows or columns of the longer operand: leave kernel= out"

    def takes(self, problem: Problem, machine: Machine) -> bool:
        return bool(model.competing(problem, machine))

    def searched(self, problem: Problem, machine: Machine) -> list[Searched]:
        return model.searched(problem, machine)

    def best(self, problem: Problem, machine: Machine, kernel: str | None = None) -> tuple[float, SkinnyTile]:
        if problem.return_arg and problem.k >= 2**31:
            raise DtypeError(f"return_arg=True knows k below 2³¹, and k is {problem.k}")
        choices = None if kernel else model.competing(problem, machine)
        return min(choices or model.skinny_choices(problem, machine, kernel), key=model.SECONDS)

    def kernel_of(self, config: SkinnyTile) -> str:
        return config.kernel

    def passes(self, problem: Problem, machine: Machine, config: SkinnyTile) -> int:
        length = problem.m if config.swapped else problem.n
        return int(model.skinny_pieces(config, length, problem.k, machine, problem.members) > 1)

    def tiles(self, problem: Problem, machine: Machine, config: SkinnyTile) -> str:
        return f"steps: {config.config.idea}"

    def reason(self, plan: Plan, kernel: str | None, tiles: str) -> Plan:
        return super().reason(plan, kernel, f"{tiles}; {plan.grid[0]}x{plan.grid[1]} tiles")

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        yield from every_skinny(problem.algebra, machine, model.dots_held(problem, machine))
        yield from (combine_text(problem.algebra, share) for share in (1, 8))
