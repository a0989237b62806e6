"""float32 on Hopper's tensor cores: three bfloat16 parts of each operand, six products of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.capabilities import HOPPER, Capabilities
from tilewise.kernels.family import Family, Offer, limits_of, own_tiles, tensor_reason
from tilewise.kernels.shared.layouts import long_lines
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.simt_gemm.tiled.forms import behind_stacks
from tilewise.kernels.wgmma_gemm.bf16x6 import model
from tilewise.kernels.wgmma_gemm.bf16x6.recipe import launches
from tilewise.kernels.wgmma_gemm.bf16x6.text import render_bf16x6, render_split


class BF16x6(Family):
    name = "bf16x6"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    can = Capabilities(HOPPER, own_arch=True, dtypes=("float32",), float32_as=("high", "tf32"), plus_times=True)

    def offered(self, problem: Problem, machine: Machine) -> bool:
        """Where tf32 will do, kernels that round once are sooner done: of 447 random shapes it was best for none."""
        return problem.precision != "tf32"

    def plan(self, problem: Problem, machine: Machine, kernel: str | None, tile: int | None) -> Plan:
        config, predicted = model.best_config(problem, machine)
        operands = (
            ("M", problem.layout_m, problem.m, problem.k, problem.dtype_m),
            ("N", problem.layout_n, problem.k, problem.n, problem.dtype_n),
        )
        packs = tuple(
            name
            for name, layout, rows, cols, dtype in operands
            if dtype != problem.dtype or long_lines(layout, rows, cols) is None
        )
        notes = [f"{' and '.join(packs)} packed first: elements apart, or another dtype"] if packs else []
        plan = own_tiles(
            self, problem, machine, model.KERNEL, tile, config.tile.geometry, predicted,
            self._limits(problem, machine), (*notes, *config.words()),
            packs=packs, config=config, planes=model.PLANE_SHARE, passes=2 + (config.splits > 1),
        )  # fmt: skip
        waves = config.waves(problem.m, problem.n, machine.units, problem.members)
        tiles = f"{config.tile.rows}x{config.tile.cols} are {waves} waves on {machine.units} multiprocessors"
        return tensor_reason(plan, kernel, tiles)

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        return model.least_seconds(problem, machine)

    def offer(self, problem: Problem, machine: Machine, tile: int | None) -> Offer:
        config, seconds = model.best_config(problem, machine)
        floor, _ = self._limits(problem, machine)
        return Offer(problem, machine, model.KERNEL, max(seconds, floor), floor, 2 + (config.splits > 1))

    def _limits(self, problem: Problem, machine: Machine) -> tuple[float, str]:
        return limits_of(model.PRODUCTS * problem.steps / machine.tensor_rate("bfloat16"), problem, machine)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        """The plain kernels, for what planes of bfloat16 cannot hold, are its family's, but for those behind stacks."""
        if self.offered(problem, machine):
            yield render_split.named()
            yield from behind_stacks(problem.algebra, machine)
            yield from (render_bf16x6.named(tile) for tile in model.TILES)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)
