"""Products whose k is so short that writing P takes the time: one launch, operands of any strides, any stack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from tilewise.core.machine import Machine, arch_number
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.by_configs import ByConfigs
from tilewise.kernels.capabilities import AMPERE, HALVES, Capabilities
from tilewise.kernels.mma_gemm.mma_sync.model import worthwhile
from tilewise.kernels.mma_gemm.shallow import model
from tilewise.kernels.mma_gemm.shallow.recipe import launches
from tilewise.kernels.mma_gemm.shallow.text import render_shallow
from tilewise.kernels.shared.placed import Operands


class Shallow(ByConfigs):
    name = "shallow"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    can = Capabilities(
        AMPERE, dtypes=(*HALVES, "float32", "float64"), one_dtype=True, same_result=True, plus_times=True,
        accumulates=False, most_k=model.DEEPEST, problem=(model.NEAR, model.FITS), precisions=("ieee", "tf32"),
    )  # fmt: skip

    def best(self, problem: Problem, machine: Machine) -> tuple[float, model.ShallowConfig]:
        return model.best_config(problem, machine)

    def geometry(self, problem: Problem, config: model.ShallowConfig) -> Geometry:
        return model.geometry(problem, config)

    def tiles(self, problem: Problem, config: model.ShallowConfig) -> str:
        strips = model.strips_of(problem, config.cols)
        return f"{strips} strips of {config.cols} columns, {config.blocks} blocks to a strip"

    def reason(self, plan: Plan, kernel: str | None, tiles: str) -> Plan:
        asked = "the kernel was asked for" if kernel else "k is short, and shallow has the least expected time"
        return plan.but(why=f"{asked}; {tiles}")

    def offered(self, problem: Problem, machine: Machine) -> bool:
        return not model.on_tensor_cores(problem) or worthwhile(problem, machine)

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        figures = model.figures_of(problem)
        return max(figures.start + figures.rows, problem.least_bytes / (model.MEMORY_SHARE * machine.bandwidth))

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        arch, tensor = min(90, arch_number(machine.arch)), model.on_tensor_cores(problem)
        return (
            render_shallow.named(problem.dtype, tensor, cols, arch) for cols in model.COLUMNS[problem.dtype.itemsize]
        )

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        return tuple(model.configs(problem, machine))

    def seconds(self, config: Any, problem: Problem, machine: Machine) -> float:
        return model.seconds(config, problem, machine)
