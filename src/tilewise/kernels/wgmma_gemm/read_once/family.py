"""Few rows or columns of float32 on Hopper's tensor cores, the long operand read once as it lies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import ClassVar

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.by_configs import ByConfigs
from tilewise.kernels.capabilities import HOPPER, Capabilities
from tilewise.kernels.family import Offer, limits_of, tensor_reason
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.transforms.sums import render_add_parts
from tilewise.kernels.transforms.turn import render_turn
from tilewise.kernels.wgmma_gemm.read_once import model
from tilewise.kernels.wgmma_gemm.read_once.recipe import launches
from tilewise.kernels.wgmma_gemm.read_once.text import render_read_once, render_split_in_turns


class ReadOnce(ByConfigs):
    name = "read_once"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    can = Capabilities(
        HOPPER, own_arch=True, dtypes=("float32",), one_dtype=True, same_result=True, float32_as=("high", "tf32"),
        plus_times=True, stacks=False, few=model.MOST_FEW, problem=(model.ONTO_P, model.LONG_SIDE),
    )  # fmt: skip

    def best(self, problem: Problem, machine: Machine) -> tuple[float, model.OnceConfig]:
        config, seconds = model.best_config(problem, machine)
        return seconds, config

    def geometry(self, problem: Problem, config: model.OnceConfig) -> Geometry:
        return config.geometry

    def notes(self, problem: Problem, config: model.OnceConfig) -> list[str]:
        return config.words()

    def passes(self, problem: Problem, config: model.OnceConfig) -> int:
        return model.passes(problem, config)

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        config, _ = model.best_config(problem, machine)
        return super().offer(problem, machine, tile)._replace(passes=self.passes(problem, config))

    def reason(self, plan: Plan, kernel: str | None, tiles: str) -> Plan:
        return tensor_reason(plan, kernel, tiles)

    def limits(self, problem: Problem, machine: Machine) -> tuple[float, str]:
        kind, products = model.products_of(problem)
        return limits_of(products * problem.steps / machine.tensor_rate(kind), problem, machine)

    def tiles(self, problem: Problem, config: model.OnceConfig) -> str:
        return f"{config.geometry.rows}x{config.geometry.cols}"

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        return model.least_seconds(problem, machine)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        tf32 = problem.precision == "tf32"
        yield render_turn.named(4) if tf32 else render_split_in_turns.named()
        for accumulate, shares in product((False, True), (1, 8)):
            yield render_add_parts.named(problem.dtype, problem.result, accumulate, shares)
        for tile, lies in product(model.TILES["tf32" if tf32 else "high"], model.LONG_BYTES):
            yield render_read_once.named(tile, lies)

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[model.OnceConfig]:
        return model.configs(problem, machine)

    def seconds(self, config: model.OnceConfig, problem: Problem, machine: Machine) -> float:
        return model.seconds(config, problem, machine)
