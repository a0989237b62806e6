"""Small products of floats: one launch, any layout, any stack; float64 and tf32 on tensor cores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from tilewise.core.machine import Machine, arch_number
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.by_configs import ByConfigs
from tilewise.kernels.mma_small import model
from tilewise.kernels.mma_small.recipe import launches
from tilewise.kernels.mma_small.text import render_small
from tilewise.kernels.mma_sync.model import worthwhile
from tilewise.kernels.shared.placed import Operands


class MmaSmall(ByConfigs):
    name = "mma_small"
    kernels: ClassVar = model.IDEAS
    stores_anywhere = True
    precisions = ("ieee", "tf32")

    def refusal(self, problem: Problem, machine: Machine, kernel: str | None = None) -> str | None:
        return model.refusal(problem, machine, kernel)

    def best(self, problem: Problem, machine: Machine) -> tuple[float, model.SmallConfig]:
        return model.best_config(problem, machine)

    def geometry(self, problem: Problem, config: model.SmallConfig) -> Geometry:
        return model.geometry(problem, config)

    def tiles(self, problem: Problem, config: model.SmallConfig) -> str:
        down, across = model.tiles_of(problem, config.tile)
        return f"{down}x{across} tiles of {config.tile.rows}x{config.tile.cols}"

    def kernel_for(self, problem: Problem) -> str:
        return model.kernel_for(problem)

    def takes(self, problem: Problem, machine: Machine) -> bool:
        return problem.m * problem.k * problem.n <= model.LARGEST  # the kind says the rest

    def offered(self, problem: Problem, machine: Machine) -> bool:
        return model.kernel_for(problem) == model.FMA or worthwhile(problem, machine)

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        return model.least_seconds(problem, machine)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        arch = min(90, arch_number(machine.arch))
        kernel = model.kernel_for(problem)
        return (render_small.named(problem.dtype, kernel, tile, arch) for tile in model.tiles_for(problem))

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        return tuple(model.configs(problem, machine))

    def seconds(self, config: Any, problem: Problem, machine: Machine) -> float:
        return model.seconds(config, problem, machine)
