"""tf32, 8-bit integers and 8-bit floats on Hopper's tensor cores, which take them with k side by side alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.capabilities import HOPPER, Capabilities
from tilewise.kernels.family import Family, Offer, limits_of, own_tiles, passes, tensor_reason
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.wgmma_gemm.k_major import model
from tilewise.kernels.wgmma_gemm.k_major.forms import texts as every_k_major
from tilewise.kernels.wgmma_gemm.k_major.recipe import launches


class KMajor(Family):
    name = "k_major"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    can = Capabilities(HOPPER, own_arch=True, plus_times=True, kind=model.KIND, scales=True)

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        config, predicted = model.best_config(problem, machine)
        geometry = config.tile.geometry(problem.dtype_m.itemsize)
        plan = own_tiles(
            self,
            problem,
            machine,
            model.KERNEL,
            tile,
            geometry,
            predicted,
            self._limits(problem, machine),
            config.words(),
            packs=(),
            config=config,
            passes=passes(config.routes, config.splits),
        )
        waves = config.waves(problem.m, problem.n, machine.units)
        tiles = f"{config.tile.rows}x{config.tile.cols} are {waves} waves on {machine.units} multiprocessors"
        return tensor_reason(plan, kernel, tiles)

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        return model.least_seconds(problem, machine)

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        config, seconds = model.best_config(problem, machine)
        floor, _ = self._limits(problem, machine)
        return Offer(problem, machine, model.KERNEL, max(seconds, floor), floor, passes(config.routes, config.splits))

    def _limits(self, problem: Problem, machine: Machine) -> tuple[float, str]:
        kind = model.kind_of(problem)
        assert kind is not None
        return limits_of(problem.steps / (kind.rate * machine.tensor_rate("bfloat16")), problem, machine)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        kinds, result = (problem.dtype_m.name, problem.dtype_n.name), problem.result.name
        return every_k_major(kinds, result)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)
