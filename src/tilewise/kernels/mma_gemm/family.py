"""Families of the mma.sync main loops except `mma_sync`, which has its own folder."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any, ClassVar

from tilewise.core.machine import Machine, arch_number
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.kernels.by_configs import Tabled, cluster_note
from tilewise.kernels.capabilities import AMPERE, HALVES, HOPPER, Capabilities
from tilewise.kernels.family import Searched, fused_notes
from tilewise.kernels.mma_gemm import recipe
from tilewise.kernels.mma_gemm.direct_half import model as half
from tilewise.kernels.mma_gemm.half_dots import model as dots
from tilewise.kernels.mma_gemm.half_dots.model import MOST_FEW, WIDTHS
from tilewise.kernels.mma_gemm.short_k import model as short
from tilewise.kernels.mma_gemm.sliced_k import model as sliced
from tilewise.kernels.mma_gemm.text import render_direct_half, render_half_dots, render_short_k, render_sliced
from tilewise.kernels.shared.groups import render_walk
from tilewise.kernels.transforms.transpose import render_transpose


class SlicedK(Tabled):
    """Small and thin products of floats: a tile a warp, split-K over warps; one launch, any layout and stack."""

    name = sliced.KERNEL
    kernels: ClassVar = {name: sliced.IDEA}
    launches = staticmethod(recipe.of_sliced_k)
    can = Capabilities(
        AMPERE, dtypes=("float64", "float32"), one_dtype=True, same_result=True, float32_as=("ieee", "high"),
        plus_times=True, steps=sliced.LARGEST, problem=(sliced.NEAR,), stores_anywhere=True, precisions=("ieee",),
    )  # fmt: skip

    def searched(self, problem: Problem, machine: Machine) -> list[Searched]:
        return sliced.searched(problem, machine)

    def suits(self, problem: Problem, machine: Machine) -> bool:
        return problem.dtype.name != "float64" or machine.tensor_rate("float64") > 0

    def geometry(self, problem: Problem, machine: Machine, config: sliced.SlicedConfig) -> Geometry:
        return sliced.geometry(problem, config)

    def tiles(self, problem: Problem, machine: Machine, config: sliced.SlicedConfig) -> str:
        (down, across), block = sliced.tiles_of(problem, config), sliced.geometry(problem, config)
        return f"{down * across} tiles of {block.rows}x{block.cols}"

    def notes(self, problem: Problem, config: sliced.SlicedConfig) -> list[str]:
        sharing = [f"{config.slices} warps of a block"] * (config.slices > 1)
        sharing += [f"{config.cluster} blocks of a cluster"] * (config.cluster > 1)
        return [f"k is cut over the {' and the '.join(sharing)}, which add up in order"] * bool(sharing)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        arch = min(90, arch_number(machine.arch))
        return (render_sliced.key(problem.dtype, tile, arch) for tile in sliced.TILES[problem.dtype.itemsize])


class ShortK(Tabled):
    """A k so short that storing P takes most of the time: N stays in registers, P is stored by whole sectors."""

    name = short.KERNEL
    kernels: ClassVar = {name: short.IDEA}
    launches = staticmethod(recipe.of_short_k)
    can = Capabilities(
        AMPERE, dtypes=(*HALVES, "float32"), one_dtype=True, same_result=True, float32_as=("tf32",), plus_times=True,
        accumulates=False, least_k=1, problem=(short.SHORT,), precisions=("tf32",), stacks=False,
    )  # fmt: skip

    def searched(self, problem: Problem, machine: Machine) -> list[Searched]:
        return short.searched(problem, machine)

    def geometry(self, problem: Problem, machine: Machine, config: short.ShortConfig) -> Geometry:
        return short.geometry(problem, config)

    def tiles(self, problem: Problem, machine: Machine, config: short.ShortConfig) -> str:
        panels, across = short.panels_of(problem, config.held), short.across_of(problem.n, config.held.cols)
        return f"{panels} panels of {across * config.held.cols} columns, {config.spec()}"

    def reason(self, plan: Plan, kernel: str | None, tiles: str) -> Plan:
        requested = "the kernel was requested" if kernel else f"k is short, and {self.name} has the least expected time"
        return plan.but(why=f"{requested}; {tiles}")

    def notes(self, problem: Problem, config: short.ShortConfig) -> list[str]:
        return [f"{side} is transposed first, into rows contiguous along k" for side in config.transposed]

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        size = problem.dtype.itemsize
        return (render_transpose.key(size), *(render_short_k.key(problem.dtype, held) for held in short.HELD[size]))


class HalvesAnywhere(Tabled):
    """Halves with unaligned rows on tensor cores, in one launch without a realigning pass."""

    tensor = True

    def notes(self, problem: Problem, config: Any) -> list[str]:
        return fused_notes(problem) + cluster_note(config)


class HalfDots(HalvesAnywhere):
    """Few rows or columns: the long operand is read once."""

    name = dots.KERNEL
    kernels: ClassVar = {name: dots.IDEA}
    launches = staticmethod(recipe.of_half_dots)
    can = Capabilities(
        HOPPER, dtypes=HALVES, one_dtype=True, plus_times=True, unrounded=False, stacks=False, few=MOST_FEW,
        problem=(dots.LONG,), fuses=True, stores_anywhere=True,
    )  # fmt: skip

    def searched(self, problem: Problem, machine: Machine) -> list[Searched]:
        return dots.searched(machine)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        return (render_half_dots.key(problem.dtype, width, epilogue=problem.epilogue) for width in WIDTHS)


class DirectHalf(HalvesAnywhere):
    """Tiles: single products, stacks and groups of rows."""

    name = half.KERNEL
    kernels: ClassVar = {name: half.IDEA}
    launches = staticmethod(recipe.of_direct_half)
    can = Capabilities(
        AMPERE, dtypes=HALVES, one_dtype=True, plus_times=True, unrounded=False, groups=("rows",), contiguous=True,
        fuses=True,
    )  # fmt: skip

    def searched(self, problem: Problem, machine: Machine) -> list[Searched]:
        return half.searched(problem, machine)

    def tiles(self, problem: Problem, machine: Machine, config: half.HalfTile) -> str:
        return f"{super().tiles(problem, machine, config)}, {config.resident} a multiprocessor"

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        if problem.groups:
            yield render_walk.key(problem.groups.wide)
        for tile, m_along_k, n_along_k in product(half.TILES, (True, False), (True, False)):
            lying, by_rows = (m_along_k, n_along_k), problem.groups is not None
            yield render_direct_half.key(problem.dtype, tile, lying, epilogue=problem.epilogue, by_rows=by_rows)
