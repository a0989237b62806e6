"""Small and thin products of floats: a warp a tile, k in slices; one launch, any layout, any stack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from tilewise.core.machine import Machine, arch_number
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.by_configs import ByConfigs
from tilewise.kernels.capabilities import AMPERE, Capabilities
from tilewise.kernels.mma_gemm.mma_sync.model import worthwhile
from tilewise.kernels.mma_gemm.sliced_k import model
from tilewise.kernels.mma_gemm.sliced_k.recipe import launches
from tilewise.kernels.mma_gemm.sliced_k.text import render_sliced
from tilewise.kernels.shared.placed import Operands


class SlicedK(ByConfigs):
    name = "sliced_k"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    can = Capabilities(
        AMPERE, dtypes=("float64", "float32"), one_dtype=True, same_result=True, float32_as=("ieee", "high"),
        plus_times=True, steps=model.LARGEST, problem=(model.NEAR,), stores_anywhere=True, precisions=("ieee",),
    )  # fmt: skip

    def best(self, problem: Problem, machine: Machine) -> tuple[float, model.SlicedConfig]:
        return model.best_config(problem, machine)

    def geometry(self, problem: Problem, config: model.SlicedConfig) -> Geometry:
        return model.geometry(problem, config)

    def tiles(self, problem: Problem, config: model.SlicedConfig) -> str:
        down, across = model.tiles_of(problem, config)
        block = model.geometry(problem, config)
        return f"{down * across} tiles of {block.rows}x{block.cols}"

    def notes(self, problem: Problem, config: model.SlicedConfig) -> list[str]:
        sharing = [f"{config.slices} warps of a block"] * (config.slices > 1)
        sharing += [f"{config.cluster} blocks of a cluster"] * (config.cluster > 1)
        return [f"k is cut over the {' and the '.join(sharing)}, which add up in order"] * bool(sharing)

    def offered(self, problem: Problem, machine: Machine) -> bool:
        if problem.dtype.itemsize == 4:  # stacks of others were not timed with it
            return problem.members == 1 or problem.precision == "high"
        return problem.members == 1 and worthwhile(problem, machine)

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        return model.least_seconds(problem, machine)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        arch = min(90, arch_number(machine.arch))
        return (render_sliced.named(problem.dtype, tile, arch) for tile in model.TILES[problem.dtype.itemsize])

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        return tuple(model.configs(problem, machine))

    def seconds(self, config: Any, problem: Problem, machine: Machine) -> float:
        return model.seconds(config, problem, machine)
