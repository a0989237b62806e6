"""Lines that start anywhere, of halves and tf32: bulk copies bring them as they lie, in one launch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import ClassVar

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.by_configs import ByConfigs
from tilewise.kernels.capabilities import HALVES, HOPPER, Capabilities, Condition
from tilewise.kernels.family import limits_of, tensor_reason
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.wgmma_gemm.bulk_lines import model, search
from tilewise.kernels.wgmma_gemm.bulk_lines.recipe import launches
from tilewise.kernels.wgmma_gemm.bulk_lines.text import render_bulk_lines

FEW = 256  # rows or columns of single products: of more, lines are realigned in little time


class BulkLines(ByConfigs):
    name = "bulk_lines"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    can = Capabilities(
        HOPPER, own_arch=True, dtypes=(*HALVES, "float32"), one_dtype=True, same_result=True, float32_as=("tf32",),
        plus_times=True, accumulates=False, unrounded=False, least_k=1, contiguous=True,
        problem=(Condition(lambda p: min(p.m, p.n) >= 1, "stores a P that is not empty"),), precisions=("tf32",),
    )  # fmt: skip

    def best(self, problem: Problem, machine: Machine) -> tuple[float, model.BulkConfig]:
        return search.best_config(problem, machine)

    def least(self, problem: Problem, machine: Machine) -> float:
        return search.least(problem, machine)[0]

    def geometry(self, problem: Problem, config: model.BulkConfig) -> Geometry:
        return model.geometry(problem, config)

    def reason(self, plan: Plan, kernel: str | None, tiles: str) -> Plan:
        return tensor_reason(plan, kernel, tiles)

    def limits(self, problem: Problem, machine: Machine) -> tuple[float, str]:
        kind = "tf32" if problem.dtype.itemsize == 4 else problem.dtype.name
        return limits_of(problem.steps / machine.tensor_rate(kind), problem, machine)

    def tiles(self, problem: Problem, config: model.BulkConfig) -> str:
        return f"{config.tile.rows}x{config.tile.cols}, {config.resident} a multiprocessor"

    def offered(self, problem: Problem, machine: Machine) -> bool:
        return problem.members > 1 or (min(problem.m, problem.n) <= FEW and not model.on_boundaries(problem))

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        return model.least_seconds(problem, machine)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        for tile, m_along_k, n_along_k in product(model.TILES, (True, False), (True, False)):
            yield render_bulk_lines.named(problem.dtype, tile, (m_along_k, n_along_k))

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[model.BulkConfig]:
        return search.configs(problem)

    def seconds(self, config: model.BulkConfig, problem: Problem, machine: Machine) -> float:
        return model.seconds(config, problem, machine)
