"""Few rows or columns of halves along lines that start anywhere: one launch, the long operand read once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.by_configs import ByConfigs, cut_over_a_cluster
from tilewise.kernels.capabilities import HALVES, HOPPER, Capabilities, Condition
from tilewise.kernels.family import fused_notes, tensor_reason
from tilewise.kernels.mma_gemm.half_dots import model
from tilewise.kernels.mma_gemm.half_dots.configs import MOST_FEW, TILES, DotsConfig
from tilewise.kernels.mma_gemm.half_dots.recipe import launches
from tilewise.kernels.mma_gemm.half_dots.text import render_half_dots
from tilewise.kernels.shared.layouts import line_alignment
from tilewise.kernels.shared.placed import Operands


class HalfDots(ByConfigs):
    name = "half_dots"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    can = Capabilities(
        HOPPER, dtypes=HALVES, one_dtype=True, plus_times=True, unrounded=False, stacks=False, few=MOST_FEW,
        problem=(Condition(lambda p: bool(model.sides(p)), "reads an operand whose k is contiguous"),),
        fuses=True, stores_anywhere=True,
    )  # fmt: skip

    def best(self, problem: Problem, machine: Machine) -> tuple[float, DotsConfig]:
        config, seconds = model.best_config(problem, machine)
        return seconds, config

    def geometry(self, problem: Problem, config: DotsConfig) -> Geometry:
        return config.geometry

    def notes(self, problem: Problem, config: DotsConfig) -> list[str]:
        return fused_notes(problem) + cut_over_a_cluster(config)

    def reason(self, plan: Plan, kernel: str | None, tiles: str) -> Plan:
        return tensor_reason(plan, kernel, tiles)

    def tiles(self, problem: Problem, config: DotsConfig) -> str:
        return f"{config.geometry.rows}x{config.geometry.cols}"

    def offered(self, problem: Problem, machine: Machine) -> bool:
        """Lines that start on 16 bytes go to the copy engine."""
        p, size = problem, problem.dtype.itemsize
        return line_alignment(p.layout_m, p.m, p.k, size) < 16 or line_alignment(p.layout_n, p.k, p.n, size) < 16

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        return model.least_seconds(problem, machine)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        for tile in TILES:
            yield render_half_dots.named(problem.dtype, tile, epilogue=problem.epilogue)

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[DotsConfig]:
        return model.configs(problem, machine)

    def seconds(self, config: DotsConfig, problem: Problem, machine: Machine) -> float:
        return model.seconds(config, problem, machine)
