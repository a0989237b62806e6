"""Tensor cores by mma.sync: every card from Ampere on, and float64 on Hopper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from tilewise.core.machine import Machine, arch_number
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.capabilities import AMPERE, HALVES, HOPPER, Capabilities
from tilewise.kernels.family import Family, Offer, fused_notes, own_tiles, packed_operands, passes, tensor_reason
from tilewise.kernels.mma_gemm.mma_sync import model
from tilewise.kernels.mma_gemm.mma_sync.forms import texts as every_mma_sync
from tilewise.kernels.mma_gemm.mma_sync.recipe import launches
from tilewise.kernels.shared.halves import onto
from tilewise.kernels.shared.placed import Operands


class MmaSync(Family):
    name = "mma_sync"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    can = Capabilities(
        AMPERE, dtypes=(*HALVES, "float32", "float64", "int8", "uint8"), float32_as=("tf32",), plus_times=True,
        fuses=True,
    )  # fmt: skip
    beside_tile = True

    def offered(self, problem: Problem, machine: Machine) -> bool:
        of_bytes = {problem.dtype_m.name, problem.dtype_n.name, problem.dtype.name} <= {"int8", "uint8"}
        if of_bytes and problem.members == 1 and arch_number(machine.arch) == HOPPER:
            return False  # wgmma has twice the rate for them
        return model.worthwhile(problem, machine)

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        return self._plan(problem, machine, kernel, tile, *model.best_config(problem, machine, kernel is not None))

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        return model.least_seconds(problem, machine)

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        config, seconds = model.best_config(problem, machine, False)
        floor, _ = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        return Offer(problem, machine, model.KERNEL, max(seconds, floor), floor, passes(config.routes, config.parts))

    def pinned(self, problem: Problem, machine: Machine, config: model.MmaConfig) -> Plan:
        return self._plan(problem, machine, model.KERNEL, None, config, 0.0)

    def _plan(
        self,
        problem: Problem,
        machine: Machine,
        kernel: str | None,
        tile: int | None,
        config: model.MmaConfig,
        predicted: float,
    ) -> Plan:
        geometry = config.tile.geometry(machine.arch, problem.dtype.itemsize)
        limits = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        notes = config.words() + fused_notes(problem)
        plan = own_tiles(
            self, problem, machine, model.KERNEL, tile, geometry, predicted, limits, notes,
            packs=packed_operands(config.routes), config=config, passes=passes(config.routes, config.parts),
        )  # fmt: skip
        chosen_by = "tuned" if config.tuned else "by the model"
        tiles = f"{config.tile.rows}x{config.tile.cols}, {config.tile.resident} a multiprocessor ({chosen_by})"
        return tensor_reason(plan, kernel, tiles)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        return every_mma_sync(problem.dtype, problem.result, machine, problem.epilogue, onto(problem, machine))

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[model.MmaConfig]:
        return model.configs(problem, machine)

    def seconds(self, config: model.MmaConfig, problem: Problem, machine: Machine) -> float:
        return model.expected(config, problem, machine)

    def tuning_class(self, problem: Problem) -> str:
        return model.tuning_class(problem)
