"""Halves whose lines start anywhere: tensor cores in one launch, with no pass that realigns them first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import ClassVar

from tilewise.core.machine import Machine, arch_number
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.by_configs import ByConfigs, cut_over_a_cluster
from tilewise.kernels.capabilities import AMPERE, HALVES, Capabilities, Condition
from tilewise.kernels.family import fused_notes, tensor_reason
from tilewise.kernels.mma_gemm.direct_half import alone, model
from tilewise.kernels.mma_gemm.direct_half.recipe import launches
from tilewise.kernels.mma_gemm.direct_half.text import render_direct_half
from tilewise.kernels.shared.groups import render_walk
from tilewise.kernels.shared.placed import Operands


class DirectHalf(ByConfigs):
    name = "direct_half"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    can = Capabilities(
        AMPERE, dtypes=HALVES, one_dtype=True, plus_times=True, unrounded=False, groups=("rows",), contiguous=True,
        problem=(Condition(lambda p: not (p.groups and (p.accumulate or p.epilogue)), "stores groups as they are"),),
        fuses=True,
    )  # fmt: skip

    def best(self, problem: Problem, machine: Machine) -> tuple[float, model.HalfTile]:
        if not _is_single(problem):
            config, seconds = model.best_tile(problem, machine)
            return seconds, config
        config, seconds = alone.least(problem, machine)
        return alone.ONE_LAUNCH * seconds, config

    def geometry(self, problem: Problem, config: model.HalfTile) -> Geometry:
        return config.geometry

    def notes(self, problem: Problem, config: model.HalfTile) -> list[str]:
        return fused_notes(problem) + cut_over_a_cluster(config)

    def reason(self, plan: Plan, kernel: str | None, tiles: str) -> Plan:
        return tensor_reason(plan, kernel, tiles)

    def tiles(self, problem: Problem, config: model.HalfTile) -> str:
        return f"{config.rows}x{config.cols}, {config.resident} a multiprocessor"

    def offered(self, problem: Problem, machine: Machine) -> bool:
        """Single products and groups that the copy engine takes as they are go to wgmma_half."""
        p = problem
        if p.groups is None and p.members > 1:
            return True
        if p.groups is None and arch_number(machine.arch) < 90:
            return False  # nobody has timed those
        m, n = p.layout_m, p.layout_n
        return bool(m.row % 8 and m.col % 8) or bool(n.row % 8 and n.col % 8)

    def least_seconds(self, problem: Problem, machine: Machine) -> float:
        if _is_single(problem):
            return alone.least_seconds(problem, machine)
        return 0.0 if problem.groups else model.least_seconds(problem, machine)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        return launches(plan, given, scratch)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        if problem.groups:
            yield render_walk.named(problem.groups.wide)
        for tile, m_along_k, n_along_k in product(model.TILES, (True, False), (True, False)):
            lying, by_rows = (m_along_k, n_along_k), problem.groups is not None
            yield render_direct_half.named(problem.dtype, tile, lying, epilogue=problem.epilogue, by_rows=by_rows)

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[model.HalfTile]:
        return alone.every(problem, machine) if _is_single(problem) else model.TILES

    def seconds(self, config: model.HalfTile, problem: Problem, machine: Machine) -> float:
        return (alone.seconds if _is_single(problem) else model.seconds)(config, problem, machine)


def _is_single(problem: Problem) -> bool:
    return problem.groups is None and problem.members == 1
