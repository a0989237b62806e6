"""Products too small for a pipeline: tiles read straight, in one launch, for any algebra, layout and stack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, ClassVar

from tilewise.algebra.builtin import is_plus_times
from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.by_configs import ByConfigs
from tilewise.kernels.capabilities import Capabilities
from tilewise.kernels.direct import model
from tilewise.kernels.direct.recipe import launches
from tilewise.kernels.direct.text import render_direct
from tilewise.kernels.shared.halves import onto
from tilewise.kernels.shared.placed import Operands

STACKED_SIDE = 200  # of a member


class Direct(ByConfigs):
    name = "direct"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    can = Capabilities(
        one_dtype=True, partial_bytes=(1, model.WIDEST), steps=model.LARGEST, stores_anywhere=True,
        precisions=("ieee",),
    )  # fmt: skip

    def best(self, problem: Problem, machine: Machine) -> tuple[float, model.DirectConfig]:
        config, seconds = model.best_config(problem, machine)
        return seconds, config

    def geometry(self, problem: Problem, config: model.DirectConfig) -> Geometry:
        return model.geometry(problem, config)

    def tiles(self, problem: Problem, config: model.DirectConfig) -> str:
        down, across = model.tiles_of(problem, config.tile)
        return f"{down}x{across} tiles of {config.tile.rows}x{config.tile.cols}"

    def offered(self, problem: Problem, machine: Machine) -> bool:
        """In stacks of larger products by other semirings than plus_times, `buffered` or `plain` was always sooner."""
        p = problem
        larger = p.members > 1 and min(p.m, p.k, p.n) >= STACKED_SIDE and p.dtype.itemsize == 4
        return not larger or is_plus_times(p.semiring)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        every = model.every_config(problem.algebra.partial.itemsize, model.clusters_of(machine))
        for config, accumulate in product(every, onto(problem, machine)):
            yield render_direct.named(problem.algebra, config.tile, config.groups, accumulate)

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        return model.least_seconds(problem, machine)

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[Any]:
        return model.configs(problem, machine)

    def seconds(self, config: Any, problem: Problem, machine: Machine) -> float:
        return model.seconds(config, problem, machine)
