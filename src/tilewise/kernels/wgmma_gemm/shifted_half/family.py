"""Halves whose lines start anywhere, in stacks and groups: loaded and shifted by some warps, multiplied by others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import ClassVar

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.core.recipe import Scratch, Step
from tilewise.kernels.by_configs import ByConfigs
from tilewise.kernels.capabilities import HALVES, HOPPER, Capabilities
from tilewise.kernels.family import tensor_reason
from tilewise.kernels.mma_gemm.direct_half.recipe import launches_of
from tilewise.kernels.shared.groups import render_walk
from tilewise.kernels.shared.layouts import along_k
from tilewise.kernels.shared.placed import Operands
from tilewise.kernels.wgmma_gemm.shifted_half import model
from tilewise.kernels.wgmma_gemm.shifted_half.text import render_shifted_half


class ShiftedHalf(ByConfigs):
    name = "shifted_half"
    kernels: ClassVar = {model.KERNEL: model.IDEA}
    can = Capabilities(
        HOPPER, own_arch=True, dtypes=HALVES, one_dtype=True, plus_times=True, accumulates=False, unrounded=False,
        groups=("rows",), contiguous=True,
    )  # fmt: skip

    def best(self, problem: Problem, machine: Machine) -> tuple[float, model.ShiftedTile]:
        return model.best_tile(problem, machine)

    def geometry(self, problem: Problem, config: model.ShiftedTile) -> Geometry:
        return config.geometry

    def notes(self, problem: Problem, config: model.ShiftedTile) -> list[str]:
        return []

    def reason(self, plan: Plan, kernel: str | None, tiles: str) -> Plan:
        return tensor_reason(plan, kernel, tiles)

    def tiles(self, problem: Problem, config: model.ShiftedTile) -> str:
        return f"{config.rows}x{config.cols}, {config.resident} a multiprocessor"

    def offered(self, problem: Problem, machine: Machine) -> bool:
        """Groups whose weights start on no 16 bytes. Stacks only where asked for: 602 random ones of halves
        were timed, and it saved three from more than 1.1 times the vendor's time."""
        n = problem.layout_n
        return problem.groups is not None and bool(n.row % 8 and n.col % 8)

    def launches(self, plan: Plan, given: Operands, scratch: Scratch) -> Sequence[Step]:
        M, N, tile = given.M, given.N, plan.config
        assert isinstance(tile, model.ShiftedTile)
        lying = along_k(M.layout, M.rows, M.cols, "M"), along_k(N.layout, N.rows, N.cols, "N")
        source = render_shifted_half.named(plan.problem.dtype, tile, lying, plan.problem.groups is not None)
        return launches_of(plan, given, scratch, model.KERNEL, source)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        if not problem.groups:
            return  # only where asked for by name
        yield render_walk.named(problem.groups.wide)
        for tile, m_along_k, n_along_k in product(model.TILES, (True, False), (True, False)):
            yield render_shifted_half.named(problem.dtype, tile, (m_along_k, n_along_k), True)

    def configurations(self, problem: Problem, machine: Machine) -> Sequence[model.ShiftedTile]:
        return model.TILES

    def seconds(self, config: model.ShiftedTile, problem: Problem, machine: Machine) -> float:
        return model.seconds(config, problem, machine)
