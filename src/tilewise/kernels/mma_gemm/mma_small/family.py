"""Small products of floats: one launch, any layout, any stack; float64 and tf32 on tensor cores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from tilewise.core.machine import Machine, arch_number
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.by_configs import ByConfigs
from tilewise.kernels.capabilities import AMPERE, Capabilities
from tilewise.kernels.mma_gemm.mma_small import model
from tilewise.kernels.mma_gemm.mma_small.recipe import launches
from tilewise.kernels.mma_gemm.mma_small.text import render_small
from tilewise.kernels.mma_gemm.mma_sync.model import worthwhile
from tilewise.kernels.shared.placed import Operands

CAN = Capabilities(
    AMPERE, dtypes=("float64", "float32"), one_dtype=True, same_result=True, float32_as=("tf32",), plus_times=True,
    steps=model.LARGEST, stores_anywhere=True, precisions=("ieee", "tf32"),
)  # fmt: skip


class MmaSmall(ByConfigs):
    name = model.MMA
    kernels: ClassVar = {model.MMA: model.IDEAS[model.MMA]}
    can = CAN

    def best(self, problem: Problem, machine: Machine) -> tuple[float, model.SmallConfig]:
        return model.best_config(problem, machine)

    def geometry(self, problem: Problem, config: model.SmallConfig) -> Geometry:
        return model.geometry(problem, config)

    def tiles(self, problem: Problem, config: model.SmallConfig) -> str:
        down, across = model.tiles_of(problem, config.tile)
        return f"{down}x{across} tiles of {config.tile.rows}x{config.tile.cols}"

    def offered(self, problem: Problem, machine: Machine) -> bool:
        return worthwhile(problem, machine)

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


class FmaSmall(MmaSmall):
    """The same on plain cores, which multiply what tensor cores would round."""

    name = model.FMA
    kernels: ClassVar = {model.FMA: model.IDEAS[model.FMA]}
    can = replace(CAN, dtypes=("float32",), float32_as=("ieee", "high"))

    def offered(self, problem: Problem, machine: Machine) -> bool:
        return True
