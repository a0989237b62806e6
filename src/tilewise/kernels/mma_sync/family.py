"""Tensor cores by mma.sync: every card from Ampere on, and float64 on Hopper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.family import Family, Offer, fused_notes, own_tiles, packed_operands, passes, tensor_reason
from tilewise.kernels.k_major import model as k_major
from tilewise.kernels.mma_sync import model
from tilewise.kernels.mma_sync.forms import texts as every_mma_sync
from tilewise.kernels.mma_sync.recipe import launches
from tilewise.kernels.shared.halves import onto
from tilewise.kernels.shared.placed import Operands


class MmaSync(Family):
    name = "mma_sync"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    fuses = True
    beside_tile = True

    def refusal(self, problem: Problem, machine: Machine, kernel: str | None = None) -> str | None:
        return model.refusal(problem, machine)

    def takes(self, problem: Problem, machine: Machine) -> bool:
        return True  # what it refuses is of another kind

    def offered(self, problem: Problem, machine: Machine) -> bool:
        whole = problem.dtype.is_integer and problem.members == 1  # Hopper's own kernel for them has twice the rate
        return model.worthwhile(problem, machine) and not (whole and k_major.refusal(problem, machine) is None)

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
