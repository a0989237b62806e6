"""Products of a short k on tensor cores, whose time is that of storing P: one launch, operands of any strides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.by_configs import ByConfigs
from tilewise.kernels.capabilities import AMPERE, HALVES, Capabilities
from tilewise.kernels.mma_gemm.mma_sync.model import worthwhile
from tilewise.kernels.mma_gemm.short_k import model, seconds
from tilewise.kernels.mma_gemm.short_k.recipe import launches
from tilewise.kernels.mma_gemm.short_k.text import render_short_k
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.transforms.turn import render_turn


class ShortK(ByConfigs):
    name = "short_k"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    can = Capabilities(
        AMPERE, dtypes=(*HALVES, "float32"), one_dtype=True, same_result=True, float32_as=("tf32",), plus_times=True,
        accumulates=False, least_k=1, problem=(model.SHORT,), precisions=("tf32",),
    )  # fmt: skip

    def best(self, problem: Problem, machine: Machine) -> tuple[float, model.ShortConfig]:
        return seconds.best_config(problem, machine)

    def geometry(self, problem: Problem, config: model.ShortConfig) -> Geometry:
        return model.geometry(problem, config)

    def tiles(self, problem: Problem, config: model.ShortConfig) -> str:
        across = model.across_of(problem.n, config.held.cols)
        return (
            f"{model.panels_of(problem, config.held)} panels of {across * config.held.cols} columns, {config.words()}"
        )

    def notes(self, problem: Problem, config: model.ShortConfig) -> list[str]:
        return [f"{side} is turned first, so that its k lies side by side" for side in config.transposed]

    def reason(self, plan: Plan, kernel: str | None, tiles: str) -> Plan:
        asked = "the kernel was asked for" if kernel else "k is short, and short_k has the least expected time"
        return plan.but(why=f"{asked}; {tiles}")

    def offered(self, problem: Problem, machine: Machine) -> bool:
        return problem.members == 1 and worthwhile(problem, machine)

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        return seconds.least_seconds(problem, machine)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        size = problem.dtype.itemsize
        return (render_turn.named(size), *(render_short_k.named(problem.dtype, held) for held in model.HELD[size]))

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        return model.configs(problem)

    def seconds(self, config: Any, problem: Problem, machine: Machine) -> float:
        return seconds.seconds(config, problem, machine)
