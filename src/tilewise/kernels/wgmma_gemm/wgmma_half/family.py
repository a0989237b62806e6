"""bfloat16 and float16 on Hopper's tensor cores (wgmma, TMA)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.capabilities import HALVES, HOPPER, Capabilities
from tilewise.kernels.family import Family, Offer, fused_notes, own_tiles, packed_operands, passes, tensor_reason
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.wgmma_gemm.wgmma_half import model, search
from tilewise.kernels.wgmma_gemm.wgmma_half.forms import grouped_texts
from tilewise.kernels.wgmma_gemm.wgmma_half.forms import texts as every_wgmma_half
from tilewise.kernels.wgmma_gemm.wgmma_half.recipe import launches
from tilewise.kernels.wgmma_gemm.wgmma_half.seconds import waves_of


class WgmmaHalf(Family):
    name = "wgmma_half"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    can = Capabilities(
        HOPPER, own_arch=True, dtypes=HALVES, plus_times=True, groups=("rows", "k"),
        problem=(model.UNROUNDED, model.GROUPS), fuses=True,
    )  # fmt: skip
    beside_tile = True

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        return self._plan(problem, machine, kernel, tile, *search.best_config(problem, machine))

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        return search.least_seconds(problem, machine)

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        config, seconds = search.best_config(problem, machine)
        floor, _ = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        passing = passes(config.routes, config.passes)
        return Offer(problem, machine, model.KERNEL, max(seconds, floor), floor, passing)

    def pinned(self, problem: Problem, machine: Machine, config: model.TensorConfig) -> Plan:
        return self._plan(problem, machine, model.KERNEL, None, config, 0.0)

    def _plan(
        self,
        problem: Problem,
        machine: Machine,
        kernel: str | None,
        tile: int | None,
        config: model.TensorConfig,
        predicted: float,
    ) -> Plan:
        limits = machine.floor(problem.steps, problem.least_bytes, problem.dtype.name)
        notes = config.words() + fused_notes(problem)
        plan = own_tiles(
            self, problem, machine, model.KERNEL, tile, config.tile.geometry, predicted, limits, notes,
            packs=packed_operands(config.routes), config=config, passes=passes(config.routes, config.passes),
        )  # fmt: skip
        waves = waves_of(config, problem, machine.units)
        chosen_by = "tuned" if config.tuned else "by the model"
        tiles = (
            f"{config.tile.rows}x{config.tile.cols} are {waves} waves on {machine.units} multiprocessors ({chosen_by})"
        )
        return tensor_reason(plan, kernel, tiles)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        name, groups = problem.dtype.name, problem.groups
        return every_wgmma_half(name, problem.epilogue) if groups is None else grouped_texts(name, groups)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[model.TensorConfig]:
        return model.configs(problem, machine)

    def seconds(self, config: model.TensorConfig, problem: Problem, machine: Machine) -> float:
        return model.expected(config, problem, machine)

    def tuning_class(self, problem: Problem) -> str:
        return model.tuning_class(problem)
